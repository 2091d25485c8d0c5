"""Random programs of launches, host writes and gradients of the user, against plain Python; more: python -m steps."""

import pytest

import costate
from costate.lang import runtime
from steps.compare import compare, program
from steps.world import Real


@pytest.fixture
def real():
    costate.init(default_fp=costate.f64)
    yield Real()
    costate.reset()


def check(real, seeds):
    for seed in seeds:
        assert compare(real, seed) == "", f"seed {seed}: {program(seed)[1]}"


def test_derivatives_are_those_of_plain_python(real):
    check(real, range(1, 251))


def test_the_same_where_the_host_has_copies_of_arrays(real, monkeypatch):
    monkeypatch.setattr(runtime, "shares_memory", lambda: False)
    check(real, range(1001, 1151))
