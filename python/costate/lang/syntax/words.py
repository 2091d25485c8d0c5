"""The name that programs give the package."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping


def in_words_of(names: Mapping[str, object], text: str) -> str:
    """A text about `ti.name`, with the name that the package has among these, or that of the guide."""
    package = sys.modules["costate"]
    name = next((name for name, value in names.items() if value is package), "qd")
    return re.sub(r"(?<![\w.])ti\.", f"{name}.", text)
