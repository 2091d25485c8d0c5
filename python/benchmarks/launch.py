"""What a launch costs from Python, beside the same launch from C++ in the same run.

The kernel has four array arguments and one work item, so that its own work is
as good as nothing. Microseconds per launch, the best of several rounds.
"""

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time

from costate import _core
from costate._core import Array, DType, Op

import results

HERE = _core.Loc(__file__, 1)


def make_kernel():
    """d[i] = a[i] + b[i] + c[i]"""
    trace = _core.Trace("add", HERE)
    arrays = [trace.array(DType.f64, 1) for _ in range(4)]
    (i,) = trace.begin_range([trace.extent(arrays[0], 1, 0, HERE)], HERE)
    a, b, c = (trace.load(array, DType.f64, [i], HERE) for array in arrays[:3])
    value = trace.pure(Op.add, DType.f64, [trace.pure(Op.add, DType.f64, [a, b], HERE), c], HERE)
    trace.store(arrays[3], DType.f64, [i], value, HERE)
    trace.end()
    return trace.finish()


def best(rounds, measure):
    return min(measure() for _ in range(rounds))


def from_python(call, arguments, device, count, clock=time.perf_counter):
    def measure():
        device.synchronize()
        start = clock()
        for _ in range(count):
            call(*arguments)
        return (clock() - start) / count * 1e6

    return measure


def rows(device, count):
    kernel = make_kernel()
    arguments = [Array(device, DType.f64, (1,), grad=True) for _ in range(4)]
    kernel.launch(*arguments)
    kernel.grad(*arguments)
    rounds = 60
    yield "C++", best(rounds, lambda: kernel._time_launches(count, *arguments) / count * 1e6)
    yield "Kernel.launch(a, b, c, d)", best(rounds, from_python(
        kernel.launch, arguments, device, count))
    yield "kernel(a, b, c, d)", best(rounds, from_python(kernel, arguments, device, count))
    yield "Kernel.grad(a, b, c, d)", best(rounds, from_python(
        kernel.grad, arguments, device, count))
    yield from language_rows(count, rounds)
    yield from torch_rows(kernel, device, count, rounds)


def language_kernel():
    import costate as qd

    @qd.kernel
    def add(a: qd.types.ndarray(), b: qd.types.ndarray(), c: qd.types.ndarray(),
            d: qd.types.ndarray()):
        for i in d:
            d[i] = a[i] + b[i] + c[i]

    return add


def language_rows(count, rounds):
    import costate as qd
    add = language_kernel()
    arguments = [qd.ndarray(qd.f64, shape=(1,), needs_grad=True) for _ in range(4)]
    yield from both(add, arguments, "ndarrays", count, rounds)
    yield from members_rows(count, rounds)
    yield from graph_rows(add, arguments, rounds)


MEMBERS = 150


def members_rows(count, rounds):
    """Kernels that get a frozen dataclass of many ndarrays, as those of simulators do: in processor time of this thread."""
    import costate as qd
    import dataclasses
    names = [f"a{k}" for k in range(MEMBERS)]
    State = dataclasses.dataclass(frozen=True)(type("State", (), {"__annotations__": dict.fromkeys(names, qd.types.ndarray())}))

    @qd.kernel
    def move(state: State, n: qd.i32):
        for i in range(n):
            state.a0[i] = qd.sin(state.a1[i])

    @qd.kernel
    def moved(state: State, n: qd.i32) -> qd.i32:
        for i in range(n):
            state.a0[i] = qd.sin(state.a1[i])
        return n
    state = State(*[qd.ndarray(qd.f64, shape=(1,), needs_grad=k < 2) for k in range(MEMBERS)])
    calls = {f"@kernel with {MEMBERS} members": lambda: move(state, 1), "  by keywords": lambda: move(state=state, n=1),
             "  with a result": lambda: moved(state, 1), "  its gradient": lambda: move.grad(state, 1),
             "  its gradient by keywords": lambda: move.grad(state=state, n=1),
             "  from the initial state": lambda: move.grad(state, 1, initial_state=True)}
    device = qd.lang.runtime.device()
    for name, call in calls.items():
        call()
        yield name, best(rounds, from_python(call, (), device, count, time.thread_time))


def graph_rows(add, arguments, rounds, launches=32):
    """For each launch of several, one by one and as a graph."""
    import costate as qd

    def several():
        for _ in range(launches):
            add(*arguments)
    device = qd.lang.runtime.device()
    for name, call in (("32 launches, each", several), ("  as a graph", qd.capture(several).replay)):
        yield name, best(rounds, from_python(call, (), device, 8)) / launches


def both(add, arguments, name, count, rounds):
    """A kernel and its gradient, once they have seen their arguments."""
    import costate as qd
    device = qd.lang.runtime.device()
    add(*arguments)
    yield f"@kernel with {name}", best(rounds, from_python(add, arguments, device, count))
    add.grad(*arguments)
    yield "  its gradient", best(rounds, from_python(add.grad, arguments, device, count))


