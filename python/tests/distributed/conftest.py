"""Tests of several ranks start from a fresh `init`."""

import pytest

import costate as qd


@pytest.fixture(autouse=True)
def fresh():
    qd.init(default_fp=qd.f64, cpu_max_num_threads=1)
    yield
    qd.reset()
