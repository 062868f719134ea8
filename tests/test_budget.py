"""Budgets: every unit, and every value that is no budget."""

from __future__ import annotations

import math
import random

import pytest

from effbench.budget import UNITS, Budget
from effbench.errors import InvalidBudget


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("60s", 60, "seconds"),
        ("60 s", 60, "seconds"),
        ("1h20m", 4800, "seconds"),
        ("1h 20m", 4800, "seconds"),
        ("5m", 300, "seconds"),
        ("5min", 300, "seconds"),
        ("2 min 30s", 150, "seconds"),
        ("100ms", 0.1, "seconds"),
        ("1d", 86400, "seconds"),
        (".5s", 0.5, "seconds"),
        ("1e-3s", 0.001, "seconds"),
        ("60s wall", 60, "seconds"),
        ("60 seconds", 60, "seconds"),
        ("60s cpu", 60, "cpu"),
        ("60 cpu", 60, "cpu"),
        ("1m30s cpu", 90, "cpu"),
        ("60s reference", 60, "reference"),
        ("60 reference", 60, "reference"),
        ("2000 steps", 2000, "steps"),
        ("1 step", 1, "steps"),
        ("2k steps", 2000, "steps"),
        ("3 epochs", 3, "epochs"),
        ("0.5 epochs", 0.5, "epochs"),
        ("1e6 examples", 1e6, "examples"),
        ("5M tokens", 5e6, "tokens"),
        ("5 M tokens", 5e6, "tokens"),
        ("5B tokens", 5e9, "tokens"),
        ("3e12 flop", 3e12, "flop"),
        ("3T flop", 3e12, "flop"),
        (" 60s ", 60, "seconds"),
    ],
)
def test_reads(text, amount, unit):
    assert Budget.parse(text) == Budget(amount, unit)


def test_every_unit_is_read_as_its_own_example_says():
    for unit, how in UNITS.items():
        for example in how.partition(", as ")[2].split(" or "):
            assert Budget.parse(example).unit == unit


@pytest.mark.parametrize(
    "value", [-1, 0, 60, 1.5, True, None, math.nan, math.inf, [60], {"seconds": 60}], ids=lambda value: repr(value)
)
def test_what_is_no_text_is_refused_with_the_name_of_the_key(value):
    with pytest.raises(InvalidBudget) as refused:
        Budget.parse(value, key="[budget] per_run")
    assert str(refused.value).startswith(f"[budget] per_run = {value!r}: write an amount with its unit, in quotes")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("60", "there is no unit"),
        ("", "no positive amount of a known unit"),
        ("-1 steps", "no positive amount of a known unit"),
        ("nan steps", "no positive amount of a known unit"),
        ("inf s", "no positive amount of a known unit"),
        ("0 steps", "positive and finite"),
        ("0s", "positive and finite"),
        ("1e400 steps", "positive and finite"),
        ("1e400s", "positive and finite"),
        ("10 parsecs", "no positive amount of a known unit"),
        ("3 flops", "did you mean 'flop'?"),
        ("3 epoch s", "no positive amount of a known unit"),
        ("60s CPU", "no positive amount of a known unit"),
        ("5 tokns", "did you mean 'tokens'?"),
        ("2,000 steps", "no positive amount of a known unit"),
    ],
)
def test_what_is_no_budget_is_refused_with_value_reason_and_units(text, why):
    with pytest.raises(InvalidBudget) as refused:
        Budget.parse(text, key="budget of mnist1d_cnn")
    message = str(refused.value)
    assert message.startswith(f"budget of mnist1d_cnn = {text!r}: ")
    assert why in message
    assert all(f"\n  {unit}: " in message for unit in UNITS)


@pytest.mark.parametrize("text", ["1" * 10**6 + " x", "1s" * 10**6, "1." * 10**6])
def test_what_is_endless_is_refused_at_once_and_cut_short(text):
    with pytest.raises(InvalidBudget, match="too long for an amount") as refused:
        Budget.parse(text)
    assert len(str(refused.value)) < 1000


def test_a_unit_of_a_plugin_is_read_and_listed():
    assert Budget.parse("100 joules", more_units=["joules"]) == Budget(100, "joules")
    with pytest.raises(InvalidBudget, match="joules: counted by a plugin, as 100 joules"):
        Budget.parse("100 jouls", more_units=["joules"])
    with pytest.raises(InvalidBudget, match="no positive amount"):
        Budget.parse("100 joules")


@pytest.mark.parametrize("amount", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_that_is_made_directly_is_checked_too(amount):
    with pytest.raises(InvalidBudget, match="a budget is a positive amount"):
        Budget(amount, "steps")


def test_what_is_written_reads_back_exactly():
    draw = random.Random(0)
    for unit in UNITS:
        for _ in range(200):
            budget = Budget(draw.random() * 10.0 ** draw.randint(-6, 18), unit)
            assert Budget.parse(str(budget)) == budget
    assert str(Budget(60, "seconds")) == "60s"
    assert str(Budget(60, "cpu")) == "60s cpu"
    assert str(Budget(0.1, "reference")) == "0.1s reference"
    assert str(Budget(5e6, "tokens")) == "5000000 tokens"
    assert str(Budget(3e12, "flop")) == "3e+12 flop"


def test_progress_is_the_share_that_is_spent():
    budget = Budget(4, "steps")
    assert [budget.progress(spent) for spent in (-1, 0, 1, 4, 5, math.inf)] == [0.0, 0.0, 0.25, 1.0, 1.0, 1.0]


def test_a_clock_that_says_nan_is_refused_for_it_would_never_end():
    with pytest.raises(InvalidBudget, match="the clock of the budget 4 joules says that nan joules are spent"):
        Budget(4, "joules").progress(math.nan)


def test_only_what_is_counted_costs_the_same_in_every_step():
    assert {unit for unit in UNITS if not Budget(1, unit).is_counted} == {"seconds", "cpu"}
    assert not Budget(1, "joules").is_counted
    assert [unit for unit in UNITS if Budget(1, unit).is_wall] == ["seconds"]
