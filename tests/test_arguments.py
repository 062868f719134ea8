"""Words of the command line as values."""

from __future__ import annotations

import argparse

import pytest

from effbench.arguments import pair, seeds, whole


@pytest.mark.parametrize(
    ("text", "expected"), [("0", (0,)), ("0,1,2", (0, 1, 2)), ("0-4", (0, 1, 2, 3, 4)), ("0-2,7", (0, 1, 2, 7))]
)
def test_seeds(text: str, expected: tuple[int, ...]) -> None:
    assert seeds(text) == expected


@pytest.mark.parametrize("text", ["", "a", "-1", "1-", "1,,2", "2-1", "0,0", "1.5", "²", "0-99999999999", "9" * 5000])
def test_what_is_no_seeds(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="seed"):
        seeds(text)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", "²", "9" * 5000])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="should be a whole number from 1"):
        whole(text)
    assert whole("12") == 12


def test_pairs() -> None:
    assert pair("cifar10=/data/a=b") == ("cifar10", "/data/a=b")
    for text in ("cifar10", "=x", "cifar10="):
        with pytest.raises(argparse.ArgumentTypeError, match="should be NAME=PATH"):
            pair(text)
