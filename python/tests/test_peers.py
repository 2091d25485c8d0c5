"""Programs on which gradients of other systems are wrong (`benchmarks/peers`) are right here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.host, pytest.mark.slow]

PROGRAMS = Path(__file__).resolve().parent.parent / "benchmarks/peers/fields.py"


def test_gradients_that_go_wrong_elsewhere_are_right():
    process = subprocess.run([sys.executable, PROGRAMS, "costate", "conformance"], capture_output=True,
                             text=True, timeout=600)
    results = [line for line in process.stdout.splitlines() if line.startswith("RESULT ")]
    assert results, process.stderr
    rows = json.loads(results[0][7:])["result"]
    assert len(rows) == 33
    assert [row for row in rows if row["verdict"] != "right"] == []
