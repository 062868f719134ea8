"""Signals that ask to stop are held back, and only those that nobody has chosen to ignore."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from effbench.interrupts import held_back


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_asks_once_or_twice_is_heard_at_the_end(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), held_back() as asked:  # noqa: PT012 - it is raised at the end of the block
        assert not asked()
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert asked()


def test_a_closed_terminal_is_nothing_to_what_runs_under_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with held_back() as asked:
        signal.raise_signal(signal.SIGHUP)
        assert not asked()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_handlers_are_given_back() -> None:
    former = signal.getsignal(signal.SIGHUP)
    with held_back():
        assert signal.getsignal(signal.SIGHUP) is not former
    assert signal.getsignal(signal.SIGHUP) is former
