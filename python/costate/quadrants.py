"""Costate by the name of Quadrants, for programs that `import quadrants`.

    python -m costate.quadrants install      # in the environment of this Python
    python -m costate.quadrants uninstall

installs a package `quadrants` whose modules are those of `costate`. Its version is the one that installed packages
require, or `--version`.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import re
import shutil
import sys
import sysconfig
from importlib import import_module, metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from costate._core import __version__
from costate.lang.compat.later import There

VERSION = "1.3.3"   # where nothing that is installed asks for another one: what Genesis 1.4.5 asks for
OURS = "costate"    # the INSTALLER of what we have written
_LINK = '"""Costate by the name of Quadrants."""\nfrom costate.quadrants import take_name\ntake_name(__name__)\n'


class _Finder:
    """`quadrants.NAME` is the module `costate.NAME`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        own, _, rest = name.partition(".")
        if own not in _names or not rest:
            return None
        try:
            module = import_module(f"costate.{rest}")
        except ModuleNotFoundError as error:
            if error.name == f"costate.{rest}":
                return None
            raise
        return ModuleSpec(name, There(module), is_package=hasattr(module, "__path__"))  # type: ignore[arg-type]


_names: set[str] = set()


def take_name(name: str) -> None:
    """From here on, `import NAME` gives `costate`, and `import NAME.lang` `costate.lang`."""
    if not _names:
        sys.meta_path.insert(0, _Finder)    # before those that look into folders, which would load the files again
    _names.add(name)
    sys.modules[name] = import_module("costate")


def required_version() -> str:
    """The version that an installed package requires, if it names one, else `VERSION`."""
    for distribution in metadata.distributions():
        for requirement in distribution.requires or ():
            found = re.match(r"quadrants\s*\(?\s*(?:==|>=|~=)\s*([0-9][0-9A-Za-z.]*)", requirement)
            if found:
                return found[1]
    return VERSION


def _files(version: str) -> dict[str, str]:
    """The text of each file, by its path."""
    folder = f"quadrants-{version}.dist-info"
    return {
        "quadrants/__init__.py": _LINK,
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: quadrants\nVersion: {version}\n"
                              f"Summary: Costate {__version__} by the name of Quadrants\n",
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: costate\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/INSTALLER": f"{OURS}\n",
        f"{folder}/top_level.txt": "quadrants\n",
    }


def _record(files: dict[str, str], path: str) -> str:
    """The RECORD of installed files: name, hash and size."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(text.encode())))
    rows.writerow((path, "", ""))
    return out.getvalue()


def _installed(target: Path) -> metadata.Distribution | None:
    """What is installed in a folder by the name `quadrants`."""
    return next(iter(metadata.distributions(name="quadrants", path=[str(target)])), None)


def install(target: Path, version: str | None = None) -> str:
    """Writes the package into a folder of packages; the version that it has."""
    there = _installed(target)
    if there is None and (target / "quadrants").exists() or there is not None and not _is_ours(there):
        raise SystemExit(f"{target} has another package `quadrants`: uninstall it first (`pip uninstall quadrants`)")
    uninstall(target)
    version = version or required_version()
    files = _files(version)
    record = f"quadrants-{version}.dist-info/RECORD"
    for name, text in {**files, record: _record(files, record)}.items():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return version


def _is_ours(distribution: metadata.Distribution) -> bool:
    return (distribution.read_text("INSTALLER") or "").strip() == OURS


def uninstall(target: Path) -> bool:
    """Removes the package from a folder; whether it was there."""
    there = _installed(target)
    if there is None or not _is_ours(there):
        return False
    for folder in ("quadrants", f"quadrants-{there.version}.dist-info"):
        shutil.rmtree(target / folder, ignore_errors=True)
    return True


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m costate.quadrants", description="Costate by the name of Quadrants")
    parser.add_argument("action", choices=("install", "uninstall"))
    parser.add_argument("--target", type=Path, default=Path(sysconfig.get_path("purelib")),
                        help="the folder of packages; that of this Python, if it is not given")
    parser.add_argument("--version", help=f"the version that it has for those who ask; {VERSION} or what installed packages require")
    options = parser.parse_args(arguments)
    if options.action == "install":
        print(f"quadrants {install(options.target, options.version)} in {options.target} is Costate {__version__}")
    else:
        print("removed" if uninstall(options.target) else f"{options.target} has no `quadrants` of ours")


if __name__ == "__main__":
    main()
