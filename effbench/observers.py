"""Tell observers what happens. One that raises hears no more, and costs nothing else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pluggy

from effbench.errors import words_of

Warn = Callable[[str], None]


def to_standard_error(text: str) -> None:
    """Show a warning as a plain line."""
    print(f"effbench: {text}", file=sys.stderr)  # noqa: T201 - this is where warnings go


@dataclass(frozen=True, slots=True)
class Observers:
    """The plugins that hear how a suite goes.

    manager: where they are registered.
    show: shows a person what should be seen at once.
    """

    manager: pluggy.PluginManager
    show: Warn = to_standard_error

    def warn(self, text: str) -> None:
        """Show a warning; where nobody reads any more, go on."""
        with contextlib.suppress(OSError):
            self.show(text)

    def tell(self, hook: str, **what: Any) -> None:
        """Call a hook of every observer that has it."""
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            wanted = {name: value for name, value in what.items() if name in implementation.argnames}
            try:
                implementation.function(**wanted)
            except KeyboardInterrupt:
                raise
            except BaseException as fault:  # noqa: BLE001 - a stranger's code may raise anything
                name = implementation.plugin_name
                self.warn(f"observer {name} failed in {hook} and hears no more: {words_of(fault)}")
                self.manager.unregister(name=name)
