"""The rules about the tree that a script can check."""

import subprocess
import sys

from report import Counts


def run(root, build, preset):
    counts = Counts()
    for script in ("check_layers.py", "check_tables.py", "check_text.py"):
        counts.check(script, subprocess.run([sys.executable, root / "tools" / script],
                                            capture_output=True, text=True))
    return counts
