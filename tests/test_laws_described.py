"""The law that a technique is described: every gap is found."""

from __future__ import annotations

import dataclasses

from effbench import plugins
from effbench.laws.described import described
from effbench.recipe import Recipe
from effbench.techniques import technique
from planted import LEAF, scaled


@technique(LEAF, paper="Nobody, Nothing", claim=" ", after=["label_smoothin"])
def undescribed(recipe: Recipe, *, by: float = 0.5, and_by: float = 0.5) -> Recipe:
    """Scale

    and_by: another factor.
    """
    return recipe


def test_every_gap_in_a_description_is_found():
    detail = described(undescribed, {"label_smoothing"})
    assert "begin with one line that is a sentence, found 'Scale'" in detail
    assert "explains the option, as in 'by: ...'" in detail
    assert "and_by: ..." not in detail
    assert "arXiv:1710.09412" in detail
    assert "claim is empty" in detail
    assert "after names 'label_smoothin', which does not exist; did you mean 'label_smoothing'?" in detail
    assert described(scaled) == ""


def test_file_function_and_folder_of_a_built_in_technique_agree():
    mixup = plugins.load(strict=True).techniques["mixup"]
    assert described(mixup) == ""
    elsewhere = dataclasses.replace(mixup, leaf="data_centric/sampling")
    assert "should lie in effbench_techniques.data_centric.sampling.mixup" in described(elsewhere)

    def mix_up(recipe):
        """Mix."""

    mix_up.__module__ = mixup.function.__module__
    assert "should lie in effbench_techniques.data_centric.regularization.mix_up" in described(
        dataclasses.replace(mixup, function=mix_up)
    )
