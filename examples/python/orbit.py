# %% [markdown]
# # Orbits: how must three bodies move, so that they come back?
#
# Three equal masses attract each other. Nearly all of their motions are chaos, but a few are periodic: after a time *T* all is
# as it was. They stand in a row at first, at -1, 0 and 1; the two outer ones have the velocity (*vx*, *vy*), and the inner one
# -2 (*vx*, *vy*), so that the whole does not move. Which *vx*, *vy* and *T* make a periodic orbit? Hundreds of guesses are
# improved at the same time.
#
# ![A guess and what becomes of it, the ways of all guesses, and how far they are from coming back](orbit.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
SIDE, STEPS, ITERATIONS = (6, 300, 80) if QUICK else (16, 1000, 250)
GUESSES = SIDE * SIDE

# %% [markdown]
# ## The motion
#
# One work item is one guess. It takes all steps in a loop, by the leapfrog method: half a kick, a drift, half a kick. The loop
# carries places and velocities, so nothing is stored but the end; what the gradient needs of each step, it keeps itself.

# %%
guesses = qd.Vector.field(3, qd.f64, shape=GUESSES, needs_grad=True)  # vx, vy, T
miss = qd.field(qd.f64, shape=GUESSES, needs_grad=True)  # squared
path = qd.Vector.field(6, qd.f64, shape=(GUESSES, STEPS + 1))
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.func
def pull(a, b):
    """The acceleration of `a` by `b`."""
    way = b - a
    square = way.norm_sqr() + 1e-4  # softened: a collision of two ends no other guess
    return way / (square * qd.sqrt(square))


@qd.func
def accelerations(a, b, c):
    ab, bc, ca = pull(a, b), pull(b, c), pull(c, a)
    return ab - ca, bc - ab, ca - bc


@qd.kernel
def move():
    for g in guesses:
        speed = qd.Vector([guesses[g][0], guesses[g][1]])
        h = guesses[g][2] / STEPS
        a, b, c = qd.Vector([-1.0, 0.0]), qd.Vector([0.0, 0.0]), qd.Vector([1.0, 0.0])
        va, vb, vc = speed, -2 * speed, speed
        fa, fb, fc = accelerations(a, b, c)
        for t in range(STEPS):
            path[g, t] = qd.stop_grad(qd.Vector([a[0], a[1], b[0], b[1], c[0], c[1]]))  # for the picture
            va, vb, vc = va + 0.5 * h * fa, vb + 0.5 * h * fb, vc + 0.5 * h * fc
            a, b, c = a + h * va, b + h * vb, c + h * vc
            fa, fb, fc = accelerations(a, b, c)
            va, vb, vc = va + 0.5 * h * fa, vb + 0.5 * h * fb, vc + 0.5 * h * fc
        path[g, STEPS] = qd.stop_grad(qd.Vector([a[0], a[1], b[0], b[1], c[0], c[1]]))
        miss[g] = ((a - qd.Vector([-1.0, 0.0])).norm_sqr() + b.norm_sqr() + (c - qd.Vector([1.0, 0.0])).norm_sqr()
                   + (va - speed).norm_sqr() + (vb + 2 * speed).norm_sqr() + (vc - speed).norm_sqr())


@qd.kernel
def add():
    for g in miss:
        loss[None] += qd.log(1 + miss[g])  # a guess that is far off does not shout down the others


# %% [markdown]
# ## The gradient
#
# Three numbers for each guess. That of the time is the length of a step: `h` depends on it.

# %%
def gradient(values):
    """The loss, and its derivatives by all guesses."""
    guesses.from_numpy(values)
    with qd.ad.Tape(loss):
        move()
        add()
    return loss[None], guesses.grad.to_numpy()


