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


@pytest.fixture
def bound(monkeypatch):
    """The names of the kernels whose arguments were all bound."""
    from costate.lang.launch.kernel import Kernel
    names, before = [], Kernel.specialise

    def specialise(self, *args, **options):
        names.append(self.__name__)
        return before(self, *args, **options)
    monkeypatch.setattr(Kernel, "specialise", specialise)
    return names
