"""What every verb does first that needs techniques or workloads: load the plugins, and say which are broken."""

from __future__ import annotations

import argparse
import sys

from effbench import messages, plugins
from effbench.report.console import emit


def plugins_of(arguments: argparse.Namespace) -> plugins.Plugins:
    """Load all plugins, those named with --plugin too; warn of each that is broken.

    Raises:
        PluginError: one is broken, and --strict-plugins is given.
    """
    loaded = plugins.load(arguments.plugin, strict=arguments.strict_plugins)
    for problem in loaded.problems:
        messages.warn(str(problem))
        if arguments.traceback and problem.traceback:
            emit(problem.traceback.rstrip(), sys.stderr)
    return loaded
