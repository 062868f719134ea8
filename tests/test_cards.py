"""Method cards: what a technique says of itself, read from its docstring."""

from __future__ import annotations

import re
from typing import Any

import pytest

from effbench import cards, plugins
from effbench.recipe import Recipe
from effbench.techniques import Technique, technique

INSTALLED = plugins.load(strict=True).techniques


def noise(recipe: Recipe, *, strength: float = 0.1, kind: str = "gaussian", schedule: Any = None) -> Recipe:
    """Add noise to the inputs,
    at every step.

    A paragraph that says more: it costs nothing, and is
    wrapped in the source.

        w <- w + noise        # kept as it is

    When it helps: with few examples,
        or noisy ones.
    When it does not: with many.

    strength: standard deviation of the noise,
        in units of the inputs; 0 turns it off.
    kind: which noise.
    schedule: function of the progress.
    """
    return recipe


def made(**changes: Any) -> Technique:
    words = {"paper": "A and B, Noise, arXiv:1234.56789", "claim": "+1 %", "neutral": {"strength": 0.0}, **changes}
    return technique("data_centric/regularization", **words)(noise)


def test_a_docstring_is_taken_apart() -> None:
    card = cards.card(made())
    assert card.summary == "Add noise to the inputs, at every step."
    assert card.prose == (
        "A paragraph that says more: it costs nothing, and is wrapped in the source.",
        "    w <- w + noise        # kept as it is",
        "When it helps: with few examples, or noisy ones.",
        "When it does not: with many.",
    )
    assert card.options == {
        "strength": "standard deviation of the noise, in units of the inputs; 0 turns it off.",
        "kind": "which noise.",
        "schedule": "function of the progress.",
    }


CARD = """\
noise

Add noise to the inputs, at every step.

  leaf      data_centric/regularization: augment the
            examples
  paper     A and B, Noise, arXiv:1234.56789
  claim     +1 %
  after     mixup
  excludes  cutmix: both draw boxes

A paragraph that says more: it costs nothing, and is wrapped
in the source.

    w <- w + noise        # kept as it is

When it helps: with few examples, or noisy ones.

When it does not: with many.

Options and their defaults
  strength = 0.1      standard deviation of the noise, in
                      units of the inputs; 0 turns it off.
  kind = "gaussian"   which noise.
  schedule = not set  function of the progress.

It does nothing at strength = 0.0.

Use it in a suite
  [[techniques]]
  noise = { strength = 0.1 }
or on the command line
  effbench run quick --technique "noise(strength=0.1)"
"""


def test_a_card() -> None:
    shown = cards.render(made(after=["mixup"], conflicts={"cutmix": "both draw boxes"}), width=60)
    assert shown == CARD


def test_a_card_says_why_several_processes_are_not_equal_to_one() -> None:
    assert "  unequal  to one process: chance decides\n" in cards.render(made(unequal="chance decides"))


def test_a_title_says_what_the_name_does_not() -> None:
    assert cards.render(made(title="Gaussian noise")).startswith("noise: Gaussian noise\n")
    assert cards.render(made(title="Noise")).startswith("noise\n")


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_cards_of_all_techniques_are_whole(name: str) -> None:
    own = INSTALLED[name]
    card = cards.card(own)
    assert card.summary.endswith(".")
    assert set(card.options) == set(own.options)
    assert not [option for option, text in card.options.items() if not text]
    assert any(text.startswith("When it helps: ") for text in card.prose)
    assert any(text.startswith("When it does not: ") for text in card.prose)
    shown = cards.render(own)
    facts = shown.partition("Use it in a suite")[0].splitlines()
    assert max(map(len, facts)) <= 80


def test_how_a_card_uses_a_technique_is_how_it_is_used() -> None:
    from effbench.sets import parse_set

    for name, own in INSTALLED.items():
        used = re.search(r"""--technique ["'](.*)["']\n$""", cards.render(own))
        assert used is not None
        chosen = parse_set(used[1])
        assert list(chosen) == [name]
        own.check_options(chosen[name])


def test_the_table_of_the_readme() -> None:
    table = cards.readme_table(INSTALLED.values())
    paper = (
        "Zhang et al., mixup: Beyond Empirical Risk Minimization, [arXiv:1710.09412](https://arxiv.org/abs/1710.09412)"
    )
    what = "Train on convex combinations of two examples and of their labels."
    assert f"\n| | `mixup` | {what} | {paper} |\n" in table
    assert "\n| data_centric/regularization | `alternating_flip` | Mirror each image" in table
    rows = table.splitlines()
    assert len(rows) == len(INSTALLED) + 2
    assert {row.replace(r"\|", "").count("|") for row in rows} == {5}
