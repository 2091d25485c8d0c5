"""Tests of the kernel language start from a fresh `init`."""

import pytest

import costate as ti


@pytest.fixture(autouse=True)
def fresh():
    ti.init(arch=ti.cpu)
    yield
    ti.reset()


@pytest.fixture
def double():
    """Literals are f64."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
