"""What benchmarks write: a line of JSON for each case, as costate-bench does."""

from __future__ import annotations

import json
from pathlib import Path


def append(file: str | Path, rows: list[dict]) -> None:
    with open(file, "a") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