vx, vy = np.meshgrid(np.linspace(0.1, 0.6, SIDE), np.linspace(0.1, 0.6, SIDE), indexing="ij")
first = np.stack([vx.ravel(), vy.ravel(), np.full(GUESSES, 6.3)], axis=-1)
_, slopes = gradient(first)
calm = np.argsort(np.abs(slopes).max(axis=1))[GUESSES // 4]  # a chaotic one would make the differences wrong
for k, name in enumerate(("vx", "vy", "T ")):
    beside = []
    for sign in (1, -1):
        moved = first.copy()
        moved[calm, k] += sign * 1e-7
        gradient(moved)
        beside.append(np.log(1 + miss[calm]))
    difference = (beside[0] - beside[1]) / 2e-7
    print(f"d loss / d {name} of guess {calm}: {slopes[calm, k]:.8f} by the gradient, {difference:.8f} by differences")
    assert abs(slopes[calm, k] - difference) < 1e-5 * max(1, abs(difference))

# %% [markdown]
# ## Descent, by Adam
#
# Each guess goes its own way; steps become shorter, so that the last digits are found too.

# %%
def adam(p, rate, iterations):
    """Changes `p`; returns the misses of all guesses on the way, and the guesses."""
    mean, square, misses, tracks = np.zeros_like(p), np.zeros_like(p), [], []
    for t in tqdm(range(1, iterations + 1)):
        _, slope = gradient(p)
        misses.append(np.sqrt(miss.to_numpy()))
        tracks.append(p.copy())
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        now = rate * 0.5 * (1 + np.cos(np.pi * t / iterations))
        p -= now * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.99**t)) + 1e-12)
    return np.array(misses), np.array(tracks)


found = first.copy()
misses, tracks = adam(found, 0.01, ITERATIONS)
moments = (0, ITERATIONS // 50, ITERATIONS // 15, ITERATIONS - 1)
best = misses[-1].argmin()
near = np.nonzero(misses[-1] < max(1e-3, 3 * misses[-1, best]))[0]
print(f"vx {found[best, 0]:.5f}, vy {found[best, 1]:.5f}, T {found[best, 2]:.4f}: comes back within {misses[-1, best]:.1e}")
assert misses[-1, best] < (0.5 if QUICK else 1e-3) * misses[0, best]

# %% [markdown]
# ## What is found
#
# The best is the figure eight, on which all three bodies follow each other. Moore found it in 1993, and Chenciner and Montgomery
# proved in 2000 that it exists: *vx* = 0.3471, *vy* = 0.5327, *T* = 6.3259. Many guesses end at it or at orbits close by, which
# nearly come back.

# %%
def draw(axis, values, title):
    gradient(values)
    way = path.to_numpy()[shown]
    for body, colour in enumerate(("#d1495b", "#edae49", "#30638e")):
        axis.plot(way[:, 2 * body], way[:, 2 * body + 1], color=colour, linewidth=1.5)
        axis.plot(*way[0, 2 * body : 2 * body + 2], "o", color=colour, markersize=7)
        axis.plot(*way[-1, 2 * body : 2 * body + 2], "o", color=colour, markersize=11, fillstyle="none")
    axis.set(title=title, aspect="equal", xlim=(-1.5, 1.5), ylim=(-1, 1), xticks=[], yticks=[])


shown = near[misses[0, near].argmax()]  # of the good ones, that with the worst guess
figure, axes = plt.subplot_mosaic([[0, 1, 2, 3], ["map", "map", "loss", "loss"]], figsize=(12, 7.6), layout="constrained",
                                  height_ratios=[1.2, 1.9])
for k, when in enumerate(moments):
    draw(axes[k], tracks[when], f"iteration {when}: T = {tracks[when][shown, 2]:.3f}")
for g in range(GUESSES):
    axes["map"].plot(tracks[:, g, 0], tracks[:, g, 1], color="#cccccc", linewidth=0.7, zorder=1)
image = axes["map"].scatter(*found[:, :2].T, c=np.log10(misses[-1]), cmap="viridis_r", s=18, zorder=2)
axes["map"].plot(*tracks[:, shown, :2].T, color="#b2182b", zorder=3)
axes["map"].plot(0.3471, 0.5327, "*", color="#b2182b", markersize=14, zorder=3)
axes["map"].set(xlabel="vx", ylabel="vy", title=f"ways of {GUESSES} guesses; star: the figure eight, red: the guess above")
figure.colorbar(image, ax=axes["map"], label="log10 of the distance in the end", location="bottom")
axes["loss"].semilogy(misses[:, near[:40]], color="#cccccc", linewidth=0.7)
axes["loss"].semilogy(misses[:, shown], color="#b2182b")
axes["loss"].set(xlabel="iteration", title="distance in the end (rings) from the start (dots)")
axes["loss"].grid(alpha=0.3)
figure.savefig("orbit.png", dpi=85)
