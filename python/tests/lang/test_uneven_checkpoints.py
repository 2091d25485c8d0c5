"""Loops with `checkpoints` whose iterations save more or less than each other: on a GPU, tiles run them again."""

import os
import re

import numpy as np
import pytest

import costate as ti

STARTS = np.array([0.3, -0.8, 1.2, 0.05, -0.4, 0.9, 2.0] * 12)
COUNTS = np.array([0, 1, 2, 3, 5, 40, 101] * 12, dtype=np.int32)


def branches(k):
    @ti.func
    def body(v, n):
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n):
            if v > 0.5:
                v = ti.sin(v * v)
            else:
                v = v + 0.3 * ti.cos(v)
        return v
    return body


def nest(k):
    @ti.func
    def body(v, n):
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n):
            for s in range(t % 4):
                v = ti.sin(v + 0.1)
            v = v * ti.cos(v) + 0.2
        return v
    return body


def open_loop(k):
    @ti.func
    def body(v, n):
        t = 0
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        while t < n and v < 100.0:
            if v > 0.7:
                v = v - 0.5 * ti.sin(v)
            v = v + 0.3 * ti.cos(v)
            t += 1
        return v
    return body


def arrays(k):
    @ti.func
    def body(v, n):
        last = ti.Vector([0.1, 0.2, 0.3])
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n):
            if v > 0.5:
                v = v - 0.5 * ti.sin(v + last[t % 3])
            v = v + 0.3 * ti.cos(v)
            last[(t + 1) % 3] = ti.sin(v)
        return v + last[0]
    return body


def gradient(make, k):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = (ti.field(ti.f64, shape=len(STARTS), needs_grad=True) for _ in range(2))
    n = ti.field(ti.i32, shape=len(STARTS))
    body = make(k)

    @ti.kernel
    def run():
        for i in x:
            y[i] = body(x[i], n[i])

    x.from_numpy(STARTS)
    n.from_numpy(COUNTS)
    for _ in range(2):
        x.grad.fill(0.0)
        y.grad.fill(1.0)
        run.grad()
    return x.grad.to_numpy(), run.report()


@pytest.mark.parametrize("make", [branches, nest, open_loop, arrays])
def test_bits_are_those_of_a_gradient_that_saves_all(make):
    whole, _ = gradient(make, 0)
    for k in (2, 3, 7, 1000):
        found, report = gradient(make, k)
        assert np.array_equal(found, whole)
        assert f"runs again from at most {k} checkpoints" in report


@pytest.mark.parametrize("make", [branches, nest, arrays])
@pytest.mark.skipif(os.environ.get("COSTATE_DEVICE", "cpu") == "cuda", reason="reports of GPUs do not tell their tapes")
def test_many_checkpoints_save_little(make, monkeypatch):
    monkeypatch.setitem(globals(), "STARTS", STARTS[:1])
    monkeypatch.setitem(globals(), "COUNTS", np.array([50_000], dtype=np.int32))

    def tape_bytes(k):
        number, unit = re.search(r"largest tape of the last launch: ([\d.]+) (\w+)", gradient(make, k)[1]).groups()
        return float(number) * {"bytes": 1, "byte": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]
    assert tape_bytes(140) <= tape_bytes(0) / 8
