# %% [markdown]
# # Wave speed: what is inside, if it is only heard at the border?
#
# Ultrasound, or an earthquake: a wave starts at a few places, and microphones around the border record it. How fast the wave
# is in each place inside, 1,600 numbers, is sought from these recordings alone. In geophysics this inverse problem is
# called full waveform inversion.
#
# ![The true speed, what is found of it, a recording before and after, and the loss](waves.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
N, SHOTS, STEPS, ITERATIONS = (20, 2, 50, 8) if QUICK else (48, 8, 150, 120)
BACKGROUND = 0.4  # cells a step, where nothing is

# %% [markdown]
# ## The wave equation
#
# The pressure *u* accelerates by *c*² Δ*u*, with the speed *c*. On a grid, in steps: each launch computes the next moment of all
# shots from the last two. The pressure has an axis for time, so every moment stays there for the gradient. Near the border a sponge
# brakes the waves, so that nothing comes back.
#
# What is learnt is `q`, the logarithm of the speed over that of the background: so the speed stays positive.

# %%
q = qd.field(qd.f64, shape=(N, N), needs_grad=True)
speed = qd.field(qd.f64, shape=(N, N), needs_grad=True)
brake = qd.field(qd.f64, shape=(N, N))
source = qd.Vector.field(2, qd.i32, shape=SHOTS)
u = qd.field(qd.f64, shape=(SHOTS, STEPS + 2, N, N), needs_grad=True)
heard = qd.field(qd.f64, shape=(SHOTS, STEPS + 2, N, N))
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.kernel
def speeds():
    for i, j in q:
        speed[i, j] = BACKGROUND * qd.exp(q[i, j])


@qd.kernel
def step(t: qd.i32):
    for s, i, j in qd.ndrange(SHOTS, N, N):
        here = u[s, t, i, j]
        around = (u[s, t, qd.max(i - 1, 0), j] + u[s, t, qd.min(i + 1, N - 1), j]
                  + u[s, t, i, qd.max(j - 1, 0)] + u[s, t, i, qd.min(j + 1, N - 1)] - 4 * here)
        push = 0.0
        if i == source[s][0] and j == source[s][1]:
            w = (t - 14.0) / 5.0
            push = (1 - 2 * w * w) * qd.exp(-w * w)  # one swing, as geophysicists use it (Ricker)
        u[s, t + 1, i, j] = (here + (1 - brake[i, j]) * (here - u[s, t - 1, i, j])
                             + speed[i, j] ** 2 * around + push)


@qd.func
def is_heard(i, j):
    return qd.min(qd.min(i, N - 1 - i), qd.min(j, N - 1 - j)) == 4


@qd.kernel
def compare():
    for s, t, i, j in u:
        if is_heard(i, j):
            loss[None] += (u[s, t, i, j] - heard[s, t, i, j]) ** 2 / SHOTS


# %% [markdown]
# ## The recordings
#
# They come from a "truth" with a fast and a slow place in it, which the search does not see.

# %%
def run():
    speeds()
    for t in range(1, STEPS + 1):
        step(t)


at = np.arange(N)
depth = np.clip(4 - np.minimum(at, N - 1 - at), 0, None)
brake.from_numpy(0.05 * np.maximum(depth[:, None], depth[None, :]))
angle = 2 * np.pi * (np.arange(SHOTS) + 0.5) / SHOTS
source.from_numpy(np.round(N / 2 + (N / 2 - 6) * np.stack([np.sin(angle), np.cos(angle)], axis=-1)).astype(np.int32))

row, column = np.meshgrid(at / N, at / N, indexing="ij")
truth = (0.3 * np.exp(-((row - 0.38) ** 2 + (column - 0.38) ** 2) / 0.012)
         - 0.3 * np.exp(-((row - 0.62) ** 2 / 0.006 + (column - 0.6) ** 2 / 0.03)))
q.from_numpy(truth)
run()
heard.from_numpy(u.to_numpy())

# %% [markdown]
# ## The gradient
#
# By hand this is the "adjoint state method": a second wave equation that runs back in time, with the misses as its sources. Here
# it is a `Tape` around the program. The start is a place without anything in it.

# %%
def gradient(values):
    """The loss, and its derivatives by `q` inside of the microphones."""
    q.from_numpy(values)
    with qd.ad.Tape(loss):
        run()
        compare()
    return loss[None], inside * q.grad.to_numpy()


inside = (depth[:, None] == 0) & (depth[None, :] == 0)
values = np.zeros((N, N))
way = inside * np.random.default_rng(1).standard_normal((N, N))
slope = (gradient(values)[1] * way).sum()
difference = (gradient(values + 1e-6 * way)[0] - gradient(values - 1e-6 * way)[0]) / 2e-6
print(f"slope of the loss along a direction: {slope:.9f} by the gradient, {difference:.9f} by differences")
assert abs(slope - difference) < 1e-6 * abs(difference)
gradient(values)
before = u.to_numpy()[0, :, 4, :]

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
miss = np.sqrt(((values - truth)[inside] ** 2).mean() / (truth[inside] ** 2).mean())
print(f"loss {losses[0]:.3f} at first, {losses[-1]:.5f} now; the speed is off by {100 * miss:.0f} % of what there was to find")
assert losses[-1] < losses[0] / (1.5 if QUICK else 50)

# %% [markdown]
# ## What is found

# %%
figure, axes = plt.subplot_mosaic([["truth", "found", "loss"], ["heard", "before", "after"]], figsize=(12, 7.4),
                                  layout="constrained")
for name, map_, title in (("truth", truth, "the true speed\n(stars: sources; dotted: microphones)"), ("found", values, "what is found")):
    image = axes[name].imshow(BACKGROUND * np.exp(map_), cmap="RdYlBu_r", vmin=0.26, vmax=0.56)
    axes[name].plot(*source.to_numpy().T[::-1], "*", color="#222222", markersize=9)
    axes[name].plot([4, N - 5, N - 5, 4, 4], [4, 4, N - 5, N - 5, 4], color="#222222", lw=0.8, ls=":")
    axes[name].set(title=title, xticks=[], yticks=[])
figure.colorbar(image, ax=axes["found"], label="cells a step")
axes["loss"].semilogy(losses, color="#b2182b")
axes["loss"].set(xlabel="iteration", title="loss: what is heard,\nsquared differences")
axes["loss"].grid(alpha=0.3)
recorded = heard.to_numpy()[0, :, 4, :]
swing = np.abs(recorded).max() / 2
for name, shown, title in (("heard", recorded, "recorded at the top, of one source"),
                           ("before", before - recorded, "missed at first"),
                           ("after", u.to_numpy()[0, :, 4, :] - recorded, "missed in the end")):
    axes[name].imshow(shown, aspect="auto", cmap="RdBu", vmin=-swing, vmax=swing)
    axes[name].set(title=title, xlabel="place of the microphone, cells", ylabel="time, steps")
figure.savefig("waves.png", dpi=90)
