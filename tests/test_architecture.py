"""The shape of the house: who may import whom, how big things are, and that one thing has one spelling."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import effbench
from effbench.cards import readme_table
from effbench.plugins import load

ROOT = Path(__file__).parent.parent
HARNESS = ROOT / "effbench"
TECHNIQUES = ROOT / "plugins" / "effbench_techniques"
SOURCES = sorted([*HARNESS.rglob("*.py"), *TECHNIQUES.rglob("*.py")])
FOLDERS = ("effbench", "plugins", "tests", "tools")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))

#: From the ground up: a part may import what lies in its own layer or below it.
LAYERS: list[tuple[str, set[str]]] = [
    (
        "words",
        {
            "errors",
            "taxonomy",
            "budget",
            "records",
            "rows",
            "reading",
            "toml",
            "sets",
            "factorial",
            "collecting",
            "hookspecs",
            "discovery",
            "lock",
            "store",
            "planned",
        },
    ),
    ("signals", {"interrupts", "observers", "switches"}),
    (
        "recipe",
        {
            "autograd",
            "averages",
            "clock",
            "data",
            "distributed",
            "losses",
            "models",
            "recipe",
            "techniques",
            "terms",
            "schedules",
            "optimizers",
            "surgery",
        },
    ),
    ("training", {"train", "pricing", "meters", "holdings"}),
    ("things", {"aside", "workloads", "toys", "laws"}),
    ("trial", {"identity", "machine", "trial", "course", "metering", "calibrate"}),
    (
        "running",
        {"plugins", "suite", "suite_file", "execution", "outcomes", "composing", "planning", "prices", "runner"},
    ),
    ("looking", {"analysis", "report", "trackers"}),
    (
        "surface",
        {
            "api",
            "cards",
            "catalogue",
            "messages",
            "schema",
            "scaffold",
            "arguments",
            "verbs",
            "commands",
            "cli",
            "__main__",
        },
    ),
]
#: What works from records alone: it starts fast, and runs where there is no torch.
WITHOUT_TORCH = {
    "rows",
    "reading",
    "collecting",
    *("errors", "budget", "records", "store", "hookspecs", "analysis", "report", "toml", "sets", "taxonomy"),
    "discovery",
    "lock",
    "planned",
}


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def module_of(file: Path) -> str:
    inside = file.relative_to(HARNESS).with_suffix("").parts
    return ".".join(("effbench", *(inside[:-1] if inside[-1] == "__init__" else inside)))


def imported(file: Path) -> Iterator[str]:
    """Yield what a file imports when it runs; imports for type checkers alone do not count."""

    def visit(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.ImportFrom) and child.module:
                yield from (
                    (f"effbench.{name.name}" for name in child.names) if child.module == "effbench" else [child.module]
                )
            elif isinstance(child, ast.Import):
                yield from (name.name for name in child.names)
            yield from visit(child)

    yield from visit(ast.parse(file.read_text(encoding="utf-8")))


def test_every_part_has_its_layer() -> None:
    parts = {part(module_of(file)) for file in HARNESS.rglob("*.py")} - {"effbench"}
    assert parts == set.union(*(members for _, members in LAYERS))


@pytest.mark.parametrize("file", sorted(HARNESS.rglob("*.py")), ids=module_of)
def test_imports_point_downward(file: Path) -> None:
    here = part(module_of(file))
    if here == "effbench":
        return  # the lazy public names
    layer = next(number for number, (_, members) in enumerate(LAYERS) if here in members)
    allowed = set.union(*(members for _, members in LAYERS[: layer + 1]))
    for module in imported(file):
        if module.startswith("effbench.") and part(module) not in {"__version__"}:
            assert part(module) in allowed, f"{here} lies in the layer {LAYERS[layer][0]!r} and imports {module}"
        assert not module.startswith("effbench_techniques"), f"the harness knows no technique; {here} imports {module}"


@pytest.mark.parametrize(
    "file", [file for file in sorted(HARNESS.rglob("*.py")) if part(module_of(file)) in WITHOUT_TORCH], ids=module_of
)
def test_what_works_from_records_imports_no_torch(file: Path) -> None:
    for module in imported(file):
        assert module.partition(".")[0] != "torch"
        if module.startswith("effbench."):
            assert part(module) in WITHOUT_TORCH | {"effbench"}, f"{module_of(file)} imports {module}"


def test_the_harness_names_no_technique() -> None:
    names = set(load().techniques)
    for file in HARNESS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                assert name not in names - {"adamw", "rmsnorm"}, f"{file.name}, line {node.lineno} knows {name}"


@pytest.mark.parametrize(
    "command", [["--help"], ["run", "--help"], ["table", "--help"], ["table", "empty"], ["report", "empty"]]
)
def test_looking_imports_no_torch(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "records.jsonl").touch()
    code = f"""
