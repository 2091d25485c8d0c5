"""Random programs: is what Python source becomes the kernel that C++ makes of them?"""

import collections
import json
import linecache
import re
import subprocess

import numpy as np

import costate
from costate import _core
from programs.nodes import parse
from programs.prune import Pruning
from programs.source import ARRAYS, OF_FLOATS, Source

NAMESPACE = {name: getattr(costate, name) for name in (
    *("func kernel cast Vector Matrix ndrange loop_config select abs min max floor ceil round trunc "
      "sqrt fma popcnt clz raw_mod raw_div atomic_add atomic_sub atomic_min atomic_max atomic_and "
      "atomic_or atomic_xor").split(), *OF_FLOATS)}
NAMESPACE |= {"ti": costate, "clamp": costate.math.clamp, "NDArray": costate.types.NDArray}


def fuzzer(path, *arguments, text=""):
    done = subprocess.run([path, *map(str, arguments)], input=text, capture_output=True, text=True)
    return done.stdout


def programs_of(path, first, count):
    """(seed, program without what Python lacks, what that is, its kernel IR) of each seed."""
    made = []
    for program in parse(fuzzer(path, "--programs", count, "--seed", first)):
        pruning = Pruning()
        made.append((pruning.program(program), pruning.dropped))
    lowered = fuzzer(path, "--lower", text="\n".join(str(p) for p, _ in made)).splitlines()
    return [(first + k, program, dropped, json.loads(ir))
            for k, ((program, dropped), ir) in enumerate(zip(made, lowered, strict=True))]


