"""Errors say what was wrong, what was found, what to do, and survive the way to another process."""

from __future__ import annotations

import pickle

import pytest

from effbench import errors
from effbench.errors import Conflict, EffbenchError, NotApplicable, Refusal, UnknownName, nearest


def test_an_unknown_name_tells_the_nearest_and_all():
    fault = UnknownName("technique", "mixp", ["sam", "mixup"], where="suites/quick.toml, line 3: ")
    assert str(fault) == (
        "suites/quick.toml, line 3: there is no technique 'mixp'; did you mean 'mixup'? There is: mixup, sam"
    )
    assert (fault.kind, fault.name, fault.nearest) == ("technique", "mixp", "mixup")


def test_an_unknown_name_without_a_near_one_lists_what_there_is():
    assert str(UnknownName("clock", "joules", [])) == "there is no clock 'joules'. There is: none"
    assert nearest("joules", ["steps", "tokens"]) is None


def test_errors_survive_pickling():
    for fault in (UnknownName("split", "tets", ["test"], where="here: "), Conflict("a and b"), NotApplicable("no")):
        copy = pickle.loads(pickle.dumps(fault))
        assert type(copy) is type(fault)
        assert str(copy) == str(fault)
        assert vars(copy) == vars(fault)


def test_refusals_are_what_becomes_a_skipped_row():
    assert issubclass(Conflict, Refusal)
    assert issubclass(NotApplicable, Refusal)
    assert not issubclass(errors.InvalidTechnique, Refusal)


@pytest.mark.parametrize(("kind", "code"), [(errors.InvalidSuite, 2), (errors.DataUnavailable, 3), (UnknownName, 2)])
def test_exit_codes_are_told_by_the_kind(kind, code):
    assert issubclass(kind, EffbenchError)
    assert kind.exit_code == code


def test_of_very_many_names_those_that_look_alike_are_listed():
    known = [f"technique_{number}" for number in range(100)] + ["mixup", "cutmix"]
    said = str(UnknownName("technique", "mixpu", known))
    assert said.startswith("there is no technique 'mixpu'; did you mean 'mixup'? There are 102, such as: ")
    assert "mixup" in (listed := said.rpartition(": ")[2].split(", "))
    assert len(listed) == 6
