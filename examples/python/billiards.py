# %% [markdown]
# # Billiards: how must the cue ball be hit?
#
# The red ball shall stop in the ring. The cue ball has two numbers, its velocity; what happens then is a chain of collisions.
# The game is computed from one collision to the next, not in steps of time, so the gradient is that of the game itself, with
# the times of its collisions.
#
# ![Ways of the balls with the first shot and with the best one that was found, and the loss](billiards.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
SHOTS, ITERATIONS, POLISH = (64, 20, 20) if QUICK else (256, 100, 150)
BALLS, LENGTH, WIDTH, RADIUS = 7, 2.0, 1.0, 0.04  # m; ball 0 is the cue ball
RED, GOAL, MOST = 5, (1.8, 0.8), 200  # the most collisions of a game

# %% [markdown]
# ## A game
#
# Balls slow down in proportion to their speed, so *how far they have come* can be the clock: between collisions, balls go
# straight ahead by their velocity times what the clock has moved, and at 1 all of them rest.
#
# Each iteration of the `while` looks for what comes next among all pairs of balls and all cushions, moves all balls there, and
# changes the velocities of those that meet. Places and velocities are matrices of one work item, read and written at indices
# that the game decides. One game takes a few iterations, another dozens: no bound is needed for the gradient.

# %%
vec2 = qd.types.vector(2, qd.f64)
shots = qd.Vector.field(2, qd.f64, shape=SHOTS, needs_grad=True)
rack = qd.Vector.field(2, qd.f64, shape=BALLS)
path = qd.Vector.field(2, qd.f64, shape=(SHOTS, MOST + 1, BALLS))
events = qd.field(qd.i32, shape=SHOTS)
miss = qd.field(qd.f64, shape=SHOTS, needs_grad=True)  # squared
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.func
def row(matrix, i):
    return qd.Vector([matrix[i, 0], matrix[i, 1]])


@qd.func
def until_cushion(x, speed, length):
    """What the clock moves until a coordinate reaches the cushion that it moves to."""
    until = 2.0
    if speed > 0:
        until = (length - RADIUS - x) / speed
    elif speed < 0:
        until = (RADIUS - x) / speed
    return until


@qd.func
def until_touch(way, closing):
    """Until two balls touch, if they do: the smaller root of a quadratic equation."""
    until, b = 2.0, way.dot(closing)
    if b < 0:
        gap = way.norm_sqr() - 4 * RADIUS**2
        inside = b * b - closing.norm_sqr() * gap
        if inside > 0:
            until = gap / (qd.sqrt(inside) - b)
    return until


@qd.kernel
def play():
    for s in shots:
        place, speed = qd.Matrix.zero(qd.f64, BALLS, 2), qd.Matrix.zero(qd.f64, BALLS, 2)
        for b in range(BALLS):
            for k in qd.static(range(2)):
                place[b, k] = rack[b][k]
            path[s, 0, b] = qd.stop_grad(row(place, b))
        for k in qd.static(range(2)):
            speed[0, k] = shots[s][k]
        left, count = 1.0, 0
        while left > 0 and count < MOST:
            until, first, second = left, -1, -1
            for i in range(BALLS):
                for k in qd.static(range(2)):
                    wall = until_cushion(place[i, k], speed[i, k], LENGTH if k == 0 else WIDTH)
                    if wall < until:
                        until, first, second = wall, i, -1 - k
                for j in range(i + 1, BALLS):
                    touch = until_touch(row(place, j) - row(place, i), row(speed, j) - row(speed, i))
                    if touch < until:
                        until, first, second = touch, i, j
            count += 1
            left -= until
            for b in range(BALLS):
                for k in qd.static(range(2)):
                    place[b, k] += until * speed[b, k]
                path[s, count, b] = qd.stop_grad(row(place, b))
            if first >= 0:
                if second == -1:
                    speed[first, 0] = -speed[first, 0]
                elif second == -2:
                    speed[first, 1] = -speed[first, 1]
                else:  # equal balls exchange their velocities along the line between them
                    line = (row(place, second) - row(place, first)).normalized()
                    kick = (row(speed, second) - row(speed, first)).dot(line) * line
                    for k in qd.static(range(2)):
                        speed[first, k] += kick[k]
                        speed[second, k] -= kick[k]
        events[s] = count
        miss[s] = (row(place, RED) - qd.Vector(GOAL)).norm_sqr()


