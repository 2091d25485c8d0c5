"""Runs one program both ways."""

import threading

import numpy as np

import costate as ti
from costate.errors import CannotReplay
from steps import moves
from steps.world import SHAPES, Model


def program(seed):
    """(start, steps, whether by FwdMode, its direction)"""
    rng = np.random.default_rng(seed)
    start = {name: rng.uniform(-1, 1, shape) for name, shape in SHAPES.items()}
    forward = rng.random() < 0.3
    kinds = [kind for kind in moves.KINDS if kind.forward or not forward]
    steps = [kinds[rng.integers(len(kinds))](rng) for _ in range(rng.integers(2, 14))]
    last = moves.Launch(rng)
    last.name = "measure"
    steps.insert(rng.integers(len(steps) // 2, len(steps) + 1), last)
    return start, steps, forward, rng.uniform(-1, 1, sum(one.size for one in start.values()))


def spread(steps, all_of_them, rng):
    """The steps, some of them in threads of their own."""
    return [InThread(one) if (all_of_them or not one.launches) and rng.random() < 0.5 else one for one in steps]


class InThread:
    """A step of another thread: what it writes is as if it had been there at the start."""

    def __init__(self, one):
        self.one = one

    def model(self, w):
        before = {name: getattr(w, name).copy() for name in SHAPES}
        self.one.model(w)
        w.begin_again(before)

    def real(self, w):
        errors = []

        def run():
            try:
                self.one.real(w)
            except BaseException as error:  # noqa: BLE001
                errors.append(error)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]


def run(real, start, steps, forward, seeds):
    """What the library says: the gradients, or the slope of the loss in the direction."""
    real.start(start)
    names = [getattr(real, name) for name in start]
    if forward:
        with ti.ad.FwdMode(loss=real.loss, param=names, seed=seeds):
            for one in steps:
                one.real(real)
        return real.loss.dual[None]
    with ti.ad.Tape(real.loss):
        for one in steps:
            one.real(real)
    return {name: getattr(real, name).grad.to_numpy() for name in start}


def values_by_threads(real, seed):
    """What differs if threads share the steps of a program, or ""."""
    start, steps, _, _ = program(seed)
    model = Model(start)
    real.start(start)
    for one, other in zip(steps, spread(steps, True, np.random.default_rng(seed))):
        one.model(model)
        other.real(real)
    return _values_differ(real, model)


def compare(real, seed, threads=False):
    """What differs, or "". With `threads` other ones do what no recording has."""
    start, steps, forward, seeds = program(seed)
    model = Model(start)
    if threads and not forward:
        steps = spread(steps, False, np.random.default_rng(seed))
    for one in steps:
        one.model(model)
    try:
        found = run(real, start, steps, forward, seeds)
    except CannotReplay:
        if threads:    # what another thread writes between two launches
            return ""
        raise
    wrong = _values_differ(real, model)
    if wrong:
        return wrong
    expected = model.gradients(start)
    if forward:
        slope = sum(np.sum(expected[n] * d) for n, d in _parts(start, seeds))
        return "" if np.isclose(found, slope, 1e-9, 1e-11) else f"tangent {found}, not {slope}"
    for name in start:
        if not np.allclose(found[name], expected[name], 1e-9, 1e-11):
            return f"gradient of {name}: {found[name].tolist()}, not {expected[name].tolist()}"
    return ""


def _values_differ(real, model):
    for name, values in model.values().items():
        if not np.allclose(getattr(real, name).to_numpy(), values, 1e-10, 1e-12):
            return f"values of {name}"
    return ""


def _parts(start, seeds):
    position = 0
    for name, one in start.items():
        yield name, seeds[position:position + one.size].reshape(one.shape)
        position += one.size
