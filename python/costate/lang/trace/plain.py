"""`arch=ti.python`: kernels and funcs as functions of Python, for debuggers and `print`."""

from __future__ import annotations

import ast
import copy
import operator
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang.base import dtypes, runtime
from costate.lang.base.callers import in_their_words
from costate.lang.base.state import state
from costate.lang.data.annotations import CompoundType, NdarrayType, template
from costate.lang.data.ndarray import make_ndarray
from costate.lang.data.ranges import Grouped, NDRange
from costate.lang.data.storage import Storage
from costate.lang.data.struct import Struct, StructElement, StructField
from costate.lang.values.builder import NoKernel
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.syntax.source import Source
    from costate.lang.trace.func import Func

WAY_OUT = "use `arch=ti.cpu`"

_UPDATES: dict[str, Any] = {"atomic_add": operator.add, "atomic_sub": operator.sub, "atomic_mul": operator.mul,
            "atomic_and": operator.and_, "atomic_or": operator.or_, "atomic_xor": operator.xor,
            "atomic_min": min, "atomic_max": max, "atomic_exchange": lambda old, new: new,
            "atomic_cas": lambda old, expected, new: new if old == expected else old}

#: Statements that have no effect on results.
_DIRECTIVES = {"loop_config", "block_local", "block_dim", "parallelize", "serialize", "cache_read_only", "mesh_local",
               "no_activate", "stop_grad"}


def active() -> bool:
    """Whether `init` has chosen to run kernels as Python."""
    config = runtime.current_config()
    return config is not None and config.arch == runtime.python


def refuse(what: str) -> None:
    """Refuses derivatives and the like."""
    raise QuadrantsRuntimeError(in_their_words(f"{what} is not possible with `arch=ti.python`, which runs kernels as plain Python; "
                                               f"{WAY_OUT}"))


def copied(value: Any) -> Any:
    """What a variable holds after an assignment: vectors and structs by value."""
    if isinstance(value, StructElement):
        return copied(value.copy())
    if isinstance(value, Struct):
        return Struct({k: copied(v) for k, v in value.items}, value._methods)
    if isinstance(value, Matrix):
        return Matrix.of(value.entries, value.shape)
    return tuple(map(copied, value)) if type(value) is tuple else value


def over(iterable: Any, single: bool) -> Any:
    """What a loop runs over; `single`: it has one variable."""
    if isinstance(iterable, StructField):
        iterable = iterable.first()
    if isinstance(iterable, Storage):
        if iterable._sparse_node is not None:
            refuse("a loop over the cells of a sparse field")
        lows = iterable.offset or (0,) * len(iterable.shape)
        iterable = NDRange(*((lo, lo + n) for lo, n in zip(lows, iterable.shape)))
    if isinstance(iterable, NDRange) and single:
        if len(iterable.bounds) != 1:
            raise QuadrantsSyntaxError(f"one loop variable for {len(iterable.bounds)} dimensions; write `for i, j in ...`, or "
                                       "`for I in ti.grouped(...)`")
        return range(*iterable.bounds[0])
    return iter(iterable) if isinstance(iterable, Grouped) else iterable


def combined(name: str, old: Any, *values: Any) -> Any:
    """The new value of an atomic operation."""
    if isinstance(old, Matrix):
        others = [v.entries if isinstance(v, Matrix) else [v] * len(old.entries) for v in values]
        return old.like([_UPDATES[name](*one) for one in zip(old.entries, *others)])
    return _UPDATES[name](old, *values)


def at_item(name: str, base: Any, index: int | None, *values: Any) -> Any:
    """An atomic operation on an element; gives the old one."""
    old = copied(base[index])
    base[index] = combined(name, old, *values)
    return old


def at_attribute(name: Any, base: Any, attribute: Any, *values: Any) -> Any:
    """The same of a member."""
    old = copied(getattr(base, attribute))
    setattr(base, attribute, combined(name, old, *values))
    return old


def _name_of(function: ast.expr) -> Any:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


