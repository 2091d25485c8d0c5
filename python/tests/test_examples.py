"""The examples that are no notebooks run, in small."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")
sys.path.append(str(Path(__file__).parents[2] / "examples/python"))


@pytest.fixture(autouse=True)
def fresh():
    import costate
    yield
    costate.reset()


def test_the_speed_is_found_from_the_border(tmp_path):
    import border
    losses = border.main(["--iterations", "4", "--picture", str(tmp_path / "p.png")])
    assert losses[-1] < 0.6 * losses[0]
    assert (tmp_path / "p.png").stat().st_size > 10000


def test_a_gradient_has_as_much_memory_as_it_is_given(tmp_path):
    import memory
    report = memory.main(["--size", "24", "--steps", "40", "--budget", "60kB"])
    assert 30000 < report.peak_bytes <= 60000 and report.steps_again > 0
    memory.main(["--size", "24", "--steps", "40", "--picture", str(tmp_path / "p.png")])
    assert (tmp_path / "p.png").stat().st_size > 10000
