"""Suites: every fault is told with its line, before anything trains."""

from __future__ import annotations

from typing import Any

import pytest

from effbench import suite as suites
from effbench.errors import InvalidSuite
from effbench.plugins import Plugins
from effbench.suite import Suite
from suite_text import ALONE, GOOD

FAULTS = [
    ('name = "mine"', 'nmae = "mine"', 1, "there is no key of a suite 'nmae'; did you mean 'name'?"),
    ('name = "mine"', "name = 3", 1, 'name = 3: write text in quotes, such as name = "quick"'),
    ('name = "mine"', 'name = "../mine"', 1, 'name = "../mine": it names a folder'),
    ('"5s"', '"60"', 3, "budget = '60': there is no unit. Units are:\n  seconds: wall seconds, as 60s"),
    ('"5s"', "true", 3, "budget = True: write an amount with its unit, in quotes. Units are:"),
    ('"5s"', "-1", 3, "budget = -1: write an amount with its unit"),
    ('"5s"', "nan", 3, "budget = nan: write an amount with its unit"),
    ('"5s"', '""', 3, "budget = '': "),
    ('"5s"', '"0s"', 3, "budget = '0s': "),
    ('"5s"', '"5 joule seconds"', 3, "\n  joules: counted by a plugin"),
    ('"5s"', '"11m"', 4, 'total = "10m" is less than budget = "11m", which is for one trial'),
    ('"10m"', '"5M tokens"', 4, 'total = "5M tokens": it bounds the whole suite in wall time, as 10m or 1h30m'),
    ('"10m"', '"ten"', 4, "total = 'ten': "),
    ("[0, 1, 2]", "3", 5, "seeds = 3: write a list of whole numbers, such as [0, 1, 2]"),
    ("[0, 1, 2]", "[0, 1.5]", 5, "seeds: 1.5 is none of whole numbers"),
    ("[0, 1, 2]", "[0, true]", 5, "seeds: true is none of whole numbers"),
    ("[0, 1, 2]", "[\n0,\n1,\n1]", 8, "seeds = [0, 1, 1]: 1 is listed twice"),
    ("[0, 1, 2]", "[-1]", 5, "seeds: -1 should be a whole number from 0"),
    ("[0, 1, 2]", "[]", 5, "seeds = []: list at least one"),
    ("seeds = [0, 1, 2]", "", 0, "there is no seeds; write, say, seeds = [0, 1, 2]"),
    ('["digits_mlp", "kjv_gpt"]', '"kjv_gpt"', 6, 'workloads = "kjv_gpt": write a list of names in quotes'),
    ('["digits_mlp", "kjv_gpt"]', '["kjv_gpt", ["x"]]', 6, 'workloads: ["x"] is none of names in quotes'),
    ('"digits_mlp", ', '"digit_mlp", ', 6, "there is no workload 'digit_mlp'; did you mean 'digits_mlp'?"),
    ('"digits_mlp", ', '"kjv_gpt", ', 6, '"kjv_gpt" is listed twice'),
    ("kjv_gpt = ", "kjv_gtp = ", 9, "in this suite there is no workload 'kjv_gtp'; did you mean 'kjv_gpt'?"),
    ("kjv_gpt = ", "digits_mlp = ", 0, ""),
    ('"100 joules"', '"-2s"', 9, "budgets.kjv_gpt = '-2s': "),
    ('"100 joules"', "100", 9, "budgets.kjv_gpt = 100: write an amount with its unit"),
    ('"100 joules"', '"20m"', 4, 'total = "10m" is less than budgets.kjv_gpt = "20m"'),
    ('[budgets]\nkjv_gpt = "100 joules"', 'budgets = "5s"', 8, 'budgets = "5s": write a table'),
    ("mixup = {}", "mixpu = {}", 12, "there is no technique 'mixpu'; did you mean 'mixup'? There is: ema, mixup"),
    (
        "mixup = {}",
        "mixup = 0.2",
        12,
        "mixup = 0.2: write the options in a table, such as mixup = {} or",
    ),
    ("mixup = {}", 'budget = "5s"', 12, "budget is a key of the suite, so write it above the first [[techniques]]"),
    ("mixup = {}", "", 11, ""),
    ("mixup = {}", "[[techniques]]", 12, "the empty set, which is the baseline, is listed twice"),
    ("mixup = {}", "mixup = { alpha = 0.1 }\nema = { steps = 2, decay = 0.9 }", 14, "is listed twice"),
    ("{ alpha = 0.1 }", "{ alhpa = 0.1 }", 14, "mixup has no option 'alhpa'; it has: alpha; did you mean 'alpha'?"),
    ("{ alpha = 0.1 }", '{ alpha = "0.1" }', 14, "mixup: option alpha is '0.1', which is text"),
    ("{ alpha = 0.1 }", "{ alpha = [2020-01-01] }", 14, "mixup: option alpha is [datetime.date(2020, 1, 1)]; a date"),
    ("steps = 2", "steps = 2.5", 15, "ema: option steps is 2.5, which is a number; it should be a whole number"),
    ("steps = 2", "bias = 2", 15, "ema: option bias is 2, which is a whole number; it should be true or false"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "said"), [case for case in FAULTS if case[3]])
