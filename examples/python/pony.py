# %% [markdown]
# # Pony: how does a soft body learn to gallop?
#
# A pony of soft rubber stands on the floor. It has 18 muscles; how strongly each pulls or pushes is a sum of a few waves in
# time, 144 numbers in all. Gradient descent through 500 steps of its simulation finds numbers by which it gets to a target
# half a metre away. The method is MLS-MPM, the idea that of ChainQueen and
# DiffTaichi (Hu et al., 2019).
#
# ![The pony gallops](pony.gif)
#
# ![The pony before and after, its loss, and its muscles](pony.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
STEPS, ITERATIONS = (40, 2) if QUICK else (500, 22)
# The world: 1.5 m wide, 0.75 m high, somewhere with the gravity of Mars.
COLUMNS, ROWS, MARGIN = 96, 48, 3
SPACING, H = 1 / 64, 2e-3
GRAVITY, FRICTION = 3.7, 0.8
# The flesh: soft rubber, as dense as water.
MU, LAMBDA, VISCOSITY = 1e4 / 2.6, 1e4 / 2.6 * 0.6 / 0.4, 15.0
SIZE = SPACING / 3.6  # of the square that a particle stands for
VOLUME, MASS = SIZE**2, 1000 * SIZE**2
# The stress of a muscle is a sum of a few waves in time, squashed to a limit.
STRENGTH, WAVES, SLOWEST = 3e3, 4, 4.0
TARGET = (0.85, 0.18)

# %% [markdown]
# ## The pony
#
# Blocks of particles: four legs of two muscles, a back of eight, a head, a tail.

# %%
def make_pony():
    """Position, muscle and fibre of each particle."""
    left, ground, leg, back, rib = 0.2, MARGIN * SPACING, 0.035, 0.38, 0.07
    hip = ground + 0.12
    legs = [(left + i * (back - 2 * leg) / 3 + side * leg, ground, leg, hip - ground, (0, 1))
            for i in range(4) for side in range(2)]
    ribs = [(left + i * back / 4, hip + row * rib, back / 4, rib, (1, 0))
            for i in range(4) for row in range(2)]
    ends = [(left + back, hip + 0.05, 0.08, 0.1, (0, 1)), (left - 0.08, hip + 0.11, 0.08, 0.03, (1, 0))]
    position, muscle, fibre = [], [], []
    for number, (x, y, width, height, direction) in enumerate(legs + ribs + ends):
        across, up = round(width / SIZE), round(height / SIZE)
        for i in range(across):
            for j in range(up):
                position.append((x + (i + 0.5) * width / across, y + (j + 0.5) * height / up))
                muscle.append(number)
                fibre.append(direction)
    return np.array(position), np.array(muscle, dtype=np.int32), np.array(fibre, dtype=float)


positions, muscles, fibres = make_pony()
COUNT, MUSCLES = len(positions), muscles.max() + 1
print(f"{COUNT} particles, {MUSCLES} muscles, {MUSCLES * 2 * WAVES} weights to learn")

# %% [markdown]
# ## The simulation
#
# The material point method (MLS-MPM): particles carry the flesh, a grid carries the motion. A step is three kernels: particles
# scatter mass and momentum to 3 by 3 nodes around them, nodes collide with the floor, and particles gather velocity from the
# nodes. All fields have an axis for time, so that nothing is overwritten.

# %%
weights = qd.field(qd.f64, shape=(MUSCLES, 2 * WAVES), needs_grad=True)
activation = qd.field(qd.f64, shape=(STEPS, MUSCLES), needs_grad=True)
x = qd.Vector.field(2, qd.f64, shape=(STEPS + 1, COUNT), needs_grad=True)
v = qd.Vector.field(2, qd.f64, shape=(STEPS + 1, COUNT), needs_grad=True)
C = qd.Matrix.field(2, 2, qd.f64, shape=(STEPS + 1, COUNT), needs_grad=True)  # how the velocity changes in space
F = qd.Matrix.field(2, 2, qd.f64, shape=(STEPS + 1, COUNT), needs_grad=True)  # how the flesh is deformed
mass = qd.field(qd.f64, shape=(STEPS, COLUMNS, ROWS), needs_grad=True)
momentum = qd.Vector.field(2, qd.f64, shape=(STEPS, COLUMNS, ROWS), needs_grad=True)
velocity = qd.Vector.field(2, qd.f64, shape=(STEPS, COLUMNS, ROWS), needs_grad=True)
centre = qd.Vector.field(2, qd.f64, shape=(), needs_grad=True)
loss = qd.field(qd.f64, shape=(), needs_grad=True)
muscle = qd.field(qd.i32, shape=COUNT)
fibre = qd.Vector.field(2, qd.f64, shape=COUNT)