import sys
from effbench.cli import main
try:
    main({command!r})
except SystemExit:
    pass
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_modules_stay_small(file: Path) -> None:
    lines = len(file.read_text(encoding="utf-8").splitlines())
    assert lines <= 300, f"{file} has {lines} lines: is it still one idea?"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_functions_stay_small(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            documented = ast.get_docstring(node, clean=False) or ""
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - documented.count("\n")
            assert lines <= 60, f"{file.name}: {node.name} has {lines} lines"


#: `noqa: CODE - why`, or `type: ignore[code]  # why`, which is how mypy wants it.
SILENCER = re.compile(r"#\s*(?:ruff:\s*)?noqa|#\s*type:\s*ignore")
EXPLAINED = re.compile(r"noqa: [A-Z]+\d+(, [A-Z]+\d+)* - \S|type: ignore\[[\w, -]+\]  # \S")
BROAD = {"BaseException", "Exception"}


def catches_all(node: ast.AST) -> bool:
    """Whether a node is an `except` or a `suppress` for whatever is raised."""
    if isinstance(node, ast.ExceptHandler):
        caught = [node.type] if node.type else [ast.Name("BaseException")]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        caught = node.args
    else:
        return False
    return any(name.id in BROAD for each in caught for name in ast.walk(each) if isinstance(name, ast.Name))


def unexplained(file: Path) -> Iterator[str]:
    """Yield the lines that switch a check off, or catch whatever is raised, and do not say why."""
    with file.open("rb") as opened:
        tokens = tokenize.tokenize(opened.readline)
        comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    for line, comment in comments.items():
        if SILENCER.match(comment) and not EXPLAINED.search(comment):
            yield f"{file.name}, line {line}: {comment}"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if catches_all(node) and node.lineno not in comments:
            yield f"{file.name}, line {node.lineno}: it catches whatever is raised"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_not_checked_or_caught_whatever_it_is_has_its_reason(file: Path) -> None:
    assert not list(unexplained(file)), "say why on the same line"


def test_a_missing_reason_is_found(tmp_path: Path) -> None:
    silenced = ["# ruff: noqa", "import a  # noqa", "import b  # noqa: F401", "c = d()  # type: ignore[misc]"]
    caught = ["with suppress(Exception):", "    e()", "try:", "    f()", "except (OSError, BaseException):", "    pass"]
    file = tmp_path / "silent.py"
    file.write_text("\n".join(silenced + caught), encoding="utf-8")
    lines = sorted(int(found.partition("line ")[2].partition(":")[0]) for found in unexplained(file))
    assert lines == [1, 2, 3, 4, 5, 9]
    reasons = ["import b  # noqa: F401 - for its hooks", "c = d()  # type: ignore[misc]  # a stub lacks it"]
    file.write_text("\n".join([*reasons, "with suppress(Exception):  # it may be a stranger's", "    e()"]))
    assert not list(unexplained(file))


def test_a_technique_has_one_spelling_everywhere() -> None:
    techniques = load().techniques
    files = {file.stem: file for file in TECHNIQUES.rglob("*.py") if file.name != "__init__.py"}
    assert set(techniques) == set(files)
    for name, technique in techniques.items():
        assert technique.function.__name__ == name
        assert technique.leaf == files[name].parent.relative_to(TECHNIQUES).as_posix()


@pytest.mark.parametrize("name", sorted(load().techniques))
def test_every_technique_has_its_oracle(name: str) -> None:
    assert (ROOT / "tests" / "techniques" / f"test_{name}.py").is_file()


def test_the_readme_lists_every_technique() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    begin, end = "<!-- techniques: made by tools/refresh.py -->\n", "<!-- end of techniques -->"
    shown = readme[readme.index(begin) + len(begin) : readme.index(end)]
    assert shown.strip() == readme_table(load().techniques.values()).strip(), (
        "write the table anew: python tools/refresh.py"
    )


def test_public_names_exist() -> None:
    for name in effbench.__all__:
        assert getattr(effbench, name) is not None
