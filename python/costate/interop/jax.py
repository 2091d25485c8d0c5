"""Kernels as functions of JAX.

One primitive of JAX stands for the function, its gradient, its tangent, and the derivative of the gradient; which of them
is a parameter, a `_Call`. JAX differentiates and transposes each of them into others, and XLA calls `_run` with the
addresses of its buffers. Those that a call needs beside its results are further results of what XLA calls.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from costate import _core, errors
from costate.lang.base import dtypes, runtime
from costate.lang.base.state import state

from . import device_for
from .launches import copy
from .plan import Constants, Output, Plan

DTYPES = {np.dtype(name): getattr(_core.DType, ours) for name, ours in (
    ("bool", "bool"), ("int8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"), ("uint8", "u8"), ("uint16", "u16"),
    ("uint32", "u32"), ("uint64", "u64"), ("float16", "f16"), ("float32", "f32"), ("float64", "f64"))}
NUMPY_DTYPES = {ours: theirs for theirs, ours in DTYPES.items()}
#: `SQUARE` is the second derivative along one direction twice; `BENT`, along two, comes of that.
PRIMAL, GRADIENT, TANGENT, SECOND, SQUARE, BENT = "primal", "gradient", "tangent", "second", "square", "bent"
METHODS = (None, "sequential", "broadcast_all")

Struct = jax.ShapeDtypeStruct
#: (dtype, shape, address)
Buffer = tuple[_core.DType, list[int], int]


def _is_float(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.floating))


def _adjoint(struct: Any) -> Any:
    """Costate keeps those of f16 in f32."""
    return Struct(struct.shape, np.float32 if struct.dtype == np.float16 else struct.dtype)


class _Plan(Plan):
    """The same for JAX."""

    library = "JAX"

    def __init__(self, function: Any, outputs: Mapping[int, Output], updates: Sequence[int], vmap_method: str | None) -> None:
        super().__init__(function, outputs, updates)
        self.vmap_method = vmap_method
        self.constants = Constants(f"{self.title} is a function of JAX, and")
        self.calls: dict[Any, _Call] = {}

    def call(self, mode: str, traced: tuple[int, ...], static: tuple[tuple[int, Any], ...], needs: tuple[bool, ...] = ()) -> _Call:
        key = (mode, traced, tuple((i, type(x), x) for i, x in static), needs)
        if key not in self.calls:
            self.calls[key] = _Call(self, mode, traced, static, needs)
        return self.calls[key]

    def made(self, arguments: Sequence[Any]) -> list[Any]:
        """What the results are like."""
        return [arguments[self.inputs.index(i)] if i in self.updates else self._output(i, arguments) for i in self.results]

    def _output(self, position: int, arguments: Sequence[Any]) -> Any:
        how: Any = self.outputs[position]
        if callable(how):
            how = how(*arguments)
        if isinstance(how, Struct):
            return how
        like = next((a for a in arguments if hasattr(a, "dtype") and hasattr(a, "shape")), None)
        if isinstance(how, int):
            like = arguments[self.inputs.index(how)]
            shape = self.indices_of(how, like) + self.components_like(position, like)
        else:
            shape = self.whole_shape(position, how)
        return Struct(shape, self._dtype(position, like))

    def _dtype(self, position: int, like: Any) -> Any:
        own = self.types[position].dtype if self.is_core else self.types[position].kind.dtype
        if own is not None:
            return NUMPY_DTYPES[own if self.is_core else own.core]
        if like is None:
            raise errors.BadArgument(f"{self.title} is given no array, which would say of what dtype its outputs are; let `outputs` "
                                     "give `jax.ShapeDtypeStruct`")
        return like.dtype

    def number(self, position: int, value: Any) -> Any:
        """An array of JAX in the place of a number, vector or matrix: in the type and shape of that."""
        kind: Any = self.types[position]
        if self.is_core:
            raise errors.BadArgument(f"argument {position} (counted from 0) of {self.title} is a scalar; pass a number of Python")
        dtype = kind.dtype if self.is_scalar(position) else kind.kind.dtype or dtypes.defaults.fp
        shape = () if self.is_scalar(position) else tuple(kind.kind.shape)
        found = jnp.asarray(value, NUMPY_DTYPES[dtype.core]).reshape(shape) if dtype.is_float else value
        if not dtype.is_float or DTYPES[found.dtype] != dtype.core:
            way = "enable `jax_enable_x64`" if dtype.is_float else "pass a number of Python"
            raise errors.BadArgument(f"argument {position} (counted from 0) of {self.title}, a number of type {dtype}, is an array of JAX "
                                     f"of type {value.dtype}; {way}, or take an array in the kernel")
        return found


class _Call:
    """What XLA calls: one of the modes of a function, for arrays at certain positions, the others being fixed."""

    def __init__(self, plan: _Plan, mode: str, traced: tuple[int, ...], static: tuple[tuple[int, Any], ...],
                 needs: tuple[bool, ...]) -> None:
        self.plan, self.mode, self.traced, self.static, self.needs = plan, mode, traced, dict(static), needs
        self.fixed = static
        self.compiled = jax.jit(self.lowered, static_argnames="batch")
        self.number = next(_numbers)
        _calls[self.number] = self

    def other(self, mode: str, needs: tuple[bool, ...] = ()) -> _Call:
        return self.plan.call(mode, self.traced, self.fixed, needs)

    # -- shapes ----------------------------------------------------------------------

    def made(self, inputs: Sequence[Any], batch: tuple[int, ...]) -> list[Any]:
        """What the results of the function are like, of those of these inputs."""
        each = {i: Struct(x.shape[len(batch):], x.dtype) for i, x in zip(self.traced, inputs)}
        found = self.plan.made([each.get(i, self.static.get(i)) for i in self.plan.inputs])
        return [Struct((*batch, *x.shape), x.dtype) for x in found]

    def split(self, operands: Sequence[Any], made: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Inputs, cotangents, directions."""
        count = len(self.traced)
        cotangents = count + (sum(map(_is_float, made)) if self.mode in (GRADIENT, SECOND) else 0)
        return list(operands[:count]), list(operands[count:cotangents]), list(operands[cotangents:])

    def results(self, inputs: Sequence[Any], made: Sequence[Any]) -> list[Any]:
        """What the results of the primitive are like."""
        if self.mode == PRIMAL:
            return list(made)
        gradients = [Struct(x.shape, x.dtype) for x, need in zip(inputs, self.needs) if need]
        slopes = [x for x in made if _is_float(x)]
        return {GRADIENT: gradients, TANGENT: slopes, SECOND: [*gradients, *slopes], SQUARE: slopes, BENT: slopes}[self.mode]

    def needed(self) -> list[int]:
        return [i for i, need in zip(self.traced, self.needs) if need]

    def floats(self, made: Sequence[Any]) -> list[int]:
        return [i for i, x in zip(self.plan.results, made) if _is_float(x)]

    # -- in graphs of XLA ------------------------------------------------------------

    def lowered(self, *operands: Any, batch: tuple[int, ...]) -> list[Any]:
        if self.mode == BENT:
            return self._bent(operands, batch)
        made = self.made(operands[:len(self.traced)], batch)
        inputs, cotangents, directions = self.split(operands, made)
        cotangents = [c.astype(_adjoint(c).dtype) for c in cotangents]
        first = len(inputs)
        shapes: list[Any] = []
        aliases: dict[int, int] = {}

        def add(struct: Any, operand: int | None = None) -> int:
            if operand is not None:
                aliases[operand] = len(shapes)
            shapes.append(Struct(struct.shape, struct.dtype))
            return len(shapes) - 1
        # The order is that of `_Buffers`.
        wanted: list[int] = []
        if self.mode == SECOND:
            wanted += [add(_adjoint(x)) for x, need in zip(inputs, self.needs) if need]
        if self.mode in (TANGENT, SECOND, SQUARE):
            wanted += [add(x) for x in made if _is_float(x)]
        if self.mode in (GRADIENT, SECOND):
            adjoints = {i: add(_adjoint(x), first + k) for k, (i, x) in enumerate(
                (i, x) for i, x in zip(self.plan.results, made) if _is_float(x))}
            for i, x in zip(self.traced, inputs):
                if i in self.needed() and i not in adjoints:
                    adjoints[i] = add(_adjoint(x))
            if self.mode == GRADIENT:
                wanted += [adjoints[i] for i in self.needed()]
        places = [add(x, self.traced.index(i) if i in self.plan.updates else None) for i, x in zip(self.plan.results, made)]
        wanted = wanted or places
        call = jax.ffi.ffi_call("costate", shapes, input_output_aliases=aliases)
        found = call(*inputs, *cotangents, *directions, call=np.int64(self.number))
        return [found[k].astype(x.dtype) for k, x in zip(wanted, self.results(inputs, made))]

    def _bent(self, operands: Sequence[Any], batch: tuple[int, ...]) -> list[Any]:
        """By a difference of squares, of directions that are equally long."""
        inputs, both = list(operands[:len(self.traced)]), operands[len(self.traced):]
        half = len(both) // 2
        u, v = both[:half], both[half:]
        long, other = (functools.reduce(jnp.maximum, [jnp.max(jnp.abs(x), initial=0) for x in several]) for several in (u, v))
        scale = jnp.where((long > 0) & (other > 0), other / jnp.where(long > 0, long, 1), 1)

        def square(sign: int) -> list[Any]:
            return _bind(self.other(SQUARE), [*inputs, *((scale * a + sign * b).astype(b.dtype) for a, b in zip(u, v))], batch)
        return [((p - m) / (4 * scale)).astype(p.dtype) for p, m in zip(square(1), square(-1))]

    # -- called by XLA ---------------------------------------------------------------

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], device: _core.Device, ordered: bool) -> None:
        if state.tape is not None or state.forward is not None or state.sequence is not None:
            raise errors.BadArgument(f"{self.plan.title} is a function of JAX; call it outside of `Tape` and `FwdMode`")
        buffers = _Buffers(self, arguments, results, device, ordered)
        values = buffers.values()
        core, passed, own, after = self.plan.prepared(values)
        fields = [a for a in passed if isinstance(a, _core.Array) and not any(a is v for v in values)]
        self.plan.constants.check(core, own, fields)
        versions = [a.version if isinstance(a, _core.Array) else 0 for a in values]
        before = [field.version for field in fields]
        if core is not None:
            self._launch(core, passed, buffers)
        for action in after:
            action()
        if before != [field.version for field in fields]:
            self.plan.constants.refuse("writes fields; pass what it writes as arguments, and name them in `outputs` or `updates`")
        for i, (value, version) in enumerate(zip(values, versions)):
            if isinstance(value, _core.Array) and value.version != version:
                self.plan.require_result(i)

    def _launch(self, core: Any, passed: Sequence[Any], buffers: _Buffers) -> None:
        if self.mode == PRIMAL:
            core.launch(*passed)
        elif self.mode == GRADIENT:
            core.grad(*passed, initial_state=True)
        elif self.mode == TANGENT:
            core.jvp(*passed)
            buffers.put_slopes()
        elif self.mode == SQUARE:
            core.tangent().jvp(*passed)
            buffers.put_slopes(twice=True)
        else:
            core.gradient().jvp(*passed, initial_state=True)
            buffers.put_curvatures()
            core.jvp(*passed)
            buffers.put_slopes()


