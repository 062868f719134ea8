"""Clocks of prices: how many steps a budget buys, known before any is taken."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from effbench.clock import (
    PricedClock,
)
from effbench.errors import InvalidBudget


def steps_of(amount, price, lumps=()) -> int:
    """The number of steps that a budget buys, known before any is taken."""
    clock = PricedClock(amount, price, lumps)
    step = 0
    while clock.at(step) < amount:
        step += 1
    return step


@pytest.mark.parametrize(
    ("amount", "price", "steps"),
    [(5, 0.1, 50), (0.9, 0.3, 3), (7, 0.7, 10), (10, 3, 4), (1, 2, 1), (1e4, 0.1, 100_000)],
)
def test_a_budget_buys_its_amount_by_the_price_in_spite_of_rounding(amount, price, steps):
    assert steps_of(amount, lambda progress: price) == steps


def test_each_phase_has_its_price_and_starts_on_its_step():
    assert steps_of(10, lambda progress: 0.1 if progress < 0.5 else 0.2) == 50 + 25


def test_steps_known_beforehand_are_those_that_a_run_gets():
    lumps = ((0.0, 1.0), (0.4, 0.7), (1.0, 0.3))

    def price(progress: float) -> float:
        return 0.05 + 0.1 * progress

    planned = steps_of(10, price, lumps)
    clock, run = PricedClock(10, price, lumps), SimpleNamespace(step=0)
    while clock.spent(run) < 10:
        run.step += 1
    assert run.step == planned


@pytest.mark.parametrize(
    ("lumps", "steps"),
    [
        ((), 10),
        (((0.0, 2.0),), 8),
        (((0.5, 2.0),), 8),
        (((1.0, 2.0),), 8),
        (((0.0, 1.0), (0.5, 2.0), (0.5, 1.0), (1.0, 2.0)), 4),
        (((0.0, 6.0), (0.5, 1.0)), 3),  # the first lump brings the second one about
        (((0.0, 20.0),), 0),
        (((1.0, 20.0),), 0),
    ],
)
def test_work_that_is_done_once_buys_fewer_steps(lumps, steps):
    assert steps_of(10, lambda progress: 1.0, lumps) == steps


def test_work_at_the_end_is_paid_in_advance_so_that_progress_runs_from_nothing_to_all():
    clock = PricedClock(10, lambda progress: 1.0, ((1.0, 2.0),))
    assert [clock.at(step) for step in range(9)] == pytest.approx([1.25 * step for step in range(9)])


def test_work_at_the_start_is_spent_before_the_first_step():
    clock = PricedClock(10, lambda progress: 1.0, ((0.0, 2.0),))
    assert [clock.at(step) for step in range(3)] == [2.0, 3.0, 4.0]


def test_a_priced_clock_only_goes_forward():
    clock = PricedClock(3, lambda progress: 0.2 * (2 - progress), ((0.3, 0.5), (1.0, 0.1)))
    spent = [clock.at(step) for step in range(12)]
    assert spent == sorted(spent)
    assert clock.at(11) == spent[-1]  # asking again pays nothing again


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan")])
def test_a_step_that_costs_nothing_is_refused_for_the_budget_would_never_end(price):
    clock = PricedClock(1, lambda progress: price)
    with pytest.raises(InvalidBudget, match=f"step 0 has the price {price}"):
        clock.at(1)
