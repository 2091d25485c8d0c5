"""Gradients through loops that the data decides, judged by PyTorch's differences."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import costate as qd  # noqa: E402

NDARRAY = qd.types.ndarray()
PLACE = "cuda" if qd._core.Device.best().name == "cuda" else "cpu"


@qd.kernel
def newton(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        r = 1.0 + x[i]
        while qd.abs(r * r - x[i]) > 1e-14 * x[i]:
            r = 0.5 * (r + x[i] / r)
        y[i] = r


@qd.kernel
def polynomial(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        p = 0.0 * x[i]
        for k in range(n[i]):
            p = p * x[i] + qd.cast(k + 1, qd.f64)
        y[i] = p


@qd.kernel
def nested(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        total = 0.0 * x[i]
        for j in range(n[i]):
            p = 1.0 + 0.0 * x[i]
            for k in range(j + 1):
                p *= qd.sin(x[i] + 0.1 * k)
            total += p
        y[i] = total


@qd.kernel
def logistic(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        z = x[i] / (1.0 + x[i])
        for k in range(n[i]):
            z = 3.2 * z * (1.0 - z)
        y[i] = z


@qd.kernel
def leaves_early(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        p = x[i]
        for k in range(50):
            if p > 20.0:
                break
            if k % 2 == 1:
                continue
            p *= 1.0 + x[i] * x[i]
        y[i] = p


@qd.kernel
def branches(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            if v > 1.0:
                v = qd.log(v) + 0.3
            elif k % 2 == 0:
                v = qd.exp(0.5 * v)
            else:
                v = v * v + 0.5
        y[i] = v


@qd.kernel
def two_variables(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        a, b = x[i], 1.0 + 0.0 * x[i]
        for k in range(n[i]):
            a, b = 0.5 * (a + b), qd.sqrt(a * b)
        y[i] = a


@qd.kernel
def gathers(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        total = 0.0 * x[i]
        for k in range(n[i]):
            total += x[(i + k) % x.shape[0]] * qd.cos(total)
        y[i] = total


@qd.kernel
def scatters(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            v = qd.tanh(v) + 0.2 * v
            y[(i * 2 + k) % y.shape[0]] += v * x[i]


@qd.kernel
def euler(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        q, p = x[i], 0.0 * x[i]
        h = 1.0 / qd.cast(n[i] + 1, qd.f64)
        for k in range(n[i]):
            p -= h * qd.sin(q)
            q += h * p
        y[i] = q + p * p


@qd.kernel
def two_ranges(x: NDARRAY, n: NDARRAY, y: NDARRAY):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            v = qd.sin(v) * 1.5
        y[i] = v
    for i in x:
        y[i] = y[i] * y[i] + x[i]


KERNELS = [newton, polynomial, nested, logistic, leaves_early, branches, two_variables, gathers,
           scatters, euler, two_ranges]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_gradcheck(kernel):
    f = qd.torch_function(kernel, outputs={2: 0})
    x = torch.tensor([0.31, 1.7, 2.3, 0.9], dtype=torch.float64, device=PLACE, requires_grad=True)
    n = torch.tensor([3, 0, 5, 8], dtype=torch.int64, device=PLACE)
    assert torch.autograd.gradcheck(lambda x: f(x, n), (x,), nondet_tol=1e-12)
    assert torch.autograd.gradcheck(lambda x: f(f(x * 0.5, n).abs() + 0.1, n), (x,),
                                    nondet_tol=1e-12)
