"""`effbench new`: what it writes runs, keeps the laws, and passes its own test, from the first minute."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from effbench import cli, plugins, scaffold
from effbench.discovery import module_from_file
from effbench.errors import EffbenchError, UnknownName

PLACE = "data_centric/regularization/my_noise"


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_and_its_test(tmp_path: Path) -> None:
    written = scaffold.new_technique(PLACE, tmp_path)
    assert names(tmp_path) == ["my_noise.py", "test_my_noise.py"]
    assert written == [tmp_path / "my_noise.py", tmp_path / "test_my_noise.py"]
    loaded = plugins.load([str(written[0])], strict=True)
    assert loaded.techniques["my_noise"].leaf == "data_centric/regularization"
    assert loaded.origin("effbench_techniques", "my_noise") == "my_noise"


def test_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scaffold.new_technique(PLACE, tmp_path, package=True)
    folder = tmp_path / "effbench-my-noise"
    assert names(folder) == [
        "README.md",
        "pyproject.toml",
        "src/effbench_my_noise/__init__.py",
        "src/effbench_my_noise/my_noise.py",
        "tests/test_my_noise.py",
    ]
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["name"] == "effbench-my-noise"
    entry = project["project"]["entry-points"]["effbench"]["my_noise"]
    monkeypatch.syspath_prepend(folder / "src")
    assert plugins.load([entry], strict=True).origin("effbench_techniques", "my_noise") == entry


def test_a_technique_of_effbench_itself(tmp_path: Path) -> None:
    scaffold.new_technique(PLACE, tmp_path / "plugins" / "effbench_techniques")
    assert names(tmp_path) == [f"plugins/effbench_techniques/{PLACE}.py", "tests/techniques/test_my_noise.py"]
    source = (tmp_path / f"plugins/effbench_techniques/{PLACE}.py").read_text(encoding="utf-8")
    assert "hookimpl" not in source
    assert module_from_file(tmp_path / f"plugins/effbench_techniques/{PLACE}.py").my_noise.name == "my_noise"
    test = (tmp_path / "tests/techniques/test_my_noise.py").read_text(encoding="utf-8")
    assert "from effbench_techniques.data_centric.regularization.my_noise import my_noise\n" in test
    with pytest.raises(EffbenchError, match="is effbench's own; write a package elsewhere"):
        scaffold.new_technique(f"{PLACE}_2", tmp_path / "plugins" / "effbench_techniques", package=True)


def test_their_own_tests_pass(tmp_path: Path) -> None:
    file = scaffold.new_technique(PLACE, tmp_path)[1]
    package = scaffold.new_technique("model_centric/architecture/other_noise", tmp_path, package=True)
    paths = [str(tmp_path / "effbench-other-noise" / "src"), os.environ.get("PYTHONPATH", "")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        str(file),
        str(package[-1]),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("my_noise", "'my_noise' should be LEAF/NAME, such as data_centric/regularization/my_noise"),
        ("", "'' should be LEAF/NAME, such as data_centric/regularization/my_noise"),
        ("data_centric/samplin/my_noise", "did you mean 'data_centric/sampling'?"),
        ("data_centric/sampling/MyNoise", "'MyNoise' is no name of a technique; write lower-case words joined by _"),
        ("data_centric/sampling/lambda", "'lambda' is no name of a technique"),
        ("data_centric/sampling/mixup", "there is a technique 'mixup' already; `effbench show mixup`"),
        ("data_centric/sampling/random", "'random' is the name of a Python module, which a file random.py would hide"),
        ("data_centric/sampling/torch", "'torch' is the name of a Python module"),
        ("data_centric/sampling/baseline", "'baseline' is the name of the empty set of techniques"),
        ("data_centric/sampling/test_noise", "test_noise.py would be taken for a file of tests"),
    ],
)
def test_names_that_will_not_do(place: str, said: str, tmp_path: Path) -> None:
    with pytest.raises((EffbenchError, UnknownName)) as raised:
        scaffold.new_technique(place, tmp_path, known=["mixup"])
    assert said in str(raised.value)
    assert names(tmp_path) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "test_my_noise.py").write_text("mine", encoding="utf-8")
    with pytest.raises(EffbenchError, match=r"test_my_noise\.py is there already; choose another name"):
        scaffold.new_technique(PLACE, tmp_path)
    assert names(tmp_path) == ["test_my_noise.py"]


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        (
            [],
            ["effbench check my_noise.py", "effbench run smoke --plugin my_noise.py --technique my_noise"],
        ),
        (
            ["--package"],
            [
                "pip install -e 'effbench-my-noise[tests]'",
                "effbench check my_noise",
                "effbench run smoke --technique my_noise",
            ],
        ),
        (["--into", "deep/er"], ["pytest deep/er/test_my_noise.py", "effbench check deep/er/my_noise.py"]),
    ],
)
def test_the_command_says_what_to_do_next(
    options: list[str],
    steps: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "technique", PLACE, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {f"wrote {name}" for name in names(tmp_path)} == {line for line in lines if line.startswith("wrote ")}
    assert [step for step in steps if f"  {step}" not in lines] == []
    assert ("Its test needs pytest, which effbench does not bring: pip install pytest" in lines) != (
        "--package" in options
    )
