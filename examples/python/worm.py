# %% [markdown]
# # Worm: how does a chain of rigid links crawl?
#
# Eight rigid links lie on the floor. Motors in their joints can bend the chain; nothing else moves it but the friction of what
# touches the ground. What is sought is how each motor moves in time, 56 numbers, so that the worm is at a mark in
# four seconds. Nothing tells it how to crawl.
#
# ![The worm crawls](worm.gif)
#
# ![The worm at several times, what the motors do, and the loss](worm.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
WORMS, STEPS, ITERATIONS = (4, 60, 6) if QUICK else (8, 400, 30)
NODES, LINK, SWEEPS = 9, 0.1, 10  # m; sweeps over all constraints in a step
MOTORS, WAVES, SLOWEST = NODES - 2, 4, 2 * np.pi / 2  # waves have periods of 2 s, 1 s, ...
H, GRAVITY, FRICTION, BEND = 0.01, 9.81, 0.8, 0.3 * LINK
MARK = 0.5 * STEPS / 400  # m, from where it begins

# %% [markdown]
# ## A step
#
# Nodes fly freely for a moment; then constraints put them right, one after the other, in several sweeps (position based dynamics,
# Müller 2007):
#
# - a link has its length, whatever pulls at it;
# - a joint is as far from the line between its neighbours as its motor says;
# - no node is below the floor, and one that was pushed out of it is braked by Coulomb's friction.
#
# Places of one worm are a matrix that the sweeps overwrite dozens of times, and `if` decides where there is contact. The gradient
# of all that is exact; what it needs of each sweep, it saves or computes again.

# %%
weights = qd.field(qd.f64, shape=(WORMS, MOTORS, 2 * WAVES), needs_grad=True)
bends = qd.field(qd.f64, shape=(WORMS, STEPS, MOTORS), needs_grad=True)
x = qd.Vector.field(2, qd.f64, shape=(WORMS, STEPS + 1, NODES), needs_grad=True)
v = qd.Vector.field(2, qd.f64, shape=(WORMS, STEPS + 1, NODES), needs_grad=True)
miss = qd.field(qd.f64, shape=WORMS, needs_grad=True)
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.kernel
def drive():
    for w, t, m in bends:
        total = 0.0
        for k in range(WAVES):
            angle = (k + 1) * SLOWEST * H * t
            total += weights[w, m, 2 * k] * qd.sin(angle) + weights[w, m, 2 * k + 1] * (qd.cos(angle) - 1)
        bends[w, t, m] = BEND * qd.tanh(total)


@qd.func
def row(p, i):
    return qd.Vector([p[i, 0], p[i, 1]])


@qd.kernel
def step(t: qd.i32):
    for w in range(WORMS):
        p = qd.Matrix.zero(qd.f64, NODES, 2)
        for i in range(NODES):
            p[i, 0] = x[w, t, i][0] + H * v[w, t, i][0]
            p[i, 1] = x[w, t, i][1] + H * v[w, t, i][1] - H * H * GRAVITY
        for sweep in range(SWEEPS):
            for i in range(NODES - 1):
                way = row(p, i + 1) - row(p, i)
                move = 0.5 * (way.norm() - LINK) * way.normalized()
                for k in qd.static(range(2)):
                    p[i, k] += move[k]
                    p[i + 1, k] -= move[k]
            for i in range(1, NODES - 1):
                along = (row(p, i + 1) - row(p, i - 1)).normalized()
                up = qd.Vector([-along[1], along[0]])
                off = (row(p, i) - 0.5 * (row(p, i - 1) + row(p, i + 1))).dot(up) - bends[w, t, i - 1]
                move = 0.5 * off / 1.5 * up
                for k in qd.static(range(2)):
                    p[i, k] -= move[k]
                    p[i - 1, k] += 0.5 * move[k]
                    p[i + 1, k] += 0.5 * move[k]
            for i in range(NODES):
                if p[i, 1] < 0:
                    most = -FRICTION * p[i, 1]
                    p[i, 0] -= qd.math.clamp(p[i, 0] - x[w, t, i][0], -most, most)
                    p[i, 1] = 0.0
        for i in range(NODES):
            x[w, t + 1, i] = row(p, i)
            v[w, t + 1, i] = (row(p, i) - x[w, t, i]) / H


@qd.kernel
def measure():
    for w in miss:
        way = 0.0
        for i in range(NODES):
            way += (x[w, STEPS, i][0] - x[w, 0, i][0]) / NODES
        miss[w] = (way - MARK) ** 2
    for w in miss:
        loss[None] += miss[w] / WORMS