class _Buffers:
    """Arrays over the buffers of one call of XLA."""

    def __init__(self, call: _Call, arguments: Sequence[Buffer], results: Sequence[Buffer], device: _core.Device, ordered: bool) -> None:
        self.call, self.device, self.ordered = call, device, ordered
        plan, mode = call.plan, call.mode
        given, room = iter(arguments), iter(results)
        places = dict(zip(plan.results, results[len(results) - len(plan.results):]))
        self.inputs = {i: next(given) for i in call.traced}
        floats = [i for i in plan.results if places[i][0].is_float]
        cotangents = {i: next(given) for i in floats} if mode in (GRADIENT, SECOND) else {}
        self.directions = {i: next(given) for i in call.traced if self.inputs[i][0].is_float} if mode in (TANGENT, SECOND, SQUARE) else {}
        self.curvatures = {i: next(room) for i in call.needed()} if mode == SECOND else {}
        self.slopes = {i: next(room) for i in floats} if mode in (TANGENT, SECOND, SQUARE) else {}
        self.adjoints: dict[int, Buffer] = {}
        self.places = places
        if mode in (GRADIENT, SECOND):
            self.adjoints = {i: next(room) for i in floats}
            for i in floats:
                self._begin(self.adjoints[i], cotangents[i])
            for i in call.needed():
                if i not in self.adjoints:
                    self.adjoints[i] = next(room)
                    self._begin(self.adjoints[i])
        for i, place in places.items():
            self._begin(place, self.inputs[i] if i in plan.updates else None)
        self.arrays = {i: self._array(i) for i in (*call.traced, *(i for i in plan.results if i not in call.traced))}
        for i, direction in self.directions.items():
            copy(self.arrays[i].dual, self._over(direction))

    def _begin(self, buffer: Buffer, holding: Buffer | None = None) -> None:
        """XLA gives the result the place of the argument, if it keeps its word."""
        if holding is None:
            self._over(buffer).fill(False if buffer[0] == _core.DType.bool else 0)
        elif buffer[2] != holding[2]:
            copy(self._over(buffer), self._over(holding))

    def _over(self, buffer: Buffer, **companions: Any) -> _core.Array:
        dtype, shape, address = buffer
        return _core.Array.adopt(self.device, dtype, shape, address, None, announced=True, stream_ordered=self.ordered, **companions)

    def _array(self, position: int) -> _core.Array:
        buffer = self.places.get(position) or self.inputs[position]
        adjoint = self.adjoints.get(position)
        dual = self.call.mode in (TANGENT, SECOND, SQUARE) and buffer[0].is_float
        return self._over(buffer, grad=adjoint is not None, grad_address=0 if adjoint is None else adjoint[2], dual=dual)

    def values(self) -> list[Any]:
        return [self.arrays[i] if i in self.arrays else self.call.static[i] for i in range(len(self.call.plan.types))]

    def put_slopes(self, twice: bool = False) -> None:
        for i, slope in self.slopes.items():
            dual = self.arrays[i].dual
            copy(self._over(slope), dual.dual if twice else dual)

    def put_curvatures(self) -> None:
        for i, curvature in self.curvatures.items():
            copy(self._over(curvature), self.arrays[i].grad.dual)


