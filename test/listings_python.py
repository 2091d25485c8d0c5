"""Runs the Python listings of a page, one after the other, as one program.

    python listings_python.py FOLDER PAGE <listings.json

Each stands in a file of its own, on the lines that it has in the page, so that
messages point there. Prints what each has printed, as JSON: [[text, error], ...];
the error of one that needs a module which is missing is the name of that module.
"""

import importlib.util
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path


def run(path, names):
    code = compile(path.read_text(), str(path), "exec")
    exec(code, names)


def captured(work):
    """What `work` prints, by Python or below it, and the error that ended it."""
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            work()
            error = ""
        except BaseException:
            error = traceback.format_exc()
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode(), error


def main():
    folder, page = Path(sys.argv[1]), sys.argv[2]
    os.chdir(folder)
    names, answers = {"__name__": "__main__"}, []
    for number, listing in enumerate(json.load(sys.stdin)):
        missing = [name for name in listing["needs"] if not importlib.util.find_spec(name)]
        path = folder / f"{number}-{page}"
        path.write_text("\n" * (listing["line"] - 1) + listing["code"])
        answers.append(("", missing[0]) if missing else captured(lambda: run(path, names)))
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
