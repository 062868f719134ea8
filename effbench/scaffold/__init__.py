"""Write the beginnings of a technique: a file and its test, in a folder or in a package of their own."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from effbench import __version__
from effbench.errors import EffbenchError
from effbench.taxonomy import check_leaf

BUILT_IN = (
    "effbench_techniques"  # a folder of this name is effbench's own: it needs no hook, and has folders for leaves
)

_FILE_IMPORTS = "Batch, NotApplicable, Recipe, Technique, Training, hookimpl, technique"
_MODULE_IMPORTS = "Batch, NotApplicable, Recipe, Training, technique"


def new_technique(place: str, into: Path, *, package: bool = False, known: Collection[str] = ()) -> list[Path]:
    """Write a technique that keeps the laws and does little, to be replaced by a real one; return the files.

    place: "branch/leaf/name".
    into: the folder; `effbench_techniques`, effbench's own, gets the file in the folder of its leaf.
    package: write a package, to install and to share, instead of one file.
    known: names that are taken.

    Raises:
        EffbenchError: there is no such leaf, the name will not do, or a file is there already; nothing is written.
    """
    leaf, _, name = place.rpartition("/")
    if not leaf:
        raise EffbenchError(f"{place!r} should be LEAF/NAME, such as data_centric/regularization/{place or 'my_noise'}")
    check_leaf(leaf)
    check_name(name, known)
    texts = _texts(leaf, name, into.resolve(), package=package)
    if there := [path for path in texts if path.exists()]:
        raise EffbenchError(f"{there[0]} is there already; choose another name, or another folder with --into")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def check_name(name: str, known: Collection[str]) -> None:
    """Do nothing where a technique may have this name.

    Raises:
        EffbenchError: it may not; says why.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise EffbenchError(f"{name!r} is no name of a technique; write lower-case words joined by _, such as my_noise")
    if name == "baseline":
        raise EffbenchError("'baseline' is the name of the empty set of techniques; choose another")
    if name.startswith("test_"):
        raise EffbenchError(
            f"{name}.py would be taken for a file of tests; choose a name that does not begin with test_"
        )
    if name in known:
        raise EffbenchError(f"there is a technique {name!r} already; `effbench show {name}` tells what it does")
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise EffbenchError(
            f"{name!r} is the name of a Python module, which a file {name}.py would hide; choose another"
        )


def _texts(leaf: str, name: str, into: Path, *, package: bool) -> dict[Path, str]:
    """Return what to write: path -> text."""
    words = {
        "leaf": leaf,
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "version": __version__,
        "gap": "",  # blank lines among the imports, as formatters want them
        "own_gap": "\n",
    }
    if into.name == BUILT_IN:
        if package:
            raise EffbenchError(f"{into} is effbench's own; write a package elsewhere")
        checkout = into.parent.parent
        module = f"{BUILT_IN}.{leaf.replace('/', '.')}.{name}"
        words |= {"module": module, "imports": _MODULE_IMPORTS, "gap": "\n", "own_gap": ""}
        return {
            into / leaf / f"{name}.py": _filled("technique.py", words),
            checkout / "tests" / "techniques" / f"test_{name}.py": _filled("test.py", words),
        }
    if package:
        return _package_texts(name, into, words)
    words |= {"module": name, "imports": _FILE_IMPORTS}
    return {
        into / f"{name}.py": _filled("technique.py", words) + _filled("offer.py", words),
        into / f"test_{name}.py": _filled("test.py", words),
    }


def _package_texts(name: str, into: Path, words: Mapping[str, str]) -> dict[Path, str]:
    distribution, module = f"effbench-{name.replace('_', '-')}", f"effbench_{name}"
    folder = into / distribution
    words = {
        **words,
        "distribution": distribution,
        "package": module,
        "module": f"{module}.{name}",
        "imports": _MODULE_IMPORTS,
    }
    return {
        folder / "pyproject.toml": _filled("pyproject.toml", words),
        folder / "README.md": _filled("README.md", words),
        folder / "src" / module / "__init__.py": _filled("package_init.py", words),
        folder / "src" / module / f"{name}.py": _filled("technique.py", words),
        folder / "tests" / f"test_{name}.py": _filled("test.py", words),
    }


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = files(__name__).joinpath(f"{template}.template").read_text(encoding="utf-8")
    return Template(text).substitute(words)