@qd.kernel
def add():
    for s in miss:
        loss[None] += miss[s] / SHOTS


rack.from_numpy(np.array([(0.4, 0.5)] + [(1.1 + 0.14 * line, 0.5 + 0.16 * (k - 0.5 * line))
                                         for line in range(3) for k in range(line + 1)]))

# %% [markdown]
# ## The gradient
#
# All shots are played at the same time. The gradient of their mean has two numbers for each.

# %%
def gradient(velocities):
    """The mean of the squared misses, and its derivatives by the velocities of all shots."""
    shots.from_numpy(velocities)
    with qd.ad.Tape(loss):
        play()
        add()
    return loss[None], shots.grad.to_numpy()


random = np.random.default_rng(6)
angle, strength = random.uniform(-0.25, 0.25, SHOTS), random.uniform(2, 4, SHOTS)
invented = strength[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
_, slopes = gradient(invented)
h = 1e-7
for s in np.argsort(np.abs(slopes[:, 1]))[SHOTS // 4 :: SHOTS // 4]:
    beside = []
    for sign in (1, -1):
        moved = invented.copy()
        moved[s, 1] += sign * h
        beside.append(gradient(moved)[0])
    difference = (beside[0] - beside[1]) / (2 * h)
    print(f"shot {s:3}, sideways: {slopes[s, 1]:.8f} by the gradient, {difference:.8f} by differences")
    assert abs(slopes[s, 1] - difference) < 1e-5 * max(1, abs(difference))

# %% [markdown]
# ## Descent
#
# Most shots end in some local minimum, or at a jump, where a ball is just missed. That is why there are many of them; the best
# one is then improved on.

# %%
def adam(p, rate, iterations):
    """Changes `p`; returns the misses of all shots on the way."""
    mean, square, misses = np.zeros_like(p), np.zeros_like(p), []
    for t in tqdm(range(1, iterations + 1)):
        _, slope = gradient(p)
        misses.append(miss.to_numpy())
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        p -= rate * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.99**t)) + 1e-12)
    return np.array(misses)


velocities = invented.copy()
first = adam(velocities, 0.01, ITERATIONS)
best = first[-1].argmin()
velocities[:] = velocities[best]  # all shots are this one now
second = adam(velocities, 1e-3, POLISH)
misses = np.sqrt(np.concatenate([first, second])[:, best])
print(f"the best of {SHOTS} shots: red stops {1000 * misses[0]:.0f} mm from the goal at first, "
      f"{1000 * misses[-1]:.4f} mm from it now")
assert misses[-1] < (0.5 if QUICK else 0.01) * misses[0]

# %% [markdown]
# ## The shot
#
# The cue ball never touches red. It meets the others, and one of them does.

# %%
def draw(axis, shot, title):
    gradient(np.tile(shot, (SHOTS, 1)))
    ways = path.to_numpy()[0, : events[0] + 1]
    axis.set_facecolor("#2f6b4f")
    axis.add_patch(plt.Circle(GOAL, 0.06, fill=False, color="white", linewidth=2))
    for b in range(BALLS):
        colour = "#ffffff" if b == 0 else "#d1495b" if b == RED else "#e8b54d"
        axis.plot(*ways[:, b].T, color=colour, linewidth=1.5)
        axis.add_patch(plt.Circle(ways[0, b], RADIUS, fill=False, color=colour))
        axis.add_patch(plt.Circle(ways[-1, b], RADIUS, color=colour))
    axis.set(xlim=(0, LENGTH), ylim=(0, WIDTH), aspect="equal", xticks=[], yticks=[], title=title)


figure, axes = plt.subplot_mosaic([["before", "after"], ["loss", "loss"]], figsize=(12, 6), height_ratios=[1.4, 1],
                                  layout="constrained")
draw(axes["before"], invented[best], "the shot as invented")
draw(axes["after"], velocities[best], "as found: red stops in the ring")
axes["loss"].semilogy(1000 * misses, color="#b2182b")
axes["loss"].axvline(ITERATIONS, color="#888888", linestyle=":")
axes["loss"].set(xlabel="iteration: with all shots, then with the best one alone", title="how far red stops from the goal, mm")
axes["loss"].grid(alpha=0.3)
figure.savefig("billiards.png", dpi=90)