def test_a_fault_is_told_with_its_line(
    right: str, wrong: str, line: int, said: str, written: Any, known: Plugins
) -> None:
    assert right in GOOD
    path = written(GOOD.replace(right, wrong, 1))
    with pytest.raises(InvalidSuite) as raised:
        suites.load(path, known)
    message = str(raised.value)
    assert said in message
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert message.count(str(path)) == 1
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(("right", "wrong"), [case[:2] for case in FAULTS if not case[3]])
def test_no_fault_is_told_where_there_is_none(right: str, wrong: str, written: Any, known: Plugins) -> None:
    suites.load(written(GOOD.replace(right, wrong, 1)), known)


def test_two_brackets_are_needed_for_techniques(written: Any, known: Plugins) -> None:
    with pytest.raises(InvalidSuite, match=r"mine\.toml:3: .*write a table \[\[techniques\]\], in two brackets"):
        suites.load(written('seeds = [0]\nworkloads = ["kjv_gpt"]\n[techniques]\nmixup = {}'), known)


def test_a_workloads_own_budget_counts_against_the_total(written: Any, known: Plugins) -> None:
    with pytest.raises(InvalidSuite, match=r':1: total = "5s" is less than the budget of kjv_gpt = "20s"'):
        suites.load(written('total = "5s"\nseeds = [0]\nworkloads = ["kjv_gpt"]'), known)


def test_defaults_that_are_written_out_make_no_other_set(written: Any, known: Plugins) -> None:
    with pytest.raises(InvalidSuite, match=r"mine\.toml:13: the set mixup\(alpha=0\.2\) is listed twice"):
        suites.load(written(GOOD.replace("alpha = 0.1 }\nema", "alpha = 0.2 }\n#")), known)


def test_all_faults_are_told_at_once_in_the_order_of_the_file(written: Any, known: Plugins) -> None:
    bad = GOOD.replace("5s", "5").replace("mixup = {}", "mixpu = {}").replace("[0, 1, 2]", "[1, 1]")
    with pytest.raises(InvalidSuite) as raised:
        suites.load(written(bad), known)
    told = [line.partition("mine.toml")[2] for line in str(raised.value).splitlines() if "mine.toml" in line]
    assert [where.split()[0] for where in told] == [":3:", ":5:", ":12:"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"name = ", r"mine\.toml: this is no TOML: Invalid value \(at end of document\)"),
        (b"\nseeds = [0]]", r"mine\.toml: this is no TOML: .*at line 2, column 12"),
        ('seeds = [0]\nname = "ä"'.encode("latin-1"), r"mine\.toml:2: this is no UTF-8"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(text: bytes, said: str, written: Any, known: Plugins) -> None:
    with pytest.raises(InvalidSuite, match=said):
        suites.load(written(text), known)


def test_a_suite_made_in_python_is_checked_alike(known: Plugins) -> None:
    suite = Suite("mine", ("kjv_gtp",), (0, 0), ({"mixup": {"alhpa": 1}},), budget="5")
    with pytest.raises(InvalidSuite) as raised:
        suite.check(known)
    message = str(raised.value)
    for said in ("did you mean 'kjv_gpt'?", "0 is listed twice", "budget = '5'", "did you mean 'alpha'?"):
        assert said in message
    assert message.startswith("suite 'mine': ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": (1.5,)}, "seeds: 1.5 should be a whole number from 0"),
        ({"seeds": (True,)}, "seeds: True should be a whole number from 0"),
        ({"seeds": ("0",)}, "seeds: '0' should be a whole number from 0"),
        ({"sets": (["mixup"],)}, "['mixup'] is no set of techniques; write one as"),
        ({"sets": ({"mixup": None},)}, "{'mixup': None} is no set of techniques; write one as"),
    ],
)
def test_what_only_python_can_say_is_checked_too(changes: dict[str, Any], said: str, known: Plugins) -> None:
    plain = {"name": "s", "workloads": tuple(known.workloads)[:1], "seeds": (0,)}
    with pytest.raises(InvalidSuite) as wrong:
        Suite(**{**plain, **changes}).check(known)
    assert said in str(wrong.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "kjv_gpt = [",
            "kjv_gtp = [",
            ":18: only: in this suite there is no workload 'kjv_gtp'; did you mean 'kjv_gpt'?",
        ),
        ("ema(decay=0.5)", "emma", ":18: only.kjv_gpt: there is no technique 'emma'; did you mean 'ema'?"),
        ("ema(decay=0.5)", "ema(decay=)", ":18: only.kjv_gpt: 'ema(decay=)': '' is no value of option decay"),
        ("ema(decay=0.5)", "mixup", ":18: only.kjv_gpt: the set mixup is listed twice for kjv_gpt"),
        ("ema(decay=0.5)", "mixup(alpha=0.3)", "only.kjv_gpt: the set mixup(alpha=0.3) is listed twice for kjv_gpt"),
        ('["ema(decay=0.5)", "mixup(alpha=0.3)"]', "3", ":18: only.kjv_gpt = 3: write a table: [only] and in it"),
    ],
)
def test_faults_of_sets_for_one_workload(written: Any, known: Plugins, old: str, new: str, says: str) -> None:
    with pytest.raises(InvalidSuite) as wrong:
        suites.load(written(ALONE.replace(old, new)), known)
    assert says in str(wrong.value)