def kernel_of(text, name):
    """The kernel `random` of a module with this text."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = dict(NAMESPACE)
    exec(compile(text, file, "exec"), namespace)
    return namespace["random"]


SHAPES = {"u": (5, 0), "v": (3, 0), "out": (3,), "s": ()}


def arrays_for(width):
    """The arguments of a program; all zero."""
    made = []
    for name, (dtype, _) in ARRAYS.items():
        shape = tuple(n or width for n in SHAPES.get(name, (0,)))
        is_float = dtype[0] == "f"
        made.append(costate.ndarray(getattr(costate, dtype), shape=shape, needs_grad=is_float,
                                    needs_dual=is_float))
    return made


def fill(array, random):
    """Fills an array and its derivatives with what kernels of C++ are tested with."""
    like = array.to_numpy()
    if array.has_grad:
        values = random.uniform(-1.5, 1.5, like.shape)
        for derivative in (array.grad, array.dual):
            shape = derivative.shape
            derivative.write(random.uniform(0.5, 1.5, shape).astype(derivative.to_numpy().dtype))
    else:
        values = random.integers(0, 10, like.shape)
        values = values > 4 if like.dtype == bool else values
    array.write(np.asarray(values).astype(like.dtype))


def same(a, b):
    """Whether two arrays are equal but for rounding."""
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    if a.tobytes() == b.tobytes():
        return True
    tolerance = {2: 1e-2, 4: 1e-4, 8: 1e-8}[a.itemsize]
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    return np.allclose(a, b, tolerance, tolerance * finite.max(initial=0), equal_nan=True)


def compare(seed, program, ir):
    """What differs between the kernel of Python and that of C++; empty if nothing."""
    width = int(program[0].text)
    kernel = kernel_of(Source().program(program), f"program {seed}")
    own, arguments = kernel.compiled(*arrays_for(width), 0.37, 3)
    other = _core.Kernel.from_ir(ir)
    if normal(own.ir()) == normal(other.ir()):
        return ""
    hidden = arguments[len(other.arguments):]
    for mode in ("launch", "grad", "jvp"):
        results = [outcome(made, mode, width, seed, more)
                   for made, more in ((own, hidden), (other, []))]
        if found := differing(*results):
            return f"{mode}: {found}"
    return ""


def compare_scalars(seed, program):
    """What differs between the gradient by the number `p` and the tangent in its direction; empty if nothing."""
    width = int(program[0].text)
    kernel = kernel_of(Source().program(program), f"program {seed}")
    results, given = [], {"grad": True, "jvp": {"p": 1.0}}
    for mode in given:
        arrays, random = arrays_for(width), np.random.default_rng(seed)
        for array in arrays:
            fill(array.core(), random)
            if array.needs_dual:
                array.dual.fill(0)
        seeds = {name: array.grad.to_numpy().astype(np.float64) for name, array in zip(ARRAYS, arrays) if array.needs_grad}
        try:
            if mode == "grad":
                kernel(*arrays, 0.37, 3)
            found = getattr(kernel, mode)(*arrays, 0.37, 3, scalars=given[mode])
        except costate.Error:
            return ""      # of which `compare` tells
        tangents = [seeds[name] * array.dual.to_numpy() for name, array in zip(ARRAYS, arrays) if array.needs_grad]
        results.append(found["p"] if mode == "grad" else sum(map(np.sum, tangents)))
    scale = sum(np.sum(np.abs(one)) for one in tangents)
    tolerance = 1e-2 if any(f"{name} " in str(program) for name in "abfl") else 1e-7
    return "" if not np.isfinite(scale) or np.isclose(*results, tolerance, tolerance * scale + 1e-12, equal_nan=True) else \
        f"by `p`: {results[0]} in reverse, {results[1]} forward"


def compare_by_hand(seed, program, ir):
    """What differs between a gradient by hand, after the launch and after somebody has written what it left, and one from the
    initial state; empty if nothing, or if there is none."""
    kernel, width = _core.Kernel.from_ir(ir), int(program[0].text)
    arrays, random = [array.core() for array in arrays_for(width)], np.random.default_rng(seed)
    for array in arrays:
        fill(array, random)
    start = {name: array.grad.to_numpy() for name, array in zip(ARRAYS, arrays) if array.has_grad}

    def gradient(**options):
        for name, array in zip(ARRAYS, arrays):
            if array.has_grad:
                array.grad.write(start[name])
        try:
            kernel.grad(*arrays, 0.37, 3, **options)
        except costate.Error as error:
            return type(error).__name__
        return {name: array.grad.to_numpy() for name, array in zip(ARRAYS, arrays) if array.has_grad}

    expected = gradient(initial_state=True)
    if not isinstance(expected, dict):
        return ""
    kernel.launch(*arrays, 0.37, 3)
    for when in ("after the launch", "after a write"):
        found = gradient()
        if isinstance(found, dict) and (names := differing(found, expected)):
            return f"by hand {when}: {names}"
        for array in arrays:
            array.write(array.to_numpy())
    BY_HAND.update(["right" if isinstance(found, dict) else found])
    return ""


BY_HAND = collections.Counter()  # what gradients by hand were


def outcome(kernel, mode, width, seed, hidden):
    """All arrays after a launch, or the error that it raised."""
    arrays = [array.core() for array in arrays_for(width)]
    random = np.random.default_rng(seed)
    for array in arrays:
        fill(array, random)
    try:
        if mode == "grad":
            kernel.launch(*arrays, 0.37, 3, *hidden)
        getattr(kernel, mode)(*arrays, 0.37, 3, *hidden)
    except costate.Error as error:
        return type(error).__name__
    result = {}
    for name, array in zip(ARRAYS, arrays):
        result[name] = array.to_numpy()
        if array.has_grad:
            result[name + ".grad"] = array.grad.to_numpy()
            result[name + ".dual"] = array.dual.to_numpy()
    return result


def differing(own, other):
    if not isinstance(own, dict) or not isinstance(other, dict):
        texts = ["runs" if isinstance(r, dict) else r for r in (own, other)]
        return "" if texts[0] == texts[1] else f"{texts[0]} instead of {texts[1]}"
    return ", ".join(name for name in own if not same(own[name], other[name]))


def normal(ir):
    """Kernel IR with its constants in place, and other values numbered in order."""
    names = {}
    lines = []

    def rename(match):
        return names.setdefault(match[0], f"%v{len(names)}")

    for line in ir.splitlines():
        constant = re.match(r"\s*(%[\w.$-]+) = arith.constant (.*)", line)
        if constant:
            names[constant[1]] = f"<{constant[2]}>"
        else:
            lines.append(re.sub(r"%[\w.$-]+", rename, line))
    return "\n".join(lines)