@qd.kernel
def activate():
    for t, m in activation:
        total = 0.0
        for k in range(WAVES):
            angle = (k + 1) * SLOWEST * H * t
            total += weights[m, 2 * k] * qd.sin(angle) + weights[m, 2 * k + 1] * qd.cos(angle)
        activation[t, m] = qd.tanh(total)


@qd.func
def nodes(point):
    """The node at the lower left of a point, the way from it, and the weights of 3 x 3 nodes."""
    at = point / SPACING
    base = qd.math.clamp(qd.cast(at - 0.5, qd.i32), 0, qd.Vector([COLUMNS - 3, ROWS - 3]))
    offset = at - base
    return base, offset, [0.5 * (1.5 - offset) ** 2, 0.75 - (offset - 1) ** 2, 0.5 * (offset - 0.5) ** 2]


@qd.kernel
def scatter(t: qd.i32):
    for p in range(COUNT):
        flow, eye = C[t, p], qd.Matrix.identity(qd.f64, 2)
        shape = (eye + H * flow) @ F[t, p]
        F[t + 1, p] = shape
        # Neo-Hookean rubber, viscosity, and a muscle that pulls along its fibre.
        pull = shape @ fibre[p]
        stress = (MU * (shape @ shape.transpose()) + (LAMBDA * qd.log(shape.determinant()) - MU) * eye
                  + VISCOSITY * (flow + flow.transpose())
                  + STRENGTH * activation[t, muscle[p]] * pull.outer_product(pull))
        impulse = -H * VOLUME * 4 / SPACING**2 * stress + MASS * flow
        base, offset, near = nodes(x[t, p])
        for i, j in qd.static(qd.ndrange(3, 3)):
            arm = SPACING * (qd.Vector([i, j]) - offset)
            weight = near[i][0] * near[j][1]
            mass[t, base[0] + i, base[1] + j] += weight * MASS
            momentum[t, base[0] + i, base[1] + j] += weight * (MASS * v[t, p] + impulse @ arm)


@qd.kernel
def collide(t: qd.i32):
    for i, j in qd.ndrange(COLUMNS, ROWS):
        speed = qd.Vector([0.0, 0.0])
        if mass[t, i, j] > 0:
            speed = momentum[t, i, j] / mass[t, i, j]
            speed[1] -= GRAVITY * H
            if (i < MARGIN and speed[0] < 0) or (i >= COLUMNS - MARGIN and speed[0] > 0):
                speed[0] = 0.0
            if j >= ROWS - MARGIN and speed[1] > 0:
                speed[1] = 0.0
            if j < MARGIN and speed[1] < 0:  # the floor stops y, and brakes x
                speed[0] -= qd.math.clamp(speed[0], FRICTION * speed[1], -FRICTION * speed[1])
                speed[1] = 0.0
        velocity[t, i, j] = speed


@qd.kernel
def gather(t: qd.i32):
    for p in range(COUNT):
        base, offset, near = nodes(x[t, p])
        mean, moment = qd.Vector([0.0, 0.0]), qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
        for i, j in qd.static(qd.ndrange(3, 3)):
            share = near[i][0] * near[j][1] * velocity[t, base[0] + i, base[1] + j]
            mean += share
            moment += share.outer_product(SPACING * (qd.Vector([i, j]) - offset))
        v[t + 1, p] = mean
        C[t + 1, p] = 4 / SPACING**2 * moment
        x[t + 1, p] = x[t, p] + H * mean


@qd.kernel
def average():
    for p in range(COUNT):
        centre[None] += x[STEPS, p] / COUNT


@qd.kernel
def measure():
    loss[None] = (centre[None] - qd.Vector(TARGET)).norm_sqr()


