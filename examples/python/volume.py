# %% [markdown]
# # Volume: what is inside, if that is what one sees?
#
# A cloud that glows is seen from eight sides. How dense it is in each of 21,952 cells is sought, from these pictures alone: what
# tomographs do, and, with a network for the cells, neural radiance fields. A ray takes as many steps as it needs: it ends where
# it leaves the cloud, or where hardly any light from behind would come through.
#
# ![Given pictures, the fog at the start, what was learnt, and the loss](volume.png)

# %%
import math
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
SIDES, CELLS, PIXELS, ITERATIONS = (5, 12, 12, 8) if QUICK else (9, 28, 36, 120)
OPAQUE = 1e-3  # less light than this ends a ray

# %% [markdown]
# ## Rays
#
# A work item is a pixel. Its ray marches through the grid and adds up light, in a `while` with an early exit, which depends on the
# densities that are learnt. Reverse mode goes back through as many iterations, and adds to the eight cells around each sample.

# %%
Volume = qd.types.ndarray(dtype=qd.f64, ndim=3)
Images = qd.types.ndarray(dtype=qd.f64, ndim=3)


@qd.func
def density_at(density, point):
    """The density at a point of the unit cube, between the cells."""
    n = density.shape[0]
    cell = point * (n - 1)
    low = qd.math.clamp(qd.cast(cell, qd.i32), 0, n - 2)
    part = cell - qd.math.floor(cell)
    total = 0.0
    for i, j, k in qd.static(qd.ndrange(2, 2, 2)):
        weight = ((part[0] if i else 1 - part[0]) * (part[1] if j else 1 - part[1])
                  * (part[2] if k else 1 - part[2]))
        total += weight * density[low[0] + i, low[1] + j, low[2] + k]
    return total


@qd.kernel
def densify(parameters: Volume, density: Volume):
    """Densities are positive, whatever the parameters are."""
    for i, j, k in density:
        density[i, j, k] = qd.log(1 + qd.exp(parameters[i, j, k]))


@qd.kernel
def render(density: Volume, images: Images):
    """Parallel rays through the cloud from sides all around."""
    for side, row, column in images:
        angle = side * (2 * math.pi / SIDES)
        up = qd.Vector([0.0, 0.0, 1.0])
        ahead = qd.Vector([qd.cos(angle), qd.sin(angle), 0.0])
        y, x = (row + 0.5) / PIXELS - 0.5, (column + 0.5) / PIXELS - 0.5
        start = 0.5 - 0.8 * ahead - 1.2 * y * up + 1.2 * x * ahead.cross(up)
        h = 0.7 / density.shape[0]
        way, light, clear = 0.0, 0.0, 1.0
        while way < 1.6 and clear > OPAQUE:
            point = start + way * ahead
            if all(point > 0) and all(point < 1):
                passes = qd.exp(-h * density_at(density, point))
                light += clear * (1 - passes) * (1.0 - 0.9 * way / 1.6)  # far is dark
                clear *= passes
            way += h
        images[side, row, column] = light


@qd.kernel
def compare(images: Images, given: Images, loss: qd.types.ndarray(dtype=qd.f64, ndim=0)):
    """The last side is not compared."""
    for side, row, column in qd.ndrange(SIDES - 1, PIXELS, PIXELS):
        miss = images[side, row, column] - given[side, row, column]
        loss[None] += miss**2 / ((SIDES - 1) * PIXELS**2)


# %% [markdown]
# ## What is there: a ball in a ring

# %%
parameters = qd.ndarray(qd.f64, shape=(CELLS,) * 3, needs_grad=True)
density = qd.ndarray(qd.f64, shape=(CELLS,) * 3, needs_grad=True)
images = qd.ndarray(qd.f64, shape=(SIDES, PIXELS, PIXELS), needs_grad=True)
given = qd.ndarray(qd.f64, shape=(SIDES, PIXELS, PIXELS))
loss = qd.ndarray(qd.f64, shape=(), needs_grad=True)

x, y, z = np.meshgrid(*[np.linspace(-0.5, 0.5, CELLS)] * 3, indexing="ij")
height, across = 0.8 * z - 0.6 * x, 0.6 * z + 0.8 * x
ball = np.sqrt(x**2 + y**2 + z**2) - 0.13
ring = np.hypot(np.hypot(across, y) - 0.36, height) - 0.07
density.from_numpy(60 * np.clip(0.5 - np.minimum(ball, ring) * CELLS, 0, 1))
render(density, images)
given.copy_from(images)

# %% [markdown]
# ## The gradient
#
# Gradients of ndarrays are added to, so they are cleared before.

# %%
def gradient(values):
    """The loss, and its derivatives by the parameters."""
    parameters.from_numpy(values)
    parameters.grad.fill(0)
    with qd.ad.Tape(loss):
        densify(parameters, density)
        render(density, images)
        compare(images, given, loss)
    return loss[None], parameters.grad.to_numpy()


values = np.full((CELLS,) * 3, 0.5)  # a thin fog
_, slope = gradient(values)
fog = images.to_numpy()
for at in ((CELLS // 2,) * 3, (CELLS // 3, CELLS // 2, CELLS // 2 + 2)):
    step = np.zeros_like(values)
    step[at] = 1e-4
    difference = (gradient(values + step)[0] - gradient(values - step)[0]) / 2e-4
    print(f"d loss / d parameter {at}: {slope[at]:.6e} by the gradient, {difference:.6e} by differences")
    assert abs(slope[at] - difference) < 1e-5 * abs(slope).max()

# %% [markdown]
# ## Descent, by Adam

# %%
def adam(p, rate, iterations):
    """Changes `p`; returns the losses on the way."""
    mean, square, losses = np.zeros_like(p), np.zeros_like(p), []
    for t in tqdm(range(1, iterations + 1)):
        value, slope = gradient(p)
        losses.append(value)
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        p -= rate * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.99**t)) + 1e-12)
    return losses


losses = adam(values, 0.3, ITERATIONS)
print(f"from {losses[0]:.3e} to {losses[-1]:.3e}: {losses[0] / losses[-1]:.0f} times less")
assert losses[-1] < losses[0] / (1.5 if QUICK else 100)

# %% [markdown]
# The last side was not among the pictures that were given, and it comes out right all the same: what is found is the cloud, not
# pictures of it.

# %%
sides = range(0, SIDES, 2)
figure = plt.figure(figsize=(11, 8.6), layout="constrained")
grid = figure.add_gridspec(4, len(sides), height_ratios=[1, 1, 1, 0.9])
for row, (name, shown) in enumerate((("given", given.to_numpy()), ("at first", fog), ("learnt", images.to_numpy()))):
    for column, side in enumerate(sides):
        axis = figure.add_subplot(grid[row, column])
        axis.imshow(shown[side], cmap="inferno", vmin=0, vmax=0.75)
        axis.set(xticks=[], yticks=[], ylabel=name if column == 0 else "")
        if row == 0:
            axis.set_title("seen by nobody" if side == SIDES - 1 else f"side {side + 1}")
curve = figure.add_subplot(grid[3, :])
curve.semilogy(losses, color="#b2182b")
curve.set(xlabel="iteration", title="loss: mean squared difference of pixels")
curve.grid(alpha=0.3)
figure.savefig("volume.png", dpi=80)
