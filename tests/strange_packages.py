"""Plugins of strangers, written into folders as pip writes them, and what became of them."""

from __future__ import annotations

from pathlib import Path

from effbench import plugins
from effbench.plugins import Plugins

HEAD = """
import effbench

CARD = {"paper": "Nobody, Nothing, arXiv:0000.00000", "claim": "none"}

def make(name):
    def function(recipe, *, by: float = 1.0):
        '''Do nothing.'''
        return recipe
    function.__name__ = name
    return effbench.technique("data_centric/sampling", **CARD)(function)

"""

#: The source of a plugin whose technique keeps few laws.
LAWLESS = '''
from effbench import Recipe, technique

@technique("data_centric/regularization", paper="Nobody, Nothing, arXiv:0000.00000", claim="none", neutral={"by": 1.0})
def lawless(recipe: Recipe, *, by: float = 1.0) -> Recipe:
    """Shift the loss.

    by: how much.
    """
    return recipe.wrap(loss=lambda outputs, batch: outputs.sum(1))
'''


def offering(*names: str) -> str:
    """The source of a plugin that offers techniques of these names."""
    made = ", ".join(f"make({name!r})" for name in names)
    return f"{HEAD}@effbench.hookimpl\ndef effbench_techniques():\n    return [{made}]\n"


def install(site: Path, package: str, source: str, *, entry: str = "", version: str = "1.0") -> None:
    """Put a package and its metadata into a folder, as pip does."""
    site.mkdir(exist_ok=True)
    (site / f"{package}.py").write_text(source)
    info = site / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[effbench]\n{entry or f'{package} = {package}'}\n")


def load(*named: str, **how: bool) -> Plugins:
    return plugins.load(named, **how)


def why(loaded: Plugins) -> str:
    [problem] = loaded.problems
    return str(problem)


def names(loaded: Plugins, plugin: str) -> list[str]:
    """The techniques that a plugin offers."""
    return [name for name in loaded.techniques if loaded.origin("effbench_techniques", name) == plugin]
