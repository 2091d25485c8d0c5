"""What values the options of `init` have; a wrong one is an error where it stands."""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsRuntimeTypeError

if TYPE_CHECKING:
    from costate.lang.base.runtime import Wanted

_FLAGS = ("debug", "check_out_of_bound", "fast_math", "deterministic", "find_nan", "offline_cache",
          "ad_stack_experimental_enabled", "enable_fallback", "progress")
_COUNTS = ("cpu_max_num_threads", "offline_cache_max_size_of_files", "ad_stack_size")


_UNITS = {"": 1, "b": 1, **{unit + end: size for k, unit in enumerate("kmgt", 1)
                            for end, size in (("", 1 << 10 * k), ("b", 1000 ** k), ("ib", 1 << 10 * k))}}


def bytes_in(value: Any) -> int:
    """Of a number, or of a text such as `2GB`, `512 MiB` or `1.5g`; 0 of anything else."""
    if value is None:
        return 0
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", str(value).lower())
    try:
        return 0 if found is None or isinstance(value, bool) else int(float(found[1]) * _UNITS[found[2]])
    except (KeyError, TypeError, ValueError):
        return 0


def check(options: dict[Any, Any], of: str = "init") -> None:
    """Refuses wrong values of options that have an effect."""
    for name, value in options.items():
        if value is None:
            continue
        if name in _FLAGS and value not in (0, 1):
            _refuse(of, name, value, "True or False")
        elif name in _COUNTS and not _is_count(value):
            _refuse(of, name, value, "an integer, at least 0")
        elif name == "lanes" and not (_is_integer(value) and value in (0, 1, 2, 4, 8, 16, 32, 64)):
            _refuse(of, name, value, "a power of 2 up to 64, or 0 for what pays")
        elif name == "tape_budget" and not bytes_in(value):
            _refuse(of, name, value, "a number of bytes, at least 1, or a text such as \"64MB\"")
        elif name == "gradients" and value not in ("checked", "unchecked"):
            _refuse(of, name, value, "\"checked\" or \"unchecked\"")
        elif name == "random_seed" and not _is_integer(value):
            _refuse(of, name, value, "an integer")
        elif name == "device_memory_GB" and not _is_between(value, math.inf):
            _refuse(of, name, value, "a number greater than 0")
        elif name == "device_memory_fraction" and not _is_between(value, 1):
            _refuse(of, name, value, "a number greater than 0, up to 1")
        elif name == "offline_cache_file_path" and not isinstance(value, (str, os.PathLike)):
            _refuse(of, name, value, "a path")


def check_arch(arch: Wanted | None, known: set[str]) -> None:
    """Refuses what names no kind of device; `known` are the names of kinds."""
    if isinstance(arch, (list, tuple)) and arch:
        for one in arch:
            check_arch(one, known)
        return
    name = arch if isinstance(arch, str) else getattr(arch, "name", None)
    if arch is not None and (not isinstance(name, str) or name.partition(":")[0] not in known):
        _refuse("init", "arch", arch, f"one of {', '.join(sorted(known))}, or a list of them")


def _is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_integer(value) and bool(value >= 0)


def _is_between(value: Any, most: float) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) <= most


def _refuse(of: str, name: str, value: Any, wanted: str) -> None:
    raise QuadrantsRuntimeTypeError(f"the option `{name}` of {of} is {wanted}, not {value!r}")
