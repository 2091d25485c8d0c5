"""`_test_tools`: helpers of tests for Quadrants."""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, get_type_hints

from costate.lang.base import runtime
from costate.lang.base.dtypes import i32
from costate.lang.data.annotations import NdarrayType
from costate.lang.data.field import field
from costate.lang.data.ndarray import ndarray
from costate.lang.trace.func import is_template

_warned: set[str] = set()


def qd_init_same_arch(**options: Any) -> None:
    """`init` for the device that is in use."""
    config = runtime.current_config()
    runtime.init(arch=config.arch if config else None, **options)


def dedent(indent_size: int, v: str) -> str:
    """The lines of a text without so many blanks in front."""
    return "\n".join(line[indent_size:] for line in v.split("\n"))


def warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=2)


def _child(kind: Any) -> Any:
    if isinstance(kind, NdarrayType):
        assert kind.dtype is not None and kind.ndim is not None
        return ndarray(kind.dtype, (10,) * kind.ndim)
    if is_template(kind):
        return field(i32, 10)
    if dataclasses.is_dataclass(kind):
        return build_struct(kind)
    raise TypeError(f"unknown type {kind!r}")


def build_obj_tuple_from_type_dict(name_to_type: dict[str, Any]) -> tuple[Any, ...]:
    """An array or dataclass for each annotation."""
    return tuple(map(_child, name_to_type.values()))


def build_struct(struct_type: Any) -> Any:
    """A dataclass with an array for each annotation."""
    hints = get_type_hints(struct_type)
    return struct_type(**{one.name: _child(hints[one.name]) for one in dataclasses.fields(struct_type)})


def import_kernel_from_file(kernel_filepath: Any, kernel_name: str) -> Any:
    """What a file of Python calls so."""
    spec = spec_from_file_location(kernel_name, kernel_filepath)
    assert spec and spec.loader
    module = sys.modules[kernel_name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel_name)


@contextmanager
def load_kernel_from_string(kernel_str: str, kernel_name: str) -> Iterator[Any]:
    """The kernel of a text, while its file is there."""
    with import_module("tempfile").TemporaryDirectory() as folder:   # loaded where it is used
        path = os.path.join(folder, f"{kernel_name}.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kernel_str)
        try:
            yield import_kernel_from_file(path, kernel_name)
        finally:
            sys.modules.pop(kernel_name, None)
