"""Prices as values: what a step costs, what a budget buys, what cannot be right."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effbench.pricing import Phase, Price, PriceError, number_of_steps, phase_starts, relative_cost


def phase(start: float, cost: float, size: float = 1.0) -> Phase:
    return Phase(start, cost, cost, cost, cost, 100, size)


def test_a_price_is_that_of_its_phase():
    price = Price("reference", (phase(0.0, 1.0), phase(0.5, 2.0), phase(0.75, 4.0)))
    assert [price.at(progress) for progress in (0.0, 0.499, 0.5, 0.7, 0.75, 1.0)] == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]


def test_a_price_survives_json():
    price = Price("flop", (phase(0.0, 1.5), phase(0.5, 2.0)), ((0.5, 0.1), (1.0, 3.0)))
    assert Price.from_plain(json.loads(json.dumps(price.to_plain()))) == price


@pytest.mark.parametrize(
    ("price", "steps"),
    [
        (Price("reference", (phase(0.0, 0.5),)), 20),
        (Price("reference", (phase(0.0, 0.5), phase(0.5, 1.0))), 15),  # 10 for the first half, 5 for the second
        (Price("reference", (phase(0.0, 0.5),), ((0.5, 2.0),)), 16),  # growing costs as much as four steps
        (Price("reference", (phase(0.0, 0.5),), ((1.0, 2.0),)), 16),  # so does averaging at the end
    ],
)
def test_a_budget_buys_steps(price, steps):
    assert number_of_steps(price, 10.0) == steps


@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.floats(1.0, 30.0))
def test_what_is_bought_costs_the_budget(first, second, amount):
    price = Price("reference", (phase(0.0, first), phase(0.5, second)))
    steps = number_of_steps(price, amount)
    assert amount / max(first, second) - 1 <= steps <= amount / min(first, second) + 2


def test_a_bigger_step_cannot_be_cheaper():
    growing = (phase(0.0, 2.0, size=1.0), phase(0.5, 1.0, size=2.0))
    with pytest.raises(
        PriceError, match=r"the step at progress 0.50 is bigger than that at 0.00 and yet seems cheaper"
    ):
        Price("reference", growing).check()
    a_little = Price("reference", (phase(0.0, 1.0, size=1.0), phase(0.5, 0.97, size=2.0)))
    assert a_little.check() is a_little
    unsure = Phase(0.5, 0.5, 0.5, 0.2, 1.1, 10, 2.0)
    assert Price("reference", (phase(0.0, 1.0), unsure)).check().at(0.5) == 0.5


def test_the_relative_cost_is_a_median_of_blocks():
    references = [1.0] * 100
    assert relative_cost([1.5] * 100, references) == (1.5, 1.5, 1.5)
    disturbed = [1.5] * 100
    disturbed[7] = 1000.0
    assert relative_cost(disturbed, references)[0] == 1.5
    every_tenth = [11.0 if number % 10 == 0 else 1.0 for number in range(100)]
    assert relative_cost(every_tenth, references)[0] == 2.0  # a median of single steps would say 1


def test_the_interval_holds_the_ratio_and_widens_with_noise():
    quiet, loud = ([1.0 + noise * (number * 37 % 100 - 50) / 50 for number in range(200)] for noise in (0.01, 0.2))
    _, low, high = relative_cost(quiet, [1.0] * 200)
    ratio, lower, higher = relative_cost(loud, [1.0] * 200)
    assert lower < low < high < higher
    assert lower <= ratio <= higher


def test_phases_are_found_where_shapes_change():
    def shape(progress: float) -> int:
        return 16 if progress < 0.3 else 24 if progress < 0.71 else 32

    starts = phase_starts(shape, known=(0.5, 1.0))
    assert starts[0] == 0.0
    assert starts[1:] == pytest.approx([0.3, 0.5, 0.71], abs=1.1e-3)
    assert all(shape(start) != shape(start - 0.0011) for start in (starts[1], starts[3]))