start = np.zeros((WORMS, STEPS + 1, NODES, 2))
start[:, 0, :, 0] = LINK * np.arange(NODES)
x.from_numpy(start)

# %% [markdown]
# ## The gradient
#
# Several worms learn at the same time, from different first twitches.

# %%
def gradient(values):
    """The loss, and its derivatives by the weights."""
    weights.from_numpy(values)
    with qd.ad.Tape(loss):
        drive()
        for t in range(STEPS):
            step(t)
        measure()
    return loss[None], weights.grad.to_numpy()


values = 0.3 * np.random.default_rng(5).standard_normal((WORMS, MOTORS, 2 * WAVES))
_, slopes = gradient(values)
for w in range(4):
    way = np.zeros_like(values)
    way[w, 3, 0] = 1.0
    slope = slopes[w, 3, 0]
    difference = (gradient(values + 1e-7 * way)[0] - gradient(values - 1e-7 * way)[0]) / 2e-7
    print(f"worm {w}, its middle motor: {slope:.8f} by the gradient, {difference:.8f} by differences")
    assert abs(slope - difference) < 1e-6

# %% [markdown]
# ## Descent, along the direction of the gradient
#
# Feet that slip make a rugged landscape: a gradient may be a thousand times longer in one place than in the next. So each worm
# goes by the *direction* of its gradient, with momentum.

# %%
gradient(values)
momentum, misses, best, record = np.zeros_like(values), [], None, np.inf
for iteration in tqdm(range(ITERATIONS)):
    value, slope = gradient(values)
    misses.append(np.sqrt(miss.to_numpy()))
    if misses[-1].min() < record:
        record, best = misses[-1].min(), (misses[-1].argmin(), values.copy())
    length = np.linalg.norm(slope, axis=(1, 2), keepdims=True)
    momentum = 0.6 * momentum + 0.4 * slope / (length + 1e-12)
    values = values - np.minimum(0.3, misses[-1])[:, None, None] * momentum
misses = np.array(misses)
number, found = best
print(f"the best of {WORMS} worms misses the mark by {1000 * record:.1f} mm; at first it was {1000 * misses[0, number]:.0f} mm")
assert record < (0.95 if QUICK else 0.1) * misses[0, number]

# %% [markdown]
# ## How it crawls

# %%
gradient(found)
way, motors = x.to_numpy()[number], bends.to_numpy()[number]


def draw(axis, t, **look):
    axis.plot(*way[t].T, "o-", linewidth=4, markersize=5, solid_capstyle="round", **look)


def stage(axis):
    axis.axhspan(-0.1, -0.02, color="#d8d0bd")
    axis.axvline(LINK * (NODES - 1) / 2 + MARK, color="#1a7a3c", linestyle=":")
    axis.set(aspect="equal", xlim=(-0.25, LINK * NODES + MARK + 0.15), ylim=(-0.1, 0.35), xlabel="m")


figure, axis = plt.subplots(figsize=(7, 1.9), layout="constrained")


def frame(t):
    axis.clear()
    stage(axis)
    draw(axis, t, color="#b2182b")
    axis.set_title(f"{t * H:.2f} s; the dotted line: where its middle shall be")


FuncAnimation(figure, frame, range(0, STEPS + 1, 8)).save("worm.gif", PillowWriter(fps=12), dpi=70)
plt.close(figure)

figure, axes = plt.subplot_mosaic([["stage", "stage"], ["motors", "loss"]], figsize=(12, 6.4), layout="constrained")
stage(axes["stage"])
for k in range(6):
    draw(axes["stage"], k * STEPS // 5, color=plt.cm.inferno(0.9 - 0.16 * k), label=f"{k * STEPS // 5 * H:.1f} s")
axes["stage"].legend(ncols=2, loc="upper left")
axes["stage"].set_title("the worm at six times; the dotted line is where its middle shall be")
image = axes["motors"].imshow(motors.T * 100, aspect="auto", cmap="RdBu_r", origin="lower", extent=(0, STEPS * H, 0, MOTORS),
                              vmin=-100 * BEND, vmax=100 * BEND)
axes["motors"].set(xlabel="time, s", ylabel="motor, from the tail on", title="how far motors bend the chain, cm: red up, blue down")
figure.colorbar(image, ax=axes["motors"])
axes["loss"].semilogy(1000 * misses, color="#cccccc", linewidth=0.8)
axes["loss"].semilogy(1000 * misses[:, number], color="#b2182b", label="the best one")
axes["loss"].set(xlabel="iteration", title="how far worms end from the mark, mm")
axes["loss"].set_ylim(1e-2)
axes["loss"].legend()
axes["loss"].grid(alpha=0.3)
figure.savefig("worm.png", dpi=85)
