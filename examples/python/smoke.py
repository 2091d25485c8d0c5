# %% [markdown]
# # Smoke: which wind makes a letter of a cloud?
#
# A round cloud of smoke drifts in a fluid that cannot be compressed. What is sought is how the fluid moves at the start, 8,192
# numbers, so that 24 steps later the smoke is a C. The simulation is that of "stable fluids" (Stam, SIGGRAPH 1999).
#
# ![The cloud with the wind that was found, three moments, the letter, and the loss](smoke.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
N, STEPS, ITERATIONS = (24, 6, 6) if QUICK else (64, 24, 70)
SWEEPS = 12  # of Jacobi's iteration for the pressure

# %% [markdown]
# ## The fluid
#
# What is in a cell now comes from where the flow was a step before, between other cells: `sample`. A pressure takes away what
# would compress the fluid. The grid has no border: what leaves on one side comes in on the other, which is what `%` does.
#
# Each step overwrites the fields of the step before last, so no history is kept. The `Tape` copies what the gradient needs just
# before it is lost. That is 46 fields of the advection; the pressure is linear, and none of its 288 sweeps is kept.

# %%
def scalars():
    return qd.field(qd.f64, shape=(N, N), needs_grad=True)


def vectors():
    return qd.Vector.field(2, qd.f64, shape=(N, N), needs_grad=True)


wind, flows, smokes, pressures = vectors(), [vectors(), vectors()], [scalars(), scalars()], [scalars(), scalars()]
divergence, cloud, letter = scalars(), scalars(), scalars()
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.func
def sample(grid, point):
    """Between the four cells around a point."""
    low = qd.floor(point)
    part = point - low
    i, j = qd.cast(low[0], qd.i32) % N, qd.cast(low[1], qd.i32) % N
    k, l = (i + 1) % N, (j + 1) % N
    left = grid[i, j] * (1 - part[1]) + grid[i, l] * part[1]
    right = grid[k, j] * (1 - part[1]) + grid[k, l] * part[1]
    return left * (1 - part[0]) + right * part[0]


@qd.kernel
def advect(flow: qd.template(), old: qd.template(), new: qd.template()):
    for i, j in new:
        new[i, j] = sample(old, qd.Vector([i, j]) - flow[i, j])


@qd.kernel
def diverge(flow: qd.template()):
    for i, j in divergence:
        divergence[i, j] = 0.5 * (flow[(i + 1) % N, j][0] - flow[(i - 1) % N, j][0]
                                  + flow[i, (j + 1) % N][1] - flow[i, (j - 1) % N][1])


@qd.kernel
def relax(old: qd.template(), new: qd.template()):
    for i, j in new:
        new[i, j] = 0.25 * (old[(i + 1) % N, j] + old[(i - 1) % N, j] + old[i, (j + 1) % N] + old[i, (j - 1) % N]
                            - divergence[i, j])


@qd.kernel
def project(pressure: qd.template(), flow: qd.template()):
    for i, j in flow:
        slope = qd.Vector([pressure[(i + 1) % N, j] - pressure[(i - 1) % N, j],
                           pressure[i, (j + 1) % N] - pressure[i, (j - 1) % N]])
        flow[i, j] -= 0.5 * slope


@qd.kernel
def start(flow: qd.template(), smoke: qd.template()):
    for i, j in wind:
        flow[i, j] = wind[i, j]
        smoke[i, j] = cloud[i, j]


@qd.kernel
def compare(smoke: qd.template()):
    for i, j in smoke:
        loss[None] += (smoke[i, j] - letter[i, j]) ** 2 / N**2


# %% [markdown]
# ## The cloud and the letter

# %%
def picture(distance):
    """1 where the distance to a shape, by radius and angle, is negative, 0 outside, with a soft border."""
    p, q = np.meshgrid((np.arange(N) + 0.5) / N - 0.5, (np.arange(N) + 0.5) / N - 0.5, indexing="ij")
    return np.clip(0.5 - distance(np.hypot(p, q), np.abs(np.arctan2(q, p))) * N / 3, 0, 1)


cloud.from_numpy(picture(lambda radius, angle: radius - 0.235))
letter.from_numpy(picture(lambda radius, angle: np.maximum(np.abs(radius - 0.25) - 0.07, 0.2 - 0.25 * angle)))

# %% [markdown]
# ## The gradient
#
# `wind` gets its numbers before the recording begins: inside of it, a write of the host would be a step of the program that
# is differentiated.

# %%
def blow(film=None):
    start(flows[0], smokes[0])
    pressures[0].fill(0)
    for t in range(STEPS):
        here, there = t % 2, (t + 1) % 2
        diverge(flows[here])
        for sweep in range(SWEEPS):
            relax(pressures[sweep % 2], pressures[(sweep + 1) % 2])
        project(pressures[SWEEPS % 2], flows[here])
        if film is not None:
            film.append((smokes[here].to_numpy(), flows[here].to_numpy()))
        advect(flows[here], smokes[here], smokes[there])
        advect(flows[here], flows[here], flows[there])
    compare(smokes[STEPS % 2])


def gradient(values):
    """The loss, and its derivatives by the wind."""
    wind.from_numpy(values)
    with qd.ad.Tape(loss):
        blow()
    return loss[None], wind.grad.to_numpy()


# A light breeze: without any, all samples would be taken exactly at cells, where interpolation has a kink.
values = 0.005 * np.sin(1.0 + np.arange(2 * N * N) ** 2 % 997).reshape(N, N, 2)
way = np.random.default_rng(1).standard_normal(values.shape)
slope = (gradient(values)[1] * way).sum()
difference = (gradient(values + 1e-8 * way)[0] - gradient(values - 1e-8 * way)[0]) / 2e-8
print(f"slope of the loss along a direction: {slope:.9f} by the gradient, {difference:.9f} by differences")
assert abs(slope - difference) < 1e-4 * abs(difference)

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


losses = adam(values, rate=0.02, iterations=ITERATIONS)
print(f"mean squared difference from the letter: {losses[0]:.4f} at first, {losses[-1]:.5f} now")
assert losses[-1] < losses[0] / (1.2 if QUICK else 30)

# %% [markdown]
# ## What is found
#
# Two vortices push the cloud in from the right, and its rim around. Nobody has told the program what a vortex is.

# %%
film = []
wind.from_numpy(values)
loss[None] = 0
blow(film)
last = smokes[STEPS % 2].to_numpy()
figure = plt.figure(figsize=(12, 5.6), layout="constrained")
grid = figure.add_gridspec(2, 5, height_ratios=[1.5, 1])
shots = [("smoke and wind", film[0][0]), (f"after {STEPS // 3} steps", film[STEPS // 3][0]),
         (f"after {2 * STEPS // 3} steps", film[2 * STEPS // 3][0]), (f"after {STEPS} steps", last),
         ("what was wanted", letter.to_numpy())]
for k, (title, image) in enumerate(shots):
    axis = figure.add_subplot(grid[0, k])
    axis.imshow(image.T, origin="lower", cmap="bone_r", vmin=0, vmax=1.2)
    axis.set(title=title, xticks=[], yticks=[])
    if k == 0:
        at = np.arange(2, N, 4)
        flow = film[0][1][np.ix_(at, at)]
        axis.quiver(at[:, None], at[None, :], flow[..., 0], flow[..., 1], color="#c2542d", width=0.008)
curve = figure.add_subplot(grid[1, :])
curve.semilogy(losses, color="#b2182b")
curve.set(xlabel="iteration", title="mean squared difference from the letter")
curve.grid(alpha=0.3)
figure.savefig("smoke.png", dpi=90)
