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