def torch_rows(kernel, device, count, rounds):
    try:
        from costate.interop import torch as interop
        import torch
    except ImportError:
        return
    place = "cuda" if device.name == "cuda" else "cpu"
    tensors = [torch.ones(1, dtype=torch.float64, device=place) for _ in range(4)]
    call = interop.launcher(kernel.launch)
    yield "Kernel.launch with tensors", best(rounds, from_python(call, tensors, device, count))
    tensors = [torch.ones(1, dtype=torch.float64, device=place, requires_grad=True) for _ in range(4)]
    yield from both(language_kernel(), tensors, "tensors of PyTorch", count, rounds)
    yield from function_rows(device, place, count)


def function_rows(device, place, count, rounds=20):
    """Calls without and with `backward`, beside what computes nothing: in processor time of this thread."""
    import torch
    inputs = [torch.ones(1, dtype=torch.float64, device=place, requires_grad=True) for _ in range(3)]
    cotangent = torch.ones(1, dtype=torch.float64, device=place)
    for name, call in functions_of_torch().items():
        def both_ways(call=call):
            return torch.autograd.grad(call(*inputs), inputs[:2], cotangent)

        def forwards(call=call):
            with torch.no_grad():
                return call(*inputs)
        for title, one in ((f"{name}, no_grad", forwards), ("  forward", lambda call=call: call(*inputs)),
                           ("  forward and backward", both_ways)):
            yield title, best(rounds, from_python(one, (), device, count, time.thread_time))


def functions_of_torch():
    import costate as qd
    import torch

    @torch.library.custom_op("costate_benchmark::nothing", mutates_args=())
    def nothing(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(a)
    nothing.register_autograd(lambda ctx, slope: (slope, slope, slope), setup_context=lambda ctx, inputs, output: None)

    class Empty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, c):
            ctx.save_for_backward(a, b, c)
            return torch.empty_like(a)

        @staticmethod
        def backward(ctx, slope):
            a, b, _ = ctx.saved_tensors
            return torch.empty_like(a), torch.empty_like(b), None
    functions = {"torch_function": qd.torch_function(language_kernel(), outputs={3: 0}), "register_autograd": nothing,
                 "torch.autograd.Function": Empty.apply, "an addition": lambda a, b, c: a + b}
    try:
        import warp  # noqa: F401
    except ImportError:
        return functions
    return {**functions, "Warp": function_of_warp()}


def function_of_warp():
    """The kernel of `language_kernel` in the way of Warp's documentation: launches in an autograd.Function."""
    import torch
    import warp as wp
    wp.config.quiet = True
    wp.init()
    Arrays = wp.array(dtype=wp.float64)

    @wp.kernel
    def add(a: Arrays, b: Arrays, c: Arrays, d: Arrays):
        i = wp.tid()
        d[i] = a[i] + b[i] + c[i]

    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, c):
            d = torch.zeros_like(a)
            ctx.inputs = [wp.from_torch(x.detach(), requires_grad=True) for x in (a, b, c)]
            ctx.output = wp.from_torch(d, requires_grad=True)
            wp.launch(add, dim=1, inputs=ctx.inputs, outputs=[ctx.output], device=ctx.output.device)
            return d

        @staticmethod
        def backward(ctx, slope):
            slopes = [x.grad for x in ctx.inputs]
            wp.launch(add, dim=1, inputs=ctx.inputs, outputs=[ctx.output], adj_inputs=slopes,
                      adj_outputs=[wp.from_torch(slope.clone())], adjoint=True, device=ctx.output.device)
            return tuple(wp.to_torch(x) for x in slopes)
    return Add.apply


def import_rows(rounds=5):
    """Of processes that import nothing else, in processor time, once the bytecode of all modules is kept."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PYTHONPYCACHEPREFIX=folder, PYTHONDONTWRITEBYTECODE="")
        for name, before in (("costate", ""), ("numpy", ""), ("costate after numpy", "import numpy")):
            code = f"{before}\nimport time; start = time.process_time()\nimport {name.split()[0]}\nprint(time.process_time() - start)"
            yield name, best(rounds, lambda: 1e3 * float(subprocess.check_output([sys.executable, "-c", code], env=environment)))


def full_names(table):
    """Names that are set in go on the one before."""
    whole = ""
    for name, value in table:
        whole = name if not name.startswith(" ") else whole
        yield name if whole == name else f"{whole}, {name.strip()}", value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--json")
    options = parser.parse_args()
    import costate as qd
    qd.init(arch={"cpu": qd.cpu, "simt": qd.simt, "cuda": qd.cuda}[options.device])
    device = qd.lang.runtime.device()
    gc.disable()
    table = list(rows(device, options.count))
    plain = table[0][1]
    print(f"{'launch':36} {'us':>8} {'over C++':>9}")
    for name, microseconds in table:
        print(f"{name:36} {microseconds:8.2f} {microseconds - plain:9.2f}")
    imported = list(import_rows())
    print(f"\n{'import':36} {'ms':>8}")
    for name, milliseconds in imported:
        print(f"{name:36} {milliseconds:8.1f}")
    if options.json:
        where = {"device": options.device, "threads": device.threads}
        results.append(options.json, [{"bench": "python-launch", "case": name, **where, "primal_us": microseconds}
                                      for name, microseconds in full_names(table)] +
                       [{"bench": "python-import", "case": name, **where, "import_ms": milliseconds} for name, milliseconds in imported])
    return 0


if __name__ == "__main__":
    sys.exit(main())
