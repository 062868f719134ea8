"""What each verb does and writes, for people and for programs."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from effbench import catalogue, cli, plugins
from effbench.commands import check, completion, layout
from effbench.commands.table import newest
from effbench.discovery import module_from_file
from effbench.errors import EffbenchError
from effbench.report.console import Screen, display_width
from effbench.store import Store
from effbench.taxonomy import LEAVES
from effbench.verbs import KINDS, VERBS
from record_factory import record
from running import MISBEHAVING

WIDE = Screen(width=120)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command writes; it says nothing on standard error."""
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """What a failing command says; it writes nothing."""
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    return err


# --- list ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_lists_for_programs_are_objects_with_a_name(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    things = json.loads(shown(capsys, "list", kind, "--json"))
    names = [thing["name"] for thing in things]
    assert names
    assert len(set(names)) == len(names)
    assert all(name.rpartition("/")[2] in shown(capsys, "list", kind) for name in names)


def test_techniques_stand_below_their_leaf(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "list").splitlines()
    assert lines[0] == "data_centric/regularization  augment the examples"
    mixup = next(line for line in lines if line.startswith("  mixup "))
    assert mixup.endswith("  Train on convex combinations of two examples and of their labels.")
    leaves = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert leaves == sorted(leaves, key=LEAVES.index)


def test_the_taxonomy_shows_what_is_covered(capsys: pytest.CaptureFixture[str]) -> None:
    things = json.loads(shown(capsys, "list", "taxonomy", "--json"))
    assert [thing["name"] for thing in things] == list(LEAVES)
    assert "mixup" in things[0]["techniques"]
    assert all(thing["techniques"] for thing in things)  # every leaf of the taxonomy holds some
    assert "none yet" not in shown(capsys, "list", "taxonomy")


def test_technique_of_a_plugin_is_listed_with_its_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, "new", "technique", "data_centric/sampling/my_noise")
    things = json.loads(shown(capsys, "list", "--json", "--plugin", "my_noise.py"))
    mine = next(thing for thing in things if thing["name"] == "my_noise")
    assert mine["plugin"] == "my_noise"
    assert mine["options"] == {"strength": 0.1}
    assert mine["neutral"] == {"strength": 0.0}


def test_suites_are_listed_with_their_trials(capsys: pytest.CaptureFixture[str]) -> None:
    quick = next(thing for thing in json.loads(shown(capsys, "list", "suites", "--json")) if thing["name"] == "quick")
    assert quick["trials"] == 3 * 5 * 3
    assert quick["techniques"][0] == "baseline"
    assert "45 x 5s reference" in shown(capsys, "list", "suites")