muscle.from_numpy(muscles)
fibre.from_numpy(fibres)
x.from_numpy(np.concatenate([positions[None], np.zeros((STEPS, COUNT, 2))]))
F.from_numpy(np.concatenate([np.tile(np.eye(2), (1, COUNT, 1, 1)), np.zeros((STEPS, COUNT, 2, 2))]))

# %% [markdown]
# ## The gradient, through all launches

# %%
def gradient(values):
    """The loss, and its derivatives by the weights."""
    weights.from_numpy(values)
    for field in (mass, momentum, centre):  # what kernels add to
        field.fill(0)
    with qd.ad.Tape(loss):
        activate()
        for t in range(STEPS):
            scatter(t)
            collide(t)
            gather(t)
        average()
        measure()
    return loss[None], weights.grad.to_numpy()


twitch = 0.3 * np.sin(12.9 * np.arange(MUSCLES * 2 * WAVES)).reshape(-1, 2 * WAVES)
_, slope = gradient(twitch)
for k in (2, 74):
    step = np.zeros_like(twitch)
    step.flat[k] = 1e-5
    difference = (gradient(twitch + step)[0] - gradient(twitch - step)[0]) / 2e-5
    print(f"d loss / d weight {k:3}: {slope.flat[k]:.12f} by the gradient, {difference:.12f} by differences")
    assert abs(slope.flat[k] - difference) < 1e-6

# %% [markdown]
# ## Descent, along the direction of the gradient
#
# Feet that slip, or hit the ground a little earlier, make a rugged landscape. So only the direction of the gradient counts, with
# some momentum, and the length of a step depends on how far the target is.

# %%
values = np.zeros((MUSCLES, 2 * WAVES))
drift, losses = np.zeros_like(values), []
progress = tqdm(range(ITERATIONS))
for _ in progress:
    value, slope = gradient(values)
    losses.append(value)
    progress.set_postfix(loss=f"{value:.6f}")
    drift = 0.6 * drift + 0.4 * slope / np.linalg.norm(slope)
    values -= min(1.0, 10 * np.sqrt(value)) * drift
losses.append(gradient(values)[0])
print(f"from {losses[0]:.6f} m² to {losses[-1]:.6f} m²: {losses[0] / losses[-1]:.0f} times less")
assert losses[-1] < losses[0] / (1 if QUICK else 100)

# %% [markdown]
# ## The gallop
#
# Red muscles pull, blue ones push, pale ones rest.

# %%
way, pulls = x.to_numpy(), activation.to_numpy()


def stage(axis, t, size):
    axis.axhspan(0, MARGIN * SPACING, color="#d8d0bd")
    axis.scatter(*way[t].T, s=size, c=pulls[min(t, STEPS - 1)][muscles], cmap="RdBu_r", vmin=-1, vmax=1)
    axis.plot(*TARGET, "o", color="#1a7a3c", markersize=13, fillstyle="none", markeredgewidth=2)
    axis.set(aspect="equal", xlim=(0.03, 1.28), ylim=(0, 0.42), xticks=[], yticks=[])


figure, axis = plt.subplots(figsize=(5, 1.8), layout="constrained")


def frame(t):
    axis.clear()
    stage(axis, t, size=0.7)


FuncAnimation(figure, frame, range(0, STEPS + 1, 20)).save("pony.gif", PillowWriter(fps=12), dpi=50)
plt.close(figure)

figure, axes = plt.subplot_mosaic([["stage"] * 2, ["losses", "muscles"]], figsize=(13, 9), height_ratios=[1.3, 1],
                                  layout="constrained")
axes["stage"].scatter(*way[0].T, s=5, color="#c9c4b8")
stage(axes["stage"], STEPS, size=5)
axes["stage"].plot(*way.mean(axis=1).T, color="#222222", linewidth=2)
axes["stage"].set_title("at first (grey), after one second (coloured), the path of its centre, and the target")
axes["losses"].semilogy(losses, "o-", color="#b2182b")
axes["losses"].set(xlabel="iteration", title="loss: squared distance to the target, m²")
axes["losses"].grid(alpha=0.3)
image = axes["muscles"].imshow(pulls.T, aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1, origin="lower",
                               extent=(0, STEPS * H, 0, MUSCLES))
axes["muscles"].set(xlabel="time, s", ylabel="muscle", title="what the muscles learnt: red pulls, blue pushes")
figure.colorbar(image, ax=axes["muscles"])
figure.savefig("pony.png", dpi=75)
