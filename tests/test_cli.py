"""The command line itself: what it accepts, and how it fails."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import effbench.commands
from command_line import told
from effbench import cli
from effbench.arguments import Verb
from effbench.commands import list as listing
from effbench.errors import DataUnavailable
from effbench.verbs import VERBS

#: What the command line promises. Scripts rely on it: take nothing away, and add with care.
PROMISED = """
run SUITE --budget B --total T --seeds LIST --technique SET... --workload NAME... --out DIR --jobs N --threads N
    --device D --data NAME=PATH... --fail-fast --dry-run --fresh --track T... --until-decided --margin SIZE
    --plugin X... --strict-plugins
calibrate SUITE --technique SET... --workload NAME... --out DIR --jobs N --threads N --device D --data NAME=PATH...
    --fresh --plugin X... --strict-plugins
aa SUITE --budget B --total T --seeds LIST --workload NAME... --out DIR --jobs N --threads N --device D
    --data NAME=PATH... --fresh --plugin X... --strict-plugins
table [RESULTS...] --format F --metric M --workload NAME --against SET --by WHAT --columns LIST --sort COLUMN --style S
    -o FILE --plugin X... --strict-plugins
scores [RESULTS...] --metric M --json
claims [RESULTS...] --metric M --workload NAME --json
report [RESULTS...] -o FILE --title T --plugin X...
plot KIND [RESULTS...] --metric M --workload NAME -o FILE
seeds [RESULTS...] --effect SIZE --power P --metric M --workload NAME --json
explain A B --json
merge RESULTS... --into DIR
list [WHAT] --json --plugin X... --strict-plugins
show NAME --plugin X... --strict-plugins
data [ACTION] [NAME] --from DIR --plugin X... --strict-plugins
new WHAT LEAF/NAME --package --into DIR
check NAME --plugin X... --strict-plugins
completion SHELL --plugin X... --strict-plugins
"""


def promised(verb: Verb) -> str:
    words = [verb.name]
    for argument in verb.arguments:
        word = " ".join(part for part in (argument.name, argument.metavar) if part)
        word += "..." if argument.several else ""
        words.append(f"[{word}]" if argument.optional else word)
    return " ".join(words)


def test_verbs_and_options_are_those_promised() -> None:
    assert [promised(verb) for verb in VERBS.values()] == " ".join(PROMISED.split("\n    ")).strip().split("\n")


def test_each_verb_has_a_module_and_each_module_a_verb() -> None:
    helpers = {"layout", "plugins_of", "dry_run"}
    assert {found.name for found in pkgutil.iter_modules(effbench.commands.__path__)} - helpers == set(VERBS)
    for verb in VERBS:
        assert callable(importlib.import_module(f"effbench.commands.{verb}").run)


def test_options_cannot_be_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    assert "run: there is no option '--budge'; did you mean '--budget'?" in told(
        capsys, "run", "quick", "--budge", "5s"
    )


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_is_short_and_fits(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([*([verb] if verb else []), "--help"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"usage: effbench {verb}".rstrip())
    assert len(shown) <= 40
    assert max(map(len, shown[: shown.index("examples:")])) <= 80
    assert shown[shown.index("examples:") + 1].startswith("  effbench ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "csv", "a", "b"],
        ["a", "--format", "csv", "b"],
        ["a", "b", "--format=csv"],
        ["--traceback", "a", "--metric", "loss", "b", "--format", "csv"],
    ],
)
def test_options_may_stand_anywhere(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[argparse.Namespace] = []
    table = importlib.import_module("effbench.commands.table")
    monkeypatch.setattr(table, "run", lambda arguments: asked.append(arguments) or 0)
    assert cli.main(["table", *arguments]) == 0
    assert (asked[0].results, asked[0].format) == (["a", "b"], "csv")


def test_an_optional_word_is_found_behind_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--from nowhere: there is no such folder" in told(
        capsys, "data", "fetch", "--from", "nowhere", "cifar10", code=3
    )


def test_without_arguments_it_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {verb.name:<12}{verb.summary}\n" in shown for verb in VERBS.values())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"effbench {effbench.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], "there is no command 'rnu'; did you mean 'run'? There is: aa, calibrate,"),
        (["--plugin"], "the following arguments are required: COMMAND; `effbench --help` shows how it is used"),
        (["run"], "the following arguments are required: SUITE; `effbench run --help` shows how it is used"),
        (["run", "quick", "more"], "run takes no 'more'; `effbench run --help` shows what it takes"),
        (["run", "quick", "--jobs", "0"], "argument --jobs: '0' should be a whole number from 1"),
        (["run", "quick", "--seeds", "2-0"], "argument --seeds: '2-0' should be seeds such as 0,1,2 or 0-4"),
        (["run", "quick", "--data", "x"], "argument --data: 'x' should be NAME=PATH"),
        (["list", "tecniques"], "there is no list of 'tecniques'; did you mean 'techniques'?"),
        (["completion", "csh"], "there is no completion for 'csh'; did you mean 'zsh'?"),
        (["table", "--format", "htm", "no"], "--format: there is no format 'htm'; did you mean 'html'?"),
        (["table", "nowhere"], "nowhere"),
        (["run", "quik"], "there is no suite 'quik'; did you mean 'quick'?"),
        (["show", "mixpu"], "there is no technique, workload, suite or data set 'mixpu'; did you mean 'mixup'?"),
        (["check", "mixpu"], "there is no technique 'mixpu'; did you mean 'mixup'?"),
        (["run", "quick", "--technique", "mixpu"], "--technique 'mixpu': there is no technique 'mixpu'; did you mean"),
        (["run", "quick", "--technique", "mixup(alhpa=1)"], "mixup has no option 'alhpa'; it has: alpha"),
        (["run", "quick", "--technique", "mixup("], "'mixup(': its brackets do not match"),
        (["run", "quick", "--workload", "kjv_gtp"], "--workload: there is no workload 'kjv_gtp'; did you mean"),
        (["run", "quick", "--data", "mnits1d=/x"], "--data: there is no data set 'mnits1d'; did you mean 'mnist1d'?"),
        (["run", "quick", "--budget", "60 apples"], "--budget = '60 apples': did you mean 'examples'? Units are:\n"),
        (["run", "quick", "--budget", "60"], "--budget = '60': there is no unit. Units are:\n  seconds: wall seconds"),
        (["run", "quick", "--total", "5 steps"], '--total = "5 steps": it bounds the whole suite in wall time'),
        (["run", "smoke", "--budget", "9s", "--total", "5s"], 'total = "5s" is less than budget = "9s"'),
        (["run", "smoke", "--jobs", "99999"], "jobs = 99999: write a whole number from 1 to 1024"),
        (["run", "smoke", "--threads", "9999999999"], "threads = 9999999999: write a whole number from 1 to 1024"),
        (
            ["run", "smoke", "--device", "gpu"],
            "nothing can run on the device 'gpu' here; write cpu, or cuda:0: Expected",
        ),
        (["calibrate", "smoke", "--device", "meta"], "nothing can run on the device 'meta' here; write cpu"),
        (["run", "smoke", "--device", ""], "nothing can run on the device '' here; write cpu"),
        (["run", "smoke", "--plugin", "nowhere.py"], "--plugin nowhere.py: there is no such file"),
    ],
)
def test_usage_errors_name_the_near_right_thing(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in told(capsys, *arguments)
    assert not list(tmp_path.iterdir())


def raising(fault: BaseException) -> object:
    def run(arguments: argparse.Namespace) -> int:
        raise fault

    return run


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (DataUnavailable("data set 'x' is not here"), 3, "effbench: data set 'x' is not here\n"),
        (KeyboardInterrupt(), 130, "effbench: interrupted\n"),
        (
            GeneratorExit(),
            1,
            "effbench: GeneratorExit. This is a fault in effbench or in a plugin; --traceback shows where\n",
        ),
        (PermissionError(13, "Permission denied", "/x"), 2, "effbench: /x: Permission denied\n"),
        (
            ValueError("7"),
            1,
            "effbench: ValueError: 7. This is a fault in effbench or in a plugin; --traceback shows where\n",
        ),
    ],
)
def test_each_fault_has_its_exit_code_and_one_line(
    fault: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "run", raising(fault))
    assert told(capsys, "list", code=code) == said
    assert cli.main(["list", "--traceback"]) == code
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):\n")
    assert "raise fault" in err


def test_warnings_are_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: argparse.Namespace) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = cli._show_warning
            warnings.warn("a line is cut off\nsecond line", stacklevel=1)
        return 0

    monkeypatch.setattr(listing, "run", run)
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().err == "effbench: warning: a line is cut off ...\n"


def test_a_broken_plugin_costs_one_line_and_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no\\nway')")
    assert cli.main(["list", "plugins", "--plugin", str(broken)]) == 0
    out, err = capsys.readouterr()
    assert err == f"effbench: warning: plugin broken ({broken}) is not loaded: SystemExit: no ...\n"
    assert "builtin" in out
    assert cli.main(["list", "plugins", "--plugin", str(broken), "--traceback"]) == 0
    assert 'raise SystemExit("no' in capsys.readouterr().err.replace("'", '"')
    assert "plugin broken" in told(capsys, "list", "--plugin", str(broken), "--strict-plugins")


@pytest.mark.parametrize(
    "call",
    [
        "main(['--help'])",
        "main(['run', '--help'])",
        "main(['rnu'])",
        "main(['table', 'results'])",
        "main(['table', 'results', '--format', 'latex', '-o', 'x.tex'])",
        "main(['list', 'suites'])",
    ],
)
def test_what_needs_no_torch_does_without(call: str, tmp_path: Path) -> None:
    from record_factory import record

    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "records.jsonl").write_text(record().to_json() + "\n", encoding="utf-8")
    heavy = {"torch", *(("pandas", "numpy", "scipy", "pluggy", "rich", "wcwidth") if "--help" in call else ())}
    code = f"import sys; from effbench.cli import main; {call}; sys.exit(bool({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False).returncode == 0
