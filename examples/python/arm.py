# %% [markdown]
# # Arm: which angles of its joints write a heart?
#
# A robot arm is a chain of seven rigid links. Where its tip is follows from the angles of its joints, which is forward
# kinematics; the question the other way round, inverse kinematics, has no formula for such an arm. Here all 48 poses of a
# motion are sought at once, 336 angles: the tip follows the curve, the arm keeps out of a ball that is in its way, and each
# pose is close to the next.
#
# ![The arm before and after, and the loss](arm.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
POSES, ITERATIONS = (12, 40) if QUICK else (48, 300)
LINKS, BALL, RADIUS = 7, (0.35, 0.0, 0.55), 0.22

# %% [markdown]
# ## The kernel
#
# One work item is one pose. Along the arm it carries a rotation and a place; each joint rotates what follows about its axis.
# The penalty of the ball is `max(depth, 0)` squared, which has no kink.

# %%
Angles = qd.types.ndarray(dtype=qd.f64, ndim=2)  # by pose and joint
Numbers = qd.types.ndarray(dtype=qd.f64, ndim=1)
Vectors = qd.types.ndarray(dtype=qd.types.vector(3, qd.f64), ndim=1)
Joints = qd.types.ndarray(dtype=qd.types.vector(3, qd.f64), ndim=2)
Loss = qd.types.ndarray(dtype=qd.f64, ndim=0)


@qd.func
def about(axis, angle):
    """The rotation about an axis (Rodrigues)."""
    x, y, z = axis[0], axis[1], axis[2]
    across = qd.Matrix([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return qd.Matrix.identity(qd.f64, 3) + qd.sin(angle) * across + (1 - qd.cos(angle)) * (across @ across)


@qd.func
def in_ball(point):
    """How far a point is inside of the ball, squared."""
    depth = qd.max(RADIUS - (point - qd.Vector(BALL)).norm(), 0.0)
    return depth * depth


@qd.kernel
def reach(angles: Angles, axes: Vectors, lengths: Numbers, curve: Vectors, joints: Joints, loss: Loss):
    for p in range(POSES):
        rotation, place, penalty = qd.Matrix.identity(qd.f64, 3), qd.Vector([0.0, 0.0, 0.0]), 0.0
        for k in range(LINKS):
            rotation = rotation @ about(axes[k], angles[p, k])
            link = rotation @ qd.Vector([0.0, 0.0, lengths[k]])
            penalty += in_ball(place + 0.5 * link) + in_ball(place + link)
            place += link
            joints[p, k] = place
            penalty += 2e-3 * (angles[(p + 1) % POSES, k] - angles[p, k]) ** 2
        loss[None] += (place - curve[p]).norm_sqr() + penalty


# %% [markdown]
# ## The arm and the heart

# %%
angles = qd.ndarray(qd.f64, shape=(POSES, LINKS), needs_grad=True)
axes = qd.Vector.ndarray(3, qd.f64, shape=LINKS, needs_grad=True)
lengths = qd.ndarray(qd.f64, shape=LINKS, needs_grad=True)
curve = qd.Vector.ndarray(3, qd.f64, shape=POSES, needs_grad=True)
joints = qd.Vector.ndarray(3, qd.f64, shape=(POSES, LINKS), needs_grad=True)
loss = qd.ndarray(qd.f64, shape=(), needs_grad=True)

upright, across, along = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)
axes.from_numpy(np.array([upright, across, across, along, across, along, across]))
lengths.from_numpy(np.array([0.1, 0.35, 0.3, 0.2, 0.2, 0.15, 0.1]))
t = np.linspace(0, 2 * np.pi, POSES, endpoint=False)
heart = np.stack([0.75 + 0 * t, 0.4 * np.sin(t) ** 3,
                  0.65 + 0.025 * (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t))], axis=-1)
curve.from_numpy(heart)

# %% [markdown]
# ## The gradient of one launch
#
# One kernel needs no `Tape`: `reach.grad` takes the arguments of `reach`, and adds to the gradients of what the kernel reads.
# `check_gradient` compares it with forward mode and with differences, by all arrays.

# %%
def gradient(values):
    """The loss, and its derivatives by the angles."""
    angles.from_numpy(values)
    loss.fill(0)
    reach(angles, axes, lengths, curve, joints, loss)
    angles.grad.fill(0)
    loss.grad.fill(1)
    reach.grad(angles, axes, lengths, curve, joints, loss)
    return loss[None], angles.grad.to_numpy()


bent = np.tile([0, -0.3, 0.8, 0.1, 0.5, 0.1, 0.3], (POSES, 1))  # over the ball
gradient(bent)
first = joints.to_numpy()
check = qd.ad.check_gradient(reach, angles, axes, lengths, curve, joints, loss)
print(check)
assert check.ok

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


values = bent.copy()
losses = adam(values, 0.03, ITERATIONS)
last = joints.to_numpy()
miss = np.linalg.norm(last[:, -1] - heart, axis=1)
print(f"the tip misses the curve by {1000 * miss.mean():.1f} mm on average, {1000 * miss.max():.1f} mm at most")
assert losses[-1] < losses[0] / (5 if QUICK else 50)

# %% [markdown]
# All of this takes a fraction of a second: 48 poses in parallel, and the gradient of 336 angles costs about as much as a few
# runs of the kernel.

# %%
def draw(axis, poses, title):
    u, w = np.mgrid[0 : 2 * np.pi : 25j, -np.pi / 2 : np.pi / 2 : 13j]
    axis.plot_wireframe(BALL[0] + RADIUS * np.cos(u) * np.cos(w), BALL[1] + RADIUS * np.sin(u) * np.cos(w),
                        BALL[2] + RADIUS * np.sin(w), color="#b9b2a2", linewidth=0.6)
    for p in range(0, POSES, max(1, POSES // 8)):
        arm = np.vstack([np.zeros(3), poses[p]])
        axis.plot(*arm.T, "o-", color=plt.cm.viridis(p / POSES), linewidth=2, markersize=3)
    axis.plot(*np.vstack([heart, heart[:1]]).T, "o", color="#1a7a3c", markersize=4, fillstyle="none")
    axis.plot(*np.vstack([poses[:, -1], poses[:1, -1]]).T, color="#222222", linewidth=2)
    axis.set(title=title, xlim=(-0.2, 1), ylim=(-0.6, 0.6), zlim=(0, 1.2), xlabel="m", ylabel="m", xticks=[0, 0.5, 1], yticks=[-0.5, 0, 0.5], zticks=[0, 0.5, 1])
    axis.set_box_aspect((1, 1, 1), zoom=1.15)
    axis.view_init(elev=18, azim=-52)


figure = plt.figure(figsize=(12, 7.5), layout="constrained")
grid = figure.add_gridspec(2, 2, height_ratios=[2.2, 1])
draw(figure.add_subplot(grid[0, 0], projection="3d"), first, "before: all poses are the same")
draw(figure.add_subplot(grid[0, 1], projection="3d"), last, "after: the tip writes a heart; poses from dark to light")
curve_of_loss = figure.add_subplot(grid[1, :])
curve_of_loss.semilogy(losses, color="#b2182b")
curve_of_loss.set(xlabel="iteration", title="loss: squared misses, depths in the ball, and differences between poses")
curve_of_loss.grid(alpha=0.3)
figure.savefig("arm.png", dpi=90)