class _Rewriter(ast.NodeTransformer):
    """Makes Python do what the kernel language does: values are copied, fields are iterated, atomics update."""

    @staticmethod
    def _helper(name: str, *args: Any) -> ast.Call:
        return ast.Call(ast.Attribute(ast.Name("_plain_", ast.Load()), name, ast.Load()), list(args), [])

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        single = ast.Constant(isinstance(node.target, ast.Name))
        node.iter = ast.copy_location(self._helper("over", node.iter, single), node.iter)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        node.value = ast.copy_location(self._helper("copied", node.value), node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        value = ast.Call(node.annotation, [node.value], []) if not isinstance(node.annotation, ast.Constant) else node.value
        made = ast.Assign([node.target], self._helper("copied", value))
        return ast.copy_location(made, node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call) and _name_of(node.value.func) in _DIRECTIVES:
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = _name_of(node.func)
        if name not in _UPDATES or len(node.args) < 2:
            return node
        target, *values = node.args
        return ast.copy_location(self._atomic(ast.Constant(name), target, values), node)

    def _atomic(self, name: ast.Constant, target: ast.expr, values: list[Any]) -> ast.expr:
        if isinstance(target, ast.Subscript):
            return self._helper("at_item", name, target.value, target.slice, *values)
        if isinstance(target, ast.Attribute):
            return self._helper("at_attribute", name, target.value, ast.Constant(target.attr), *values)
        if not isinstance(target, ast.Name):
            raise QuadrantsSyntaxError(f"cannot use a non-writable target as the first operand of `{name.value!s}`: it changes a variable or an "
                                       "element of an array")
        new = ast.NamedExpr(ast.Name(target.id, ast.Store()), self._helper("combined", name, target, *values))
        return ast.Subscript(ast.Tuple([target, new], ast.Load()), ast.Constant(0), ast.Load())


def _refuse_assigned_templates(source: Source, names: set[Any]) -> None:
    for node in ast.walk(source.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
            raise QuadrantsSyntaxError(source.show(node, f"`{node.id}` is a `ti.template()` that the function assigns, which "
                                                   f"plain functions of Python cannot do for their caller; {WAY_OUT}"))


def _code(source: Source, freevars: list[str]) -> Any:
    """The code of the rewritten function, whose free variables are `freevars` and the helpers."""
    node = _Rewriter().visit(copy.deepcopy(source.node))
    node.decorator_list, node.returns = [], None
    for one in ast.walk(node.args):
        if isinstance(one, ast.arg):
            one.annotation = None
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    outer: Any = ast.parse(f"def _outer_({', '.join(freevars)}): pass")
    outer.body[0].body = [node]
    made = compile(ast.fix_missing_locations(outer), source.file, "exec", dont_inherit=True)
    within = next(c for c in made.co_consts if isinstance(c, types.CodeType))
    return next(c for c in within.co_consts if isinstance(c, types.CodeType) and c.co_name == node.name)


def _python(function: Callable[..., Any], source: Source, templates: set[Any]) -> Callable[..., Any]:
    """The function as one of Python, with the globals and the closure of the original."""
    _refuse_assigned_templates(source, templates)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells["_plain_"] = types.CellType(_helpers)
    code = _code(source, list(cells))
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                              tuple(cells[name] for name in code.co_freevars))
    made.__kwdefaults__ = function.__kwdefaults__
    return made


_helpers = types.SimpleNamespace(over=over, copied=copied, combined=combined, at_item=at_item, at_attribute=at_attribute)
_made: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()   # of functions


def _of(owner: Any, templates: set[Any]) -> Any:
    key = owner.function
    if key not in _made:
        _made[key] = _python(owner.function, owner.source, templates)
    return _made[key]


def _is_template(annotation: Any) -> bool:
    return annotation is template or isinstance(annotation, template)


def call(func: Func, args: tuple[Any, ...], options: dict[Any, Any]) -> Any:
    """Calls a func."""
    templates = {p.name for p in func.parameters if _is_template(func.hints.get(p.name))}
    bound = func._bind(args, options)
    for name, value in bound.items():
        if name not in templates and value is not func.instance:
            bound[name] = copied(value)
    made = _of(func, templates)
    return made(**bound)


def _number(value: float, dtype: DataType) -> Any:
    if dtype.is_float:
        return dtype.np.type(value).item()
    return bool(value) if dtype.is_bool else dtypes.convert_number(int(value), dtype)


def _argument(annotation: Any, value: Any, after: list[Any]) -> Any:
    """What a kernel sees of an argument; `after` gets what brings arrays of others back."""
    if isinstance(annotation, CompoundType):
        return annotation(copied(value) if isinstance(value, Matrix) else Matrix(value))
    if dtypes.is_dtype(annotation):
        return _number(value, dtypes.cook(annotation))
    if isinstance(annotation, NdarrayType) or annotation is NdarrayType:
        return value if isinstance(value, (Storage, StructField)) else _foreign(annotation, value, after)
    return copied(value)


def _foreign(annotation: Any, value: Any, after: list[Any]) -> Any:
    """An ndarray for an array of NumPy or PyTorch."""
    host = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
    kind = annotation if isinstance(annotation, NdarrayType) else NdarrayType()
    count = len(kind.element_shape) if kind.element_shape is not None else kind.element_dim or 0
    shape, element_shape = host.shape[:host.ndim - count], host.shape[host.ndim - count:]
    made = make_ndarray(dtypes.of_numpy(host.dtype), shape, element_shape)
    made.from_numpy(host)

    def back() -> None:
        if host is value and not host.flags.writeable:
            return
        if host is value:
            value[...] = made.to_numpy()
        else:
            value.detach().copy_(value.new_tensor(made.to_numpy()))
    after.append(back)
    return made


def _returned(kinds: list[Any] | None, value: Any, is_tuple: bool) -> Any:
    if not kinds or value is None:
        return None
    values = value if isinstance(value, tuple) and is_tuple else (value,)
    made = [_number(v, dtypes.cook(k)) if dtypes.is_dtype(k) else k(v) if isinstance(k, CompoundType) else copied(v)
            for k, v in zip(kinds, values)]
    return tuple(made) if is_tuple else made[0]


def launch(kernel: Any, args: tuple[Any, ...]) -> Any:
    """Runs a kernel with all its arguments, `self` too."""
    if state.forward is not None or state.tape is not None and not state.hidden:
        refuse("a derivative")
    names = list(kernel.signature.parameters)
    after: list[Any] = []
    _ = kernel.parameters    # evaluates the annotations
    hints = kernel.original.hints
    made = _of(kernel.original, set())
    given = [_argument(hints.get(name), value, after) if kernel.instance is None or k else value
             for k, (name, value) in enumerate(zip(names, args))]
    try:
        result = made(*given)
    except NoKernel as error:
        raise QuadrantsRuntimeError(in_their_words(f"{error}, and not with `arch=ti.python`, which runs kernels as plain Python; "
                                                   f"{WAY_OUT}")) from error
    for back in after:
        back()
    kinds, is_tuple = kernel.return_kinds()
    return _returned(kinds, result, is_tuple)
