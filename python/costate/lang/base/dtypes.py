"""Element types, their names, and how they combine."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from costate import _core
from costate.lang.base.hooks import Hook
from costate.lang.base.number import Number, of_one

#: `cast(x, dtype)` of numbers, vectors and values of a kernel.
convert: Hook[..., Any] = Hook("convert")


class DataType:
    """The type of an element or scalar: `f32`, `i64`, `u1`, ...

    Calling one converts a value: `ti.f32(x)`.
    """

    __slots__ = ("name", "kind", "bits", "core", "np")

    def __init__(self, name: str, kind: str, bits: Any, np_dtype: Any) -> None:
        self.name = name
        self.kind = kind  # one of "f", "i", "u", "b"
        self.bits = bits
        self.core = getattr(_core.DType, "bool" if kind == "b" else name)
        self.np = np.dtype(np_dtype)

    is_float = property(lambda self: self.kind == "f")
    is_int = property(lambda self: self.kind in "iu")
    is_bool = property(lambda self: self.kind == "b")

    def __call__(self, x: Any) -> Any:
        return convert(x, self)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (by_name, (self.name,))

    def to_string(self) -> Any:
        return self.name


f16 = float16 = half = DataType("f16", "f", 16, np.float16)
f32 = float32 = DataType("f32", "f", 32, np.float32)
f64 = float64 = double = DataType("f64", "f", 64, np.float64)
i8 = int8 = DataType("i8", "i", 8, np.int8)
i16 = int16 = DataType("i16", "i", 16, np.int16)
i32 = int32 = DataType("i32", "i", 32, np.int32)
i64 = int64 = DataType("i64", "i", 64, np.int64)
u8 = uint8 = DataType("u8", "u", 8, np.uint8)
u16 = uint16 = DataType("u16", "u", 16, np.uint16)
u32 = uint32 = DataType("u32", "u", 32, np.uint32)
u64 = uint64 = DataType("u64", "u", 64, np.uint64)
u1 = uint1 = DataType("u1", "b", 1, np.bool_)

ALL = (f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, u1)
real_types = [f16, f32, f64, float]
integer_types = [i8, i16, i32, i64, u8, u16, u32, u64, int]
real_type_ids = [id(t) for t in real_types]
integer_type_ids = [id(t) for t in integer_types]

_BY_NAME = {t.name: t for t in ALL}
_BY_NP = {t.np: t for t in ALL}


class _Defaults:
    fp = f32
    ip = i32
    given_up: Any = None   # of `init`; else the unsigned integer as wide as `ip`

    @property
    def up(self) -> DataType:
        return self.given_up or by_name(f"u{self.ip.bits}")


defaults = _Defaults()


def by_name(name: str) -> DataType:
    return _BY_NAME[name]


def of_numpy(dtype: Any) -> DataType:
    """The element type of a NumPy dtype."""
    found = _BY_NP.get(np.dtype(dtype))
    if found is None:
        raise TypeError(f"arrays of dtype {dtype} are not supported; use one of "
                        f"{', '.join(t.name for t in ALL)}")
    return found


def of_core(core: _core.DType) -> DataType:
    """The element type of a `_core.DType`."""
    for t in ALL:
        if t.core == core:
            return t
    raise TypeError(f"unknown type {core}")


def cook(dtype: Any) -> DataType:
    """What users may write for a type: `f32`, `float`, `int`, `bool`, NumPy and torch dtypes."""
    if isinstance(dtype, DataType):
        return dtype
    if dtype is float:
        return defaults.fp
    if dtype is int:
        return defaults.ip
    if dtype is bool:
        return u1
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    if dtype is None or isinstance(dtype, str) and dtype not in {t.np.name for t in ALL}:
        raise TypeError(f"{dtype!r} is not a data type")
    if type(dtype).__module__.startswith("torch"):
        return of_numpy({"torch.half": "float16"}.get(str(dtype), str(dtype).split(".")[-1]))
    try:
        return of_numpy(dtype)
    except TypeError:
        raise TypeError(f"{dtype!r} is not a data type") from None


def is_tensor(x: Any) -> bool:
    """Whether this is a tensor of PyTorch, or of a class derived from that."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(x, tensor)


def is_dtype(x: Any) -> bool:
    return isinstance(x, DataType) or x in (int, float, bool)


def of_number(x: Any) -> DataType:
    """The type of a constant in a kernel."""
    if isinstance(x, (bool, np.bool_)):
        return u1
    if isinstance(x, np.generic):
        return of_numpy(x.dtype)
    if isinstance(x, int):
        if defaults.ip.bits >= 64 or -2**31 <= x < 2**31:
            return defaults.ip
        if x < 2**32 and x >= 0:
            return u32
        return i64 if x < 2**63 else u64
    return defaults.fp


def promote(a: DataType, b: DataType) -> DataType:
    """The type of `a + b`: the wider one, of integers as wide the unsigned one; a float before
    any integer."""
    if a is b:
        return i32 if a.is_bool else a
    if a.kind == "f" or b.kind == "f":
        if a.kind == b.kind:
            return a if a.bits >= b.bits else b
        return a if a.kind == "f" else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.kind == "u" else b


def true_quotient(a: DataType, b: DataType) -> DataType:
    """The type of `a / b`."""
    a, b = (t if t.is_float else defaults.fp for t in (a, b))
    return promote(a, b)


_INFINITE_FROM = {"f16": 65520.0, "f32": 2.0**128 - 2.0**103, "f64": float("inf")}


def overflows(number: float, dtype: DataType) -> bool:
    """Whether a finite float is rounded to infinity."""
    return _INFINITE_FROM[dtype.name] <= abs(number) < float("inf")


def value_range(dtype: Any) -> tuple[int, ...]:
    """The least and greatest integer of `dtype`."""
    if dtype.is_bool:
        return 0, 1
    if dtype.kind == "u":
        return 0, 2**dtype.bits - 1
    return -(2**(dtype.bits - 1)), 2**(dtype.bits - 1) - 1


def finite_range(dtype: Any) -> tuple[float, float]:
    """The least and greatest finite float of `dtype`."""
    most = float(np.finfo(dtype.np).max)
    return -most, most


def convert_number(x: Any, dtype: Any) -> float:
    """The Python number that `x` is as a `dtype`: floats truncate, integers wrap."""
    if dtype.is_bool:
        return bool(x)
    if dtype.is_float:
        value = float(dtype.np.type(x)) if dtype.bits < 64 else float(x)
        return of_one("positive", x, value) if type(x) is Number else value
    lo, hi = value_range(dtype)
    if isinstance(x, (float, np.floating)):
        if x != x:
            return 0
        return int(min(max(x, lo), hi))
    return (int(x) - lo) % (hi - lo + 1) + lo
