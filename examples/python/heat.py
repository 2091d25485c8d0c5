# %% [markdown]
# # Heat: how must a plate be heated, so that in the end it shows a picture?
#
# Under a plate there are 144 heaters. Each has a power between 0 and a limit, which changes in eight intervals: 1,152 numbers.
# Heat spreads, the faster the hotter the plate is, and leaves through air and radiation. In the end, the temperatures shall be a
# given picture, with no more energy than it takes.
#
# ![The wanted temperatures, those that were reached, the plate over time, the powers, and the loss](heat.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
HEATERS, INTERVALS, STEPS, ITERATIONS = (4, 2, 150, 10) if QUICK else (12, 8, 240, 150)
N = 4 * HEATERS  # cells along a side
H = 60.0 / STEPS  # s
STRONGEST, CONDUCTIVITY, AIR, RADIATION = 12.0, 0.35, 0.01, 1.5e-11  # K/s, cells²/s, 1/s, 1/s/K³
ROOM = 293.0  # K

# %% [markdown]
# ## The plate
#
# A step is one launch: conduction from the four neighbours, heaters, air, and radiation by the fourth power of the temperature.
# Knobs may have any value; `tanh` makes powers between 0 and the limit of them.

# %%
knobs = qd.field(qd.f64, shape=(INTERVALS, HEATERS, HEATERS), needs_grad=True)
power = qd.field(qd.f64, shape=(INTERVALS, HEATERS, HEATERS), needs_grad=True)
temperature = qd.field(qd.f64, shape=(STEPS + 1, N, N), needs_grad=True)
wanted = qd.field(qd.f64, shape=(N, N))
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.kernel
def adjust():
    for k, a, b in knobs:
        power[k, a, b] = STRONGEST * 0.5 * (1 + qd.tanh(knobs[k, a, b]))
        loss[None] += 2.0 * power[k, a, b] / (INTERVALS * HEATERS**2)  # energy is not for free


@qd.func
def conducts(a, b):
    """Between two cells: hot metal conducts better."""
    return CONDUCTIVITY * (1 + 0.002 * (0.5 * (a + b) - ROOM))


@qd.kernel
def step(t: qd.i32):
    for i, j in qd.ndrange(N, N):
        here = temperature[t, i, j]
        rate = power[t * INTERVALS // STEPS, i // 4, j // 4]
        for a, b in qd.static(((-1, 0), (1, 0), (0, -1), (0, 1))):
            if 0 <= i + a < N and 0 <= j + b < N:
                there = temperature[t, i + a, j + b]
                rate += conducts(here, there) * (there - here)
        rate -= AIR * (here - ROOM) + RADIATION * (here**4 - ROOM**4)
        temperature[t + 1, i, j] = here + H * rate


@qd.kernel
def compare():
    for i, j in wanted:
        loss[None] += (temperature[STEPS, i, j] - wanted[i, j]) ** 2 / N**2


# %% [markdown]
# ## What is wanted: a heart of 420 K in a plate of 330 K

# %%
y, x = np.meshgrid(1.25 - 2.6 * (np.arange(N) + 0.5) / N, 2.6 * (np.arange(N) + 0.5) / N - 1.3, indexing="ij")
heart = ((x**2 + y**2 - 0.75) ** 3 < x**2 * y**3).astype(float)
for _ in range(10):  # a soft border: the mean of a cell and its neighbours
    heart = (heart + sum(np.roll(heart, way, axis) for way in (-1, 1) for axis in (0, 1))) / 5
wanted.from_numpy(330 + 90 * heart)
temperature.from_numpy(np.full((STEPS + 1, N, N), ROOM))

# %% [markdown]
# ## The gradient

# %%
def gradient(values):
    """The loss, and its derivatives by the knobs."""
    knobs.from_numpy(values)
    with qd.ad.Tape(loss):
        adjust()
        for t in range(STEPS):
            step(t)
        compare()
    return loss[None], knobs.grad.to_numpy()


values = np.full((INTERVALS, HEATERS, HEATERS), -1.0)  # all on, weakly
way = np.random.default_rng(1).standard_normal(values.shape)
slope = (gradient(values)[1] * way).sum()
difference = (gradient(values + 1e-6 * way)[0] - gradient(values - 1e-6 * way)[0]) / 2e-6
print(f"slope of the loss along a direction: {slope:.7f} by the gradient, {difference:.7f} by differences")
assert abs(slope - difference) < 1e-6 * abs(difference)

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


losses = adam(values, rate=0.1, iterations=ITERATIONS)
reached = temperature.to_numpy()
off = np.sqrt(((reached[-1] - wanted.to_numpy()) ** 2).mean())
print(f"the plate is off by {off:.1f} K on average, after a loss of {losses[0]:.0f} at first and {losses[-1]:.0f} now")
assert losses[-1] < losses[0] / (1.5 if QUICK else 5)

# %% [markdown]
# ## What is found
#
# Heaters wait: what is heated early has spread and gone by the end. Around the heart they stay low all the time, and in the last
# interval its rim gets more than its middle.

# %%
figure, axes = plt.subplots(3, 4, figsize=(12, 9), layout="constrained", height_ratios=[1, 1, 0.8])
look = dict(cmap="inferno", vmin=ROOM, vmax=430)
image = axes[0, 0].imshow(wanted.to_numpy(), **look)
axes[0, 0].set_title("wanted")
for axis, part in zip(axes[0, 1:], (0.5, 0.85, 1.0)):
    axis.imshow(reached[round(part * STEPS)], **look)
    axis.set_title(f"the plate after {60 * part:.0f} s")
figure.colorbar(image, ax=axes[0, 3], label="K")
powers = power.to_numpy()
for axis, k in zip(axes[1], np.linspace(0, INTERVALS - 1, 4).round().astype(int)):
    image = axis.imshow(powers[k], cmap="viridis", vmin=0, vmax=STRONGEST)
    axis.set_title(f"heaters, {60 * k / INTERVALS:.0f} to {60 * (k + 1) / INTERVALS:.0f} s")
figure.colorbar(image, ax=axes[1, 3], label="K/s")
for axis in axes[:2].flat:
    axis.set(xticks=[], yticks=[])
for axis in axes[2]:
    axis.remove()
curve = figure.add_subplot(axes[2, 0].get_gridspec()[2, :])
curve.semilogy(losses, color="#b2182b")
curve.set(xlabel="iteration", title="loss: squared differences of temperatures, K², and energy")
curve.grid(alpha=0.3)
figure.savefig("heat.png", dpi=85)