_numbers = itertools.count()
_calls: dict[int, _Call] = {}   # which compiled functions of JAX name


def _run(number: int, stream: int | None, arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    device = device_for("cpu" if stream is None else "cuda")
    if stream is not None:
        device.use_stream(stream)
    _calls[number].run(arguments, results, device, stream is not None)
    if stream is None:
        device.synchronize()


@functools.cache
def _register() -> None:
    for platform, handler in zip(("cpu", "CUDA"), _core._xla_handlers(_run)):
        jax.ffi.register_ffi_target("costate", handler, platform=platform)


# -- the primitive -------------------------------------------------------------------

_p = Primitive("costate")
_p.multiple_results = True


def _varying(aval: Any) -> frozenset[Any]:
    """The axes of `shard_map` along which an array differs."""
    kind = getattr(aval, "mat", aval)
    return getattr(kind, "varying", None) or getattr(kind, "vma", None) or frozenset()


def _bind(call: _Call, operands: Sequence[Any], batch: tuple[int, ...]) -> list[Any]:
    axes = frozenset().union(*(_varying(jax.typeof(x)) for x in operands))
    alike = [jax.lax.pcast(x, tuple(axes - _varying(jax.typeof(x))), to="varying") if axes - _varying(jax.typeof(x)) else x
             for x in operands]
    found: list[Any] = _p.bind(*alike, call=call, batch=batch)
    return found


def _impl(*operands: Any, call: _Call, batch: tuple[int, ...]) -> list[Any]:
    found: list[Any] = call.compiled(*operands, batch=batch)
    return found


def _abstract(*avals: Any, call: _Call, batch: tuple[int, ...]) -> list[Any]:
    made = call.made(avals[:len(call.traced)], batch)
    like = avals[0]
    return [like.update(shape=x.shape, dtype=x.dtype, weak_type=False, sharding=like.sharding.update(spec=[None] * len(x.shape)))
            for x in call.results(avals[:len(call.traced)], made)]


_p.def_impl(_impl)
_p.def_abstract_eval(_abstract)
mlir.register_lowering(_p, mlir.lower_fun(lambda *operands, call, batch: call.lowered(*operands, batch=batch), multiple_results=True))


def _instantiated(tangents: Sequence[Any]) -> list[Any]:
    return [ad.instantiate_zeros(t) for t in tangents]


def _zero(value: Any) -> Any:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def _differentiated(primals: Sequence[Any], tangents: Sequence[Any], *, call: _Call, batch: tuple[int, ...]) -> Any:
    found = _bind(call, primals, batch)
    made = call.made(primals[:len(call.traced)], batch)
    inputs, cotangents, directions = call.split(primals, made)
    moved, of_cotangents, of_directions = call.split(tangents, made)
    floats = [_is_float(x) for x in inputs]
    is_moved = any(not isinstance(t, ad.Zero) for t, is_float in zip(moved, floats) if is_float)
    along = _instantiated([t for t, is_float in zip(moved, floats) if is_float])
    if call.mode == PRIMAL:
        slopes = iter(_bind(call.other(TANGENT), [*inputs, *along], batch) if is_moved else [])
        return found, [next(slopes) if is_moved and _is_float(y) else _zero(y) for y in found]
    parts = []
    curved = of_cotangents if call.mode == SECOND else of_directions[:len(along)] if call.mode == BENT else []
    if call.mode == SQUARE or call.mode in (SECOND, BENT) and (is_moved or any(not isinstance(t, ad.Zero) for t in curved)):
        raise errors.NotDifferentiable(f"{call.plan.title} has first and second derivatives, and no third ones")
    if call.mode == GRADIENT and is_moved:
        parts.append(_bind(call.other(SECOND, call.needs), [*inputs, *cotangents, *along], batch)[:len(found)])
    if call.mode == TANGENT and is_moved:
        parts.append(_bind(call.other(BENT), [*inputs, *directions, *along], batch))
    linear = of_cotangents if call.mode == GRADIENT else of_directions
    fixed = directions[:len(along)] if call.mode == BENT else cotangents if call.mode == SECOND else []
    linear = linear[len(along):] if call.mode == BENT else linear
    if any(not isinstance(t, ad.Zero) for t in linear):
        parts.append(_bind(call, [*inputs, *fixed, *_instantiated(linear)], batch))
    if not parts:
        return found, [_zero(y) for y in found]
    return found, [functools.reduce(jnp.add, several) for several in zip(*parts)]


ad.primitive_jvps[_p] = _differentiated


def _transposed(cotangents: Sequence[Any], *operands: Any, call: _Call, batch: tuple[int, ...]) -> list[Any]:
    """Of what is linear: in the cotangents the gradient, in the directions the others."""
    cotangents = _instantiated(cotangents)
    count = len(call.traced)
    inputs = list(operands[:count])
    made = call.made([x.aval if ad.is_undefined_primal(x) else x for x in inputs], batch)
    _, given, directions = call.split(operands, made)
    floats = [_is_float(x) for x in inputs]
    every = tuple(floats)
    if call.mode == GRADIENT:
        found = iter(cotangents)
        along = [next(found) if need else jnp.zeros(x.shape, x.dtype) for x, need, is_float in zip(inputs, call.needs, floats) if is_float]
        slopes = _bind(call.other(TANGENT), [*inputs, *along], batch)
        return [None] * count + [s if ad.is_undefined_primal(c) else None for c, s in zip(given, slopes)]
    if call.mode == TANGENT:
        back = _bind(call.other(GRADIENT, every), [*inputs, *cotangents], batch)
    elif call.mode == SECOND:
        needed, slopes = cotangents[:sum(call.needs)], cotangents[sum(call.needs):]
        found = iter(needed)
        along = [next(found) if need else jnp.zeros(x.shape, x.dtype) for x, need, is_float in zip(inputs, call.needs, floats) if is_float]
        curved = _bind(call.other(SECOND, every), [*inputs, *given, *along], batch)[:sum(every)]
        back = [a + b for a, b in zip(curved, _bind(call.other(GRADIENT, every), [*inputs, *slopes], batch))]
    else:
        half = sum(floats)
        back = _bind(call.other(SECOND, every), [*inputs, *cotangents, *directions[:half]], batch)[:half]
        return [None] * (len(operands) - half) + back
    return [None] * (len(operands) - len(back)) + [x if ad.is_undefined_primal(d) else None for d, x in zip(directions, back)]


ad.primitive_transposes[_p] = _transposed


def _batched(operands: Sequence[Any], dims: Sequence[Any], *, call: _Call, batch: tuple[int, ...]) -> Any:
    size = next(x.shape[d] for x, d in zip(operands, dims) if d is not None)
    fronts = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims)]
    is_mapped = [d is not None for d in dims]
    if call.plan.vmap_method is None:
        raise errors.BadArgument(f"the function of {call.plan.title} is under `vmap`, for which it has no `vmap_method`; \"sequential\" launches "
                                 "it for each sample, and \"broadcast_all\" once, if the kernel takes arrays with one dimension more")
    if call.plan.vmap_method == "broadcast_all":
        if any(not call.plan.takes_tensor(i) for i in call.traced):
            raise errors.BadArgument(f"{call.plan.title} takes a number that is an array of JAX, of which there is one for all samples; use "
                                     "`vmap_method=\"sequential\"`")
        found = _bind(call, [x if mapped else jnp.broadcast_to(x, (size, *x.shape)) for x, mapped in zip(fronts, is_mapped)], (size, *batch))
    else:
        def one(mapped: Sequence[Any]) -> list[Any]:
            given = iter(mapped)
            return _bind(call, [next(given) if m else x for x, m in zip(fronts, is_mapped)], batch)
        found = jax.lax.map(one, [x for x, m in zip(fronts, is_mapped) if m])
    return found, [0] * len(found)


