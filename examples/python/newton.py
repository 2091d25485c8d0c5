# %% [markdown]
# # Newton: a soap film, by products of the Hessian
#
# A soap film spans a wire frame that is not flat. It has the least area of all surfaces on that frame, so its heights are the
# minimum of a sum over triangles. Gradient descent gets there slowly, since a bump in the middle has to reach the frame cell by
# cell. Newton's method takes curvature into account: in each step it solves *H d = -g* with the Hessian *H* and
# the gradient *g*. *H* has 15 million entries, but the method of conjugate gradients needs products *H d* only, and each of those costs
# about as much as a few gradients.
#
# ![The film at first and in the end, and the size of the gradient by Newton's method and by others](newton.png)

# %%
import os
import time

import matplotlib.pyplot as plt
import numpy as np

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
N, OTHERS = (12, 100) if QUICK else (64, 3000)  # points along a side; iterations of the other methods

# %% [markdown]
# ## The area
#
# Each cell has two triangles. `needs_dual` gives the heights room for a direction, in which the gradient is differentiated
# once more.

# %%
Heights = qd.types.ndarray(dtype=qd.f64, ndim=2)
Area = qd.types.ndarray(dtype=qd.f64, ndim=0)


@qd.kernel
def measure(z: Heights, area: Area):
    for i, j in qd.ndrange(N - 1, N - 1):
        a, b, c, d = z[i, j], z[i + 1, j], z[i, j + 1], z[i + 1, j + 1]
        h = 1.0 / (N - 1)
        area[None] += 0.5 * h * qd.sqrt(h * h + (b - a) ** 2 + (c - a) ** 2)
        area[None] += 0.5 * h * qd.sqrt(h * h + (d - c) ** 2 + (d - b) ** 2)


z = qd.ndarray(qd.f64, shape=(N, N), needs_grad=True, needs_dual=True)
area = qd.ndarray(qd.f64, shape=(), needs_grad=True, needs_dual=True)
side = np.linspace(0, 1, N)
x, y = np.meshgrid(side, side, indexing="ij")
frame = 0.25 * np.cos(2 * np.pi * x) - 0.25 * np.cos(2 * np.pi * y) + 0.1 * np.sin(6 * np.pi * (x + y))
inside = np.zeros((N, N))
inside[1:-1, 1:-1] = 1  # the frame stays where it is
start = frame * (1 - inside)  # and the film hangs flat inside of it

# %% [markdown]
# ## The gradient, and the product of the Hessian with a direction

# %%
calls = 0  # of the gradient and of products


def gradient(heights):
    """The area, and its derivatives by the heights inside."""
    global calls
    calls += 1
    z.from_numpy(heights)
    area.fill(0)
    measure(z, area)
    z.grad.fill(0)
    area.grad.fill(1)
    measure.grad(z, area)
    return area[None], inside * z.grad.to_numpy()


def product(heights, direction):
    """The Hessian of the area times a direction."""
    global calls
    calls += 1
    z.from_numpy(heights)
    z.dual.from_numpy(direction)
    z.grad.fill(0)
    z.grad.dual.fill(0)
    area.grad.fill(1)
    area.grad.dual.fill(0)
    qd.ad.hessian_vector_product(measure, z, area)
    return inside * z.grad.dual.to_numpy()


way = inside * np.random.default_rng(1).standard_normal((N, N))
exact = product(start, way)
difference = (gradient(start + 1e-6 * way)[1] - gradient(start - 1e-6 * way)[1]) / 2e-6
print(f"H d against differences of gradients: off by {np.abs(exact - difference).max() / np.abs(exact).max():.1e}")
assert np.abs(exact - difference).max() < 1e-6 * np.abs(exact).max()
gradient(start)
check = qd.ad.check_gradient(measure, z, area)
print(check)
assert check.ok

# %% [markdown]
# ## Newton's method with conjugate gradients
#
# The direction is solved for no more exactly than the step deserves: the closer to the minimum, the better. That keeps the
# number of products low, and the convergence faster than linear. The step is halved until the area falls.

# %%
def solve(heights, right, tolerance):
    """Conjugate gradients for H d = right."""
    d, residual = np.zeros_like(right), right.copy()
    direction, square = residual.copy(), (residual**2).sum()
    for _ in range(500):
        if square <= tolerance**2 * (right**2).sum():
            break
        image = product(heights, direction)
        length = square / (direction * image).sum()
        d += length * direction
        residual -= length * image
        square, before = (residual**2).sum(), square
        direction = residual + square / before * direction
    return d


def newton(heights, iterations=30):
    history = []
    for _ in range(iterations):
        value, slope = gradient(heights)
        size = np.linalg.norm(slope)
        history.append((calls, size, value))
        if size < 1e-11:
            break
        step, length = solve(heights, -slope, min(0.1, np.sqrt(size))), 1.0
        while gradient(heights + length * step)[0] > value + 1e-4 * length * (slope * step).sum() + 1e-14:
            length *= 0.5
        heights = heights + length * step
    return heights, history


def momentum(heights, rate, iterations):
    """Nesterov's method (1983)."""
    history, before = [], heights
    for t in range(1, iterations + 1):
        ahead = heights + (t - 1) / (t + 2) * (heights - before)
        value, slope = gradient(ahead)
        history.append((calls, np.linalg.norm(slope), value))
        before, heights = heights, ahead - rate * slope
    return heights, history


def descent(heights, rate, iterations):
    history = []
    for _ in range(iterations):
        value, slope = gradient(heights)
        history.append((calls, np.linalg.norm(slope), value))
        heights = heights - rate * slope
    return heights, history


histories = {}
for name, method in (("Newton", lambda: newton(start)), ("Nesterov's momentum", lambda: momentum(start, 0.1, OTHERS)),
                     ("gradient descent", lambda: descent(start, 0.2, OTHERS))):
    calls, began = 0, time.perf_counter()
    heights, history = method()
    histories[name] = history
    if name == "Newton":
        film = heights
    print(f"{name:20}: area {history[-1][2]:.10f}, |gradient| {history[-1][1]:.1e}, {calls} gradients and products")
assert histories["Newton"][-1][1] < 1e-10 < histories["gradient descent"][-1][1]

# %% [markdown]
# Newton's method reaches the last bit after a few hundred products: in the end, each of its steps squares the error. The others are
# far from there after 3,000 gradients.

# %%
figure = plt.figure(figsize=(12, 4.4), layout="constrained")
for k, (heights, title) in enumerate(((start, "at first: flat inside of the frame"), (film, "the film: the least area"))):
    axis = figure.add_subplot(1, 3, k + 1, projection="3d")
    axis.plot_surface(x, y, heights, cmap="viridis", vmin=-0.6, vmax=0.6, linewidth=0, rcount=N, ccount=N)
    for edge in (np.s_[0, :], np.s_[-1, :], np.s_[:, 0], np.s_[:, -1]):
        axis.plot(x[edge], y[edge], heights[edge], color="#222222", linewidth=2)
    axis.set(title=title, zlim=(-0.6, 0.6), xticks=[0, 1], yticks=[0, 1], zticks=[-0.5, 0, 0.5])
curve = figure.add_subplot(1, 3, 3)
for (name, history), colour in zip(histories.items(), ("#b2182b", "#30638e", "#888888")):
    number, size, _ = zip(*history)
    curve.loglog(number, size, "o-" if name == "Newton" else "-", color=colour, label=name, markersize=5)
curve.set(xlabel="gradients and products of the Hessian", title="size of the gradient of the area")
curve.legend()
curve.grid(alpha=0.3)
figure.savefig("newton.png", dpi=90)
