"""What `benchmarks/budgets.py` compares is the same gradient, and launches are counted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks/budgets.py"


def test_gradients_are_equal(tmp_path):
    subprocess.run([sys.executable, SCRIPT, "--scale", "0.02", "--json", tmp_path / "rows"], check=True, capture_output=True)
    rows = {row["case"]: row for row in map(json.loads, (tmp_path / "rows").read_text().splitlines())}
    assert {case.split(",")[0] for case in rows} == {"wave", "growth", "points", "loop", "while"}
    assert all(row["difference"] == 0 for row in rows.values())
    assert rows["wave, everything"]["launches_per_step"] == 1 < rows["wave, 16 snapshots"]["launches_per_step"] < 2
    assert rows["loop, 64kB"]["peak_bytes"] <= 65_000 < rows["loop, everything"]["peak_bytes"]
