"""Garbage is looked for again afterwards, whatever happens."""

import gc

import pytest

from effbench import collecting


def test_the_search_is_put_off_and_taken_up_again():
    assert gc.isenabled()
    with collecting.put_off():
        assert not gc.isenabled()
        with collecting.put_off():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collecting.put_off():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_what_is_there_at_the_end_may_be_left_alone_for_good():
    before = gc.get_freeze_count()
    with collecting.put_off(for_good=True):
        made = [[] for _ in range(1000)]
    try:
        assert gc.get_freeze_count() >= before + len(made)
    finally:
        gc.unfreeze()
    with collecting.put_off():
        pass
    assert gc.get_freeze_count() == 0
