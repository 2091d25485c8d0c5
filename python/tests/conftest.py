"""What the tests share."""

import contextlib

import pytest

from costate import _core

# PyTorch's compiler imports it, which fails where somebody has imported Python's own distutils before.
with contextlib.suppress(ImportError):
    import setuptools  # noqa: F401


def pytest_configure(config):
    config.addinivalue_line("markers", "host: shows no more on another device than on the CPU; a run of all tests takes it once")
    config.addinivalue_line("markers", "slow: takes more than a few seconds; left out by `./dev test --quick`")


@pytest.fixture
def device():
    """The CPU, or what COSTATE_DEVICE names."""
    return _core.Device.best()


@pytest.fixture
def trace():
    """Makes kernels: `trace("name", body)` calls `body(trace)` while tracing."""

    def make(name, body, **options):
        making = _core.Trace(name, _core.Loc.caller())
        try:
            body(making)
            return making.finish(_core.KernelOptions(**options))
        finally:
            making.abandon()

    return make
