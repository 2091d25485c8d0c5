"""Random programs on several ranks, against one rank and against PyTorch."""

import numpy as np
import pytest
from exchanges import Program, by_torch, join, push, run
from ranks import in_threads, values


def expect_same(seed, size, alone):
    parts = values(in_threads(size, run, seed))
    loss, parameters, start = alone
    whole = join(Program(seed), [part[2] for part in parts])
    for part in parts:
        assert part[0] == pytest.approx(loss, rel=1e-14, abs=1e-14)
        np.testing.assert_allclose(part[1], parameters, rtol=1e-14, atol=1e-14 * np.abs(parameters).max())
    np.testing.assert_allclose(whole, start, rtol=1e-14, atol=1e-14 * np.abs(start).max())


def expect_like_torch(seed, alone):
    for found, expected in zip(alone, by_torch(Program(seed))):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_on_several_ranks(seed):
    alone, = values(in_threads(1, run, seed))
    expect_same(seed, 2 + seed % 3, alone)
    pytest.importorskip("torch")
    expect_like_torch(seed, alone)


@pytest.mark.slow
def test_more_random_programs():
    for seed in range(1000, 1100):
        alone, = values(in_threads(1, run, seed))
        expect_same(seed, 2 + seed % 3, alone)


@pytest.mark.parametrize("seed", range(40, 46))
def test_tangents_and_gradients_agree(seed):
    parts = values(in_threads(2 + seed % 3, push, seed))
    _, (_, parameters, _), direction, by = parts[0]
    start = join(Program(seed), [one[1][2] for one in parts])
    expected = np.vdot(start, direction) + parameters @ by
    for tangent, *_ in parts:
        assert tangent == pytest.approx(expected, rel=1e-12, abs=1e-13)
