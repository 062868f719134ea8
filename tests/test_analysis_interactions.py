"""Main effects and interactions of factorial designs, against the textbook and against designs by hand."""

import itertools

import numpy as np
import pytest

from effbench.analysis.comparison import compare
from effbench.analysis.interactions import interactions
from effbench.errors import InvalidSuite
from effbench.factorial import factorial_sets, fractional_design
from effbench.records import canonical
from record_factory import several

#: The pilot plant of Box, Hunter and Hunter (2nd ed., table 5.1): temperature, concentration, catalyst -> yield.
PLANT = dict(zip(itertools.product((0, 1), repeat=3), [60, 52, 54, 45, 72, 83, 68, 80], strict=True))
NAMES = ("temperature", "concentration", "catalyst")


def design(values, names, noise=0.0, seeds=3):
    dice = np.random.default_rng(0)
    records = []
    for levels, value in values.items():
        chosen = {name: {} for name, level in zip(names, levels, strict=True) if level}
        records += several(chosen, [float(value + noise * dice.standard_normal()) for _ in range(seeds)])
    (comparison,) = compare(records)
    return comparison


def effects(found):
    return {each.of: each.effect.mean for each in found.effects}


def test_the_pilot_plant_of_the_textbook():
    found = effects(interactions(design(PLANT, NAMES)))
    # The book: T 23, C -5, K 1.5, TC 1.5, TK 10, CK 0. Its interactions are half the difference of two differences.
    assert found == {
        ("catalyst",): pytest.approx(1.5),
        ("concentration",): pytest.approx(-5.0),
        ("temperature",): pytest.approx(23.0),
        ("catalyst", "concentration"): pytest.approx(0.0, abs=1e-9),
        ("catalyst", "temperature"): pytest.approx(20.0),
        ("concentration", "temperature"): pytest.approx(3.0),
    }


def test_two_techniques_that_add_up_do_not_interact():
    added = {(0, 0): 0.80, (1, 0): 0.82, (0, 1): 0.85, (1, 1): 0.87}
    found = effects(interactions(design(added, ("ema", "mixup"))))
    assert found[("ema", "mixup")] == pytest.approx(0.0, abs=1e-12)
    assert found[("ema",)] == pytest.approx(0.02)
    crossed = effects(interactions(design({**added, (1, 1): 0.80}, ("ema", "mixup"))))
    # with mixup ema changes 0.80 - 0.85, without it 0.82 - 0.80
    assert crossed[("ema", "mixup")] == pytest.approx((0.80 - 0.85) - (0.82 - 0.80))


def test_effects_have_intervals_over_seeds_corrected_for_their_number():
    found = interactions(design(PLANT, NAMES, noise=1.0, seeds=5))
    big = next(each for each in found.effects if each.of == ("temperature",))
    none = next(each for each in found.effects if each.of == ("catalyst", "concentration"))
    assert big.effect.low < 23.0 < big.effect.high
    assert big.p_adjusted < 0.05
    assert none.effect.low < 0.0 < none.effect.high
    assert (found.seeds, found.points, found.planned) == (5, 8, 8)


def test_a_fraction_says_what_it_cannot_tell_apart():
    half = {levels: PLANT[levels] for levels in fractional_design(3, 2)}
    found = interactions(design(half, NAMES), NAMES)
    assert (found.points, found.planned) == (4, 8)
    aliases = {each.of: each.aliases for each in found.effects}
    assert aliases[("catalyst",)] == (("temperature", "concentration"),)
    assert len(aliases) == 3  # no more effects than points


def test_other_sets_have_no_say():
    comparison = design(PLANT, NAMES)
    records = comparison.group.records + several({"temperature": {}, "other": {}}, [0.1] * 3)
    (more,) = compare(records)
    assert effects(interactions(more, NAMES)) == {
        key: pytest.approx(value, abs=1e-9) for key, value in effects(interactions(comparison, NAMES)).items()
    }


def test_without_a_design_there_are_no_interactions():
    (comparison,) = compare(several("", [0.8, 0.9]) + several("ema", [0.8, 0.9]))
    assert interactions(comparison) is None


# --- the designs --------------------------------------------------------------------------------------------------


def test_a_full_design_has_all_points_and_the_baseline_is_none_of_its_sets():
    found = factorial_sets(["mixup(alpha=0.1)", "ema", "sam"])
    assert len(found) == 7
    assert {} not in found
    assert {"mixup": {"alpha": 0.1}, "ema": {}, "sam": {}} in found
    assert len({canonical(each) for each in found}) == 7


@pytest.mark.parametrize(
    ("factors", "fraction", "resolution"),
    [(3, 2, 3), (4, 2, 4), (5, 2, 5), (5, 4, 3), (6, 4, 4), (7, 8, 4), (7, 16, 3), (8, 16, 4)],
)
def test_fractions_have_the_resolution_of_the_published_tables(factors, fraction, resolution):
    """NIST/SEMATECH e-Handbook of Statistical Methods, table 5.3.3.4.7."""
    points = fractional_design(factors, fraction)
    assert len(set(points)) == 2**factors // fraction
    assert points[0] == (0,) * factors
    signs = 2 * np.array(points) - 1
    assert not signs.sum(0).any()  # every technique is on in half of the points
    shortest = min(
        size
        for size in range(1, factors + 1)
        for some in itertools.combinations(range(factors), size)
        if abs(signs[:, some].prod(1).sum()) == len(points)
    )
    assert shortest == resolution


@pytest.mark.parametrize(
    ("techniques", "fraction", "said"),
    [
        (["mixup"], 1, "1 techniques are crossed; name 2 to 10"),
        (["mixup", "mixup(alpha=0.1)"], 1, "mixup is named twice"),
        (["mixup+ema", "sam"], 1, "'mixup\\+ema' should be one technique"),
        (["mixup", "ema"], 3, "fraction = 3: write 1, 2, 4"),
        (["mixup", "ema"], 2, "fraction = 2 leaves 2 points for 2 techniques"),
        (["mixup", "ema", "sam"], 8, "fraction = 8 leaves 1 points for 3 techniques"),
    ],
)
def test_designs_that_make_no_sense_are_refused(techniques, fraction, said):
    with pytest.raises(InvalidSuite, match=said):
        factorial_sets(techniques, fraction)