# --- show ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("mixup", ["mixup", "Options and their defaults", '  effbench run quick --technique "mixup(alpha=0.2)"']),
        ("digits_mlp", ["  data set   digits", "  target     accuracy >= 0.99 on validation"]),
        ("smoke", ["  trials  6, of 2 seeds (0, 1)", "  digits_mlp  40 steps"]),
        ("kjv", ["  task     language modelling", "  here     yes"]),
    ],
)
def test_everything_is_shown_by_name(name: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", name).splitlines()
    assert [line for line in lines if line not in text] == []


def test_what_has_one_name_is_shown_together(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", "kjv_books")
    assert text.count("\nkjv_books\n") + text.startswith("kjv_books\n") == 2
    assert "  licence  " in text
    assert "  model      " in text


def test_a_suite_is_shown_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.toml").write_text('seeds = [7]\nworkloads = ["digits_mlp"]\n[[techniques]]\nema = {}', encoding="utf-8")
    text = shown(capsys, "show", "mine.toml")
    assert text.startswith("mine\n\n  trials  2, of 1 seed (7)\n")
    assert text.endswith("Techniques\n  baseline\n  ema\n")
    assert "suite.schema.json, for editors" in text


# --- data ---------------------------------------------------------------------------------------------------------


def test_data_sets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "data")
    assert text == shown(capsys, "data", "list") == shown(capsys, "list", "datasets")
    assert text.splitlines()[0].split() == ["data", "set", "here", "MiB", "what", "it", "is"]


def test_what_is_here_is_not_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "data", "fetch", "kjv") == "kjv is here already.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fetch"], 2, "needs the name of a data set. There is: "),
        (["fetch", "kvj"], 2, "there is no data set 'kvj'; did you mean 'kjv'?"),
        (["list", "kjv"], 2, "takes no name; `effbench show NAME` tells about one data set"),
        (["fetch", "kjv", "--from", "."], 3, "data set 'kjv' is not taken from a folder; it comes from"),
        (["fetch", "cifar10", "--from", "nowhere"], 3, "--from nowhere: there is no such folder"),
    ],
)
def test_what_cannot_be_fetched(arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in told(capsys, "data", *arguments, code=code)


# --- table --------------------------------------------------------------------------------------------------------


def results(folder: str, value: float) -> None:
    store = Store(folder)
    store.check_writable()
    for seed in range(3):
        store.append(record(seed=seed))
        store.append(record("mixup", seed=seed, value=value + 0.002 * seed))


def test_the_newest_results_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    results("results/old", 0.7)
    results("results/new", 0.9)
    os.utime("results/old/records.jsonl", (1, 1))
    rows = list(csv.DictReader(shown(capsys, "table", "--format", "csv").splitlines()))
    assert [(row["technique"], round(float(row["mean"]), 3)) for row in rows] == [("baseline", 0.801), ("mixup", 0.902)]
    assert shown(capsys, "table", "results/old") != shown(capsys, "table") == shown(capsys, "table", "results/new")


def test_no_results_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert f"there are no results below {tmp_path / 'results'}; run a suite first" in told(capsys, "table")
    with pytest.raises(EffbenchError, match="no results below"):
        newest(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "there are no records in empty; run a suite into it first" in told(capsys, "table", "empty")


def test_tables_are_written_to_a_file_as_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    results("results/one", 0.9)
    assert shown(capsys, "table", "--format", "markdown", "-o", "one.md") == ""
    assert "Δ vs baseline" in Path("one.md").read_text(encoding="utf-8")
    assert "nowhere/one.md: No such file or directory" in told(capsys, "table", "-o", "nowhere/one.md")


def test_a_plugin_may_offer_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    results("results/one", 0.9)
    hook = "def effbench_table_formats():\n    return {'count': lambda tables: str(len(tables))}"
    Path("mine.py").write_text(f"import effbench\n@effbench.hookimpl\n{hook}", encoding="utf-8")
    assert shown(capsys, "table", "--format", "count", "--plugin", "mine.py") == "1\n"
    assert "there is no format 'coutn'; did you mean 'count'?" in told(
        capsys, "table", "--format", "coutn", "--plugin", "mine.py"
    )


# --- check --------------------------------------------------------------------------------------------------------

LAWLESS = '''
from effbench import Recipe, technique

@technique("data_centric/regularization", paper="Nobody, Nothing, arXiv:0000.00000", claim="none", neutral={"by": 1.0})
def lawless(recipe: Recipe, *, by: float = 1.0) -> Recipe:
    """Shift the loss.

    by: how much.
    """
    return recipe.wrap(loss=lambda outputs, batch: outputs.sum(1))
'''


@pytest.fixture
def _small_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check pairs with mixup alone: pairs with all techniques, compiled ones too, are for the tests of the laws."""
    all_pairs = check.in_company
    monkeypatch.setattr(check, "in_company", lambda technique, known: all_pairs(technique, {"mixup": known["mixup"]}))


@pytest.mark.usefixtures("_small_company")
def test_check_tells_which_law_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    Path("lawless.py").write_text(LAWLESS, encoding="utf-8")
    lines = shown(capsys, "check", "lawless.py", code=1).splitlines()
    assert lines[0] == "lawless"
    verdicts = {line.split()[1]: line.split()[0] for line in lines[1:]}
    assert verdicts["described"] == "kept"
    assert verdicts["neutral"] == verdicts["wraps"] == "broken"
    assert any(line.startswith("  broken  wraps") and "never calls the old one" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("nowhere.py", None, "there is no file"),
        ("loop.py", "a loop", "there is no file"),
        ("empty.py", "x = 1", "empty.py defines no technique; mark a function with @effbench.technique(...)"),
        ("broken.py", "import nothing_at_all", "broken.py cannot be imported: ModuleNotFoundError"),
        ("leaving.py", "raise SystemExit", "leaving.py cannot be imported: SystemExit"),
        ("taken.py", LAWLESS.replace("lawless", "mixup"), "there is a technique 'mixup' already, in "),
    ],
)
def test_what_cannot_be_checked(name: str, text: str | None, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    if text == "a loop":
        Path(name).symlink_to(name)
    elif text is not None:
        Path(name).write_text(text, encoding="utf-8")
    assert said in told(capsys, "check", name)


@pytest.mark.usefixtures("_small_company")
def test_a_built_in_technique_is_checked_by_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    from effbench_techniques.optimization_centric.objective import label_smoothing

    lines = shown(capsys, "check", str(label_smoothing.__file__)).splitlines()
    assert lines[0] == "label_smoothing"
    assert {line.split()[0] for line in lines[1:]} == {"kept"}
    assert lines[-1].split() == ["kept", "pairs", "in", "1", "pair"]


# --- run, dry run, calibrate --------------------------------------------------------------------------------------


def test_a_suite_runs_and_goes_on_where_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "smoke", "--seeds", "0", "--budget", "6 steps", "--technique", "seq_length_warmup"]
    assert cli.main([*asked, "--dry-run"]) == 0
    plan = capfd.readouterr().out
    assert plan.startswith("smoke: 3 of 4 trials to run\n")
    assert "1 will be skipped\n  digits_mlp  seq_length_warmup  seq_length_warmup cuts sequences" in plan
    assert not Path("results").exists()

    assert cli.main(asked) == 0
    out, err = capfd.readouterr()
    assert "mixup(alpha=0.1)+ema" in out or "ema+mixup(alpha=0.1)" in out
    assert out.endswith("The records are in results/smoke; `effbench table results/smoke` shows this again.\n")
    assert "[4/4]" in err
    records = Store("results/smoke").records()
    assert sorted(each.status for each in records) == ["ok", "ok", "ok", "skipped"]
    assert {each.steps for each in records if each.status == "ok"} == {6}

    assert cli.main([*asked, "--dry-run"]) == 0
    plan = capfd.readouterr().out
    assert plan.startswith("smoke: 0 of 4 trials to run\n")
    assert "3 are finished: their records in results/smoke are kept." in plan
    assert plan.endswith("Nothing is left to train.\n")
    assert cli.main([*asked, "--dry-run", "--fresh"]) == 0
    assert capfd.readouterr().out.startswith("smoke: 3 of 4 trials to run\n")


def test_a_dry_run_tells_what_comes_first_and_last(capsys: pytest.CaptureFixture[str]) -> None:
    plan = shown(capsys, "run", "smoke", "--dry-run", "--budget", "1s reference", "--total", "1h", "--jobs", "1")
    assert "First it is measured what a step costs, for 2 of them: 3 s or more, once." in plan
    assert "Training, 1 at a time, 1 thread each: about 6 s, and set-up and evaluation on top." in plan
    assert plan.endswith("What cannot end within 1h will not be started.\n")


def test_a_dry_run_tells_what_will_be_skipped_and_what_will_fail(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["--technique", "broken", "--technique", "unwilling", "--technique", "slow"]
    plan = shown(capsys, "run", "smoke", "--workload", "toy", "--plugin", str(MISBEHAVING), *sets, "--dry-run")
    skipped = plan.index("will be skipped")
    assert "smoke: 8 of 12 trials to run" in plan  # two seeds of six sets
    assert "broken" not in plan[:skipped]
    assert "2 will fail\n  toy  broken  ZeroDivisionError: broken at once\n" in plan
    assert "toy  unwilling" in plan[skipped : plan.index("will fail")]


def test_what_needs_no_prices_is_not_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calibrate", "smoke"]) == 0
    assert capsys.readouterr().out == "smoke needs no prices: its budgets are not in reference-seconds or FLOP.\n"


def test_a_folder_that_cannot_be_written_is_found_before_anything_trains(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("", encoding="utf-8")
    assert "file/results" in told(capsys, "run", "smoke", "--out", "file/results")


# --- completion ---------------------------------------------------------------------------------------------------

OFFERED = [
    ("", ["run", "table", "completion"], ["quick", "--budget"]),
    ("run q", ["quick"], ["smoke"]),
    ("run --f", ["--fail-fast", "--fresh"], ["--budget"]),
    ("run quick --technique mix", ["mixup"], ["mnist1d_cnn"]),
    ("run quick --workload kjv_g", ["kjv_gpt"], ["mixup"]),
    ("table --format ", ["latex", "html"], ["--metric"]),
    ("list tech", ["techniques"], ["taxonomy"]),
    ("new technique data_centric/s", ["data_centric/sampling/"], ["data_centric/curriculum/"]),
    ("show mnist5k_", ["mnist5k_resnet"], ["mixup"]),
]


def offered_by_bash(script: str, typed: str) -> list[str]:
    words = ["effbench", *typed.split(" ")]
    listed = " ".join(f"'{word}'" for word in words)
    call = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _effbench; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(
        ["bash", "-c", f"{script}\n{call}"], capture_output=True, text=True, check=True
    ).stdout.split()


def offered_by_fish(script: str, typed: str) -> list[str]:
    Path("effbench.fish").write_text(script, encoding="utf-8")
    call = f"source effbench.fish; complete -C 'effbench {typed}'"
    found = subprocess.run(["fish", "-c", call], capture_output=True, text=True, check=True).stdout
    return [line.partition("\t")[0] for line in found.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("typed", "there", "absent"), OFFERED)
def test_shells_offer_what_fits(
    shell: str, typed: str, there: list[str], absent: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    offered = {"bash": offered_by_bash, "fish": offered_by_fish}[shell](shown(capsys, "completion", shell), typed)
    assert set(there) <= set(offered)
    assert not set(absent) & set(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_have_all_verbs_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = shown(capsys, "completion", shell)
    flags = {"bash": "{}", "zsh": "{}", "fish": "-l {}"}[shell]
    for verb in VERBS.values():
        assert verb.name in script
        for argument in verb.arguments:
            if argument.name.startswith("--"):
                assert flags.format(argument.name if shell != "fish" else argument.name[2:]) in script
    if shutil.which(shell) is not None:
        Path("script").write_text(script, encoding="utf-8")
        subprocess.run([shell, "-n", "script"], check=True)


def test_completion_knows_leaves_and_all_names() -> None:
    names = completion.known_names(plugins.load())
    assert "data_centric/sampling/" in names["leaves"]
    assert {"mixup", "kjv_gpt", "quick", "cifar10"} <= set(names["names"])


# --- columns ------------------------------------------------------------------------------------------------------


def test_columns_are_aligned_and_the_last_one_is_wrapped() -> None:
    rows = [("a", "1", "short"), ("long_name", "22", "word " * 12), ("数", "3", "wide")]
    lines = layout.columns(rows, Screen(width=50), title=("name", "n", "what"), indent=2)
    assert lines == [
        "  name       n   what",
        "  a          1   short",
        "  long_name  22  word word word word word word",
        "                 word word word word word word",
        "  数         3   wide",
    ]
    assert max(map(display_width, lines)) <= 50


def test_pipes_get_one_line_a_row() -> None:
    lines = layout.columns([("a", "word " * 50)], Screen())
    assert len(lines) == 1
    assert layout.columns([], Screen()) == []
    assert layout.paragraph("word " * 50, Screen(width=40), indent=4)[1] == "    word word word word word word word"


def test_titles_are_bold_where_there_are_colours() -> None:
    assert layout.columns([("a", "b")], Screen(colour=True), title=("x", "y"))[0] == "\033[1mx  y\033[0m"


# --- the catalogue ------------------------------------------------------------------------------------------------


def test_a_broken_plugin_is_listed_with_its_fault() -> None:
    Path("broken.py").write_text("raise ValueError('no')", encoding="utf-8")
    things = catalogue.loaded_plugins(plugins.load(["broken.py"]))
    assert things[-1]["problem"] == "ValueError: no"
    assert things[-1]["offers"] == {}
    assert "mixup" in next(thing for thing in things if thing["name"] == "builtin")["offers"]["techniques"]


def test_options_that_json_lacks_are_written_out() -> None:
    text = LAWLESS.replace("by: float = 1.0", "by: object = object").replace(', neutral={"by": 1.0}', "")
    Path("odd.py").write_text(text, encoding="utf-8")
    loaded = plugins.load()
    loaded.techniques["lawless"] = module_from_file(Path("odd.py")).lawless
    odd = next(thing for thing in catalogue.techniques(loaded) if thing["name"] == "lawless")
    assert odd["options"] == {"by": "<class 'object'>"}
