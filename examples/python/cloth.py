# %% [markdown]
# # Cloth: how must it be thrown, so that it lands as an arch?
#
# A square cloth lies flat in the air. Half a second later it shall be an arch, half a cylinder. What is sought is the
# velocity with which each of its points is thrown: 768 numbers. The cloth falls, its springs stretch and swing, and the
# gradient of the miss goes back through all 120 steps of that.
#
# ![The cloth when it is only dropped, five moments of the throw that was found, the arch, and the loss](cloth.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
SIDE, STEPS, ITERATIONS = (8, 60, 10) if QUICK else (16, 120, 100)
GRAVITY, STIFFNESS, FRICTION = 9.8, 120.0, 1.2  # m/s², and of springs per mass: m/s², 1/s
H = 0.5 / STEPS  # s

# %% [markdown]
# ## The cloth
#
# Masses are joined by springs: to their neighbours along rows, columns and diagonals, and to the next but one, so that the
# cloth resists bending. Positions and velocities have an axis for time, so a step reads slice `t` and writes slice `t + 1`.
# Nothing is overwritten, and a recording needs no copies. `qd.static` unrolls the loop over springs.

# %%
SPRINGS = [(a, b) for a in range(-2, 3) for b in range(-2, 3)
           if (a == 0) != (b == 0) or (abs(a) == 1 and abs(b) == 1)]

thrown = qd.Vector.field(3, qd.f64, shape=(SIDE, SIDE), needs_grad=True)
wanted = qd.Vector.field(3, qd.f64, shape=(SIDE, SIDE))
x = qd.Vector.field(3, qd.f64, shape=(STEPS + 1, SIDE, SIDE), needs_grad=True)
v = qd.Vector.field(3, qd.f64, shape=(STEPS + 1, SIDE, SIDE), needs_grad=True)
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.kernel
def throw():
    for i, j in thrown:
        x[0, i, j] = qd.Vector([i / (SIDE - 1), j / (SIDE - 1), 1.5])
        v[0, i, j] = thrown[i, j]


@qd.kernel
def step(t: qd.i32):
    for i, j in thrown:
        force = qd.Vector([0.0, 0.0, -GRAVITY])
        for a, b in qd.static(SPRINGS):
            if 0 <= i + a < SIDE and 0 <= j + b < SIDE:
                way = x[t, i + a, j + b] - x[t, i, j]
                direction = way.normalized()
                stretch = way.norm() * (SIDE - 1) / (a * a + b * b) ** 0.5 - 1
                speed = (v[t, i + a, j + b] - v[t, i, j]).dot(direction)
                force += (STIFFNESS * stretch + FRICTION * speed) * direction
        v[t + 1, i, j] = v[t, i, j] + H * force
        x[t + 1, i, j] = x[t, i, j] + H * v[t + 1, i, j]


@qd.kernel
def compare():
    for i, j in wanted:
        loss[None] += (x[STEPS, i, j] - wanted[i, j]).norm_sqr() / SIDE**2


angle, across = np.meshgrid(np.linspace(0, np.pi, SIDE), np.linspace(0, 1, SIDE), indexing="ij")
wanted.from_numpy(np.stack([0.5 - np.cos(angle) / np.pi, across, np.sin(angle) / np.pi], axis=-1))

# %% [markdown]
# ## Its gradient
#
# A `Tape` records the launches, here 122, and runs their derivatives backwards when the `with` ends. Is the result right? The
# slope along some direction must be that of two more flights, a little to both sides.

# %%
def gradient(throws):
    """The loss, and its derivatives by the velocities."""
    thrown.from_numpy(throws)
    with qd.ad.Tape(loss):
        throw()
        for t in range(STEPS):
            step(t)
        compare()
    return loss[None], thrown.grad.to_numpy()


throws = np.zeros((SIDE, SIDE, 3))  # at first the cloth is only let go
way = np.random.default_rng(1).standard_normal(throws.shape)
slope = (gradient(throws)[1] * way).sum()
difference = (gradient(throws + 1e-6 * way)[0] - gradient(throws - 1e-6 * way)[0]) / 2e-6
print(f"slope of the loss along a direction: {slope:.9f} by the gradient, {difference:.9f} by differences")
assert abs(slope - difference) < 1e-6 * abs(difference)

# %% [markdown]
# ## Descent
#
# Adam (Kingma and Ba, 2015) takes steps of its own length for each number, which suits springs.

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


gradient(throws)
dropped = x.to_numpy()[-1]
losses = adam(throws, rate=0.15, iterations=ITERATIONS)
print(f"mean squared distance from the arch: {losses[0]:.4f} m² at first, {losses[-1]:.6f} m² now")
assert losses[-1] < losses[0] / (2 if QUICK else 200)

# %% [markdown]
# The throw that is found hits the cloth in the middle: it wrinkles on its way, and comes down as the arch. A cloth that is only
# dropped stays flat.

# %%
def surface(axis, points, alpha=1.0):
    height = plt.cm.coolwarm((points[..., 2] + 0.1) / 1.9)
    axis.plot_surface(*points.transpose(2, 0, 1), facecolors=height, edgecolor="#00000030", linewidth=0.3,
                      rstride=1, cstride=1, alpha=alpha)


figure = plt.figure(figsize=(11, 7.5), layout="constrained")
views = [figure.add_subplot(2, 2, k + 1, projection="3d") for k in range(3)]
flight = x.to_numpy()
surface(views[0], dropped)
for k in range(5):
    surface(views[1], flight[k * STEPS // 4])
surface(views[2], flight[-1])
for axis, title in zip(views, ("only dropped: flat after half a second", "thrown: five moments of the flight",
                               "where it ends: the arch")):
    axis.set(title=title, xlim=(0, 1), ylim=(0, 1), zlim=(0, 1.7 if axis is not views[2] else 0.6), zlabel="m")
    axis.view_init(elev=22, azim=-60)
curve = figure.add_subplot(2, 2, 4)
curve.semilogy(losses, color="#b2182b")
curve.set(xlabel="iteration", title="mean squared distance from the arch, m²")
curve.grid(alpha=0.3)
figure.savefig("cloth.png", dpi=90)
