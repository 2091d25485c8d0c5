"""Options of `init` from the environment: QD_DEBUG=1, QD_DEFAULT_FP=64, TI_OFFLINE_CACHE_FILE_PATH=..."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsRuntimeError
from costate.lang.base import dtypes

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NUMBERS = {"default_fp": {"16": dtypes.f16, "32": dtypes.f32, "64": dtypes.f64},
            "default_ip": {"32": dtypes.i32, "64": dtypes.i64},
            "default_up": {"32": dtypes.u32, "64": dtypes.u64}}


def variable(option: str) -> tuple[str, str]:
    """(name, text) of the variable that gives an option; the text is empty if there is none."""
    for prefix in ("QD_", "TI_"):
        name = prefix + option.upper()
        if os.environ.get(name, "").strip():
            return name, os.environ[name].strip()
    return "QD_" + option.upper(), ""


def _bool(text: str) -> bool:
    word = _WORDS.get(text.lower())
    return bool(int(text)) if word is None else word


def _number_type(option: str, text: str) -> DataType | None:
    kinds = _NUMBERS[option]
    by_name = {kind.name: kind for kind in kinds.values()}
    return kinds.get(text) or by_name[text]


def _parser(option: str, default: Any) -> tuple[Any, ...]:
    """(what makes a value of a text, what a text may be)."""
    if option in _NUMBERS:
        kinds = _NUMBERS[option]
        return (lambda text: _number_type(option, text)), "one of " + ", ".join([*kinds, *(k.name for k in kinds.values())])
    return {bool: (_bool, "0 or 1"), int: (int, "an integer"), float: (float, "a number")}.get(
        type(default), (str, "a text"))


def parsed(option: str, default: Any) -> Any:
    """The value that the environment gives an option, of the type of its default, or None."""
    name, text = variable(option)
    if not text:
        return None
    parse, wanted = _parser(option, default)
    try:
        return parse(text)
    except (KeyError, ValueError):
        raise QuadrantsRuntimeError(f"the environment variable {name} is {text!r}, which is not {wanted}; set another "
                                    "value, or unset it") from None


def options(defaults: dict[Any, Any], given: dict[Any, Any]) -> dict[Any, Any]:
    """Those of `given`, an option of `init` each, and those of the environment that are not given."""
    found = {option: value.item() if isinstance(value, np.generic) else value for option, value in given.items()}
    for option, default in defaults.items():
        if option not in given:
            value = parsed(option, default)
            if value is not None:
                found[option] = value
        elif variable(option)[1]:
            name, text = variable(option)
            warnings.warn(f"the environment variable {name}={text} has no effect: `init` is given `{option}`", stacklevel=5)
    return found