batching.primitive_batchers[_p] = _batched


# -- for users -----------------------------------------------------------------------

def function(kernel: Any, outputs: Mapping[int, Output] | None = None, *, updates: Sequence[int] = (),
             vmap_method: str | None = "sequential") -> Callable[..., Any]:
    """A kernel, or a function of Python that launches several, as a function of JAX, with its derivatives.

    ``outputs`` says which arguments, counted from 0, the function returns instead of taking them, and how each of them is
    made, all zero: an int for the shape of that other argument, a shape, or a function of the arguments that gives a shape
    or a `jax.ShapeDtypeStruct`. ``updates`` names arguments that the kernel reads and writes: XLA gives the result the
    memory of the argument where nobody else needs that.

        norm = costate.jax.function(kernel, outputs={1: ()})  # kernel(x, sum)
        jax.grad(norm)(x)

    The function takes the other arguments in order or by name: arrays, and numbers of Python, for each of which XLA compiles
    anew; where a kernel takes floats, arrays of JAX are such numbers, with derivatives. It has first and second derivatives in
    any order. ``vmap_method``: "sequential" launches it for each sample, "broadcast_all" once,
    with one more dimension in front of all arrays, None is BadArgument.
    """
    if vmap_method not in METHODS:
        raise errors.BadArgument(f"there is no `vmap_method` {vmap_method!r}; there are \"sequential\", \"broadcast_all\" and None")
    plan = _Plan(kernel, outputs or {}, updates, vmap_method)
    _register()

    def called(*arguments: Any, **named: Any) -> Any:
        traced: dict[int, Any] = {}
        static: list[tuple[int, Any]] = []
        for i, value in zip(plan.inputs, plan.arguments(arguments, named)):
            if not isinstance(value, (jax.Array, np.ndarray)):
                static.append((i, value))
            else:
                traced[i] = jnp.asarray(value) if plan.takes_tensor(i) else plan.number(i, value)
        if not traced:
            raise errors.BadArgument(f"{plan.title} is given no array of JAX or NumPy")
        for i, x in traced.items():
            if np.dtype(x.dtype) not in DTYPES:
                raise errors.BadArgument(f"argument {i} (counted from 0) of {plan.title} has elements of type {x.dtype}, which kernels do not "
                                         "have; convert it with `.astype(...)`")
        found = _bind(plan.call(PRIMAL, tuple(traced), tuple(static)), list(traced.values()), ())
        return found[0] if len(found) == 1 else tuple(found)

    if plan.is_function:
        functools.update_wrapper(called, kernel)
    called.__name__ = called.__qualname__ = plan.name
    called.__signature__ = plan.signature  # type: ignore[attr-defined]
    return called
