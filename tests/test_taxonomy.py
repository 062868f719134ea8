"""The survey's tree, in the order in which techniques compose."""

from __future__ import annotations

from pathlib import Path

import pytest

import effbench_techniques
from effbench.errors import UnknownName
from effbench.taxonomy import LEAVES, TAXONOMY, branch_position, check_leaf


def test_branches_compose_from_the_data_to_the_hardware():
    assert list(TAXONOMY) == [
        "data_centric",
        "model_centric",
        "optimization_centric",
        "budgeted_training",
        "system_centric",
    ]
    assert [branch_position(leaf) for leaf in ("data_centric/sampling", "system_centric/data")] == [0, 4]
    assert [branch_position(leaf) for leaf in LEAVES] == sorted(branch_position(leaf) for leaf in LEAVES)


def test_every_leaf_has_a_folder_and_every_folder_a_leaf():
    root = Path(effbench_techniques.__file__).parent
    folders = {str(path.parent.relative_to(root)) for path in root.glob("*/*/__init__.py")}
    assert folders == set(LEAVES)
    assert len(LEAVES) == 16


def test_leaves_have_names_of_their_own_within_a_branch_and_a_description():
    assert len(set(LEAVES)) == len(LEAVES)
    assert all(about and not about.endswith(".") for leaves in TAXONOMY.values() for about in leaves.values())


def test_a_misspelt_leaf_is_refused_with_the_near_one():
    assert check_leaf("data_centric/sampling") == "data_centric/sampling"
    with pytest.raises(UnknownName, match="did you mean 'data_centric/sampling'"):
        check_leaf("data_centric/samplings")


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("learning_rate", "optimization_centric/learning_rate"),
        ("optimisers/learning_rate", "optimization_centric/learning_rate"),
        ("sampling", "data_centric/sampling"),
        ("curriculum", "data_centric/curriculum, model_centric/curriculum"),
    ],
)
def test_a_leaf_without_its_branch_is_told_in_full(written: str, right: str) -> None:
    with pytest.raises(UnknownName) as raised:
        check_leaf(written)
    assert str(raised.value).endswith(f"There is: {right}")
