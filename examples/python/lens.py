# %% [markdown]
# # Lens: which shape makes a sharp picture?
#
# Light comes from far away at several angles, goes through a stop and two curved surfaces of glass, and falls on a sensor. One
# point of the scene should become one point of the picture, but with spheres it becomes a spot. What is sought is the shape of both
# surfaces, curvature, conic constant and higher terms, and where sensor and stop stand: ten numbers, by rays alone.
#
# ![Rays through the lens of spheres and through the one that is found, the spots on the sensor, and the loss](lens.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
RINGS, ITERATIONS = (4, 60) if QUICK else (8, 1000)
ANGLES = np.radians([0.0, 5.0, 10.0])
GLASS, THICK, APERTURE = 1.5168, 6.0, 9.0  # refractive index (BK7, green), mm, radius in mm

# %% [markdown]
# ## A ray
#
# The height of a surface over its plane is a function of the squared distance from the axis: a conic with two more terms. Where a ray meets it is found by Newton's
# method, in a `while` that takes as many iterations as that ray needs; then the ray is refracted by Snell's law. One work item
# is one ray. The derivative goes through all of that, iterations included.

# %%
vec3 = qd.types.vector(3, qd.f64)
shape = qd.field(qd.f64, shape=10, needs_grad=True)  # of each surface: curvature, conic, two terms; sensor, stop
RAYS = 3 * RINGS * (RINGS + 1) + 1
pupil = qd.Vector.field(2, qd.f64, shape=RAYS)
slant = qd.field(qd.f64, shape=len(ANGLES))
spots = qd.Vector.field(2, qd.f64, shape=(len(ANGLES), RAYS), needs_grad=True)
centre = qd.Vector.field(2, qd.f64, shape=len(ANGLES), needs_grad=True)
places = qd.Vector.field(3, qd.f64, shape=(len(ANGLES), RAYS, 4))  # for the picture
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.func
def sag(s, square):
    """The height of a surface at a squared distance from the axis, and its derivative by that."""
    c, k = shape[4 * s] / 100, shape[4 * s + 1]
    a, b = shape[4 * s + 2] * 1e-5, shape[4 * s + 3] * 1e-7
    root = qd.sqrt(qd.max(1 - (1 + k) * c * c * square, 0.05))
    return (c * square / (1 + root) + a * square**2 + b * square**3,
            c / (2 * root) + 2 * a * square + 3 * b * square**2)


@qd.func
def meet(s, plane, place, way):
    """Where a ray meets the surface that stands at `plane`, and the normal there."""
    along = (plane - place[2]) / way[2]
    count, off = 0, 1.0
    slope = 0.0
    while qd.abs(off) > 1e-13 and count < 20:
        point = place + along * way
        height, slope = sag(s, point[0] ** 2 + point[1] ** 2)
        off = point[2] - plane - height
        along -= off / (way[2] - 2 * slope * (point[0] * way[0] + point[1] * way[1]))
        count += 1
    point = place + along * way
    height, slope = sag(s, point[0] ** 2 + point[1] ** 2)
    return point, qd.Vector([2 * slope * point[0], 2 * slope * point[1], -1.0]).normalized()


@qd.func
def refract(way, normal, ratio):
    """Snell's law; the normal points against the ray."""
    c = -normal.dot(way)
    return ratio * way + (ratio * c - qd.sqrt(1 - ratio**2 * (1 - c * c))) * normal


@qd.kernel
def trace():
    for a, r in spots:
        way = qd.Vector([0.0, qd.sin(slant[a]), qd.cos(slant[a])])
        start = qd.Vector([pupil[r][0], pupil[r][1], -3 * shape[9]])
        front, normal = meet(0, 0.0, start, way)
        inside = refract(way, normal, 1 / GLASS)
        back, normal = meet(1, THICK, front, inside)
        out = refract(inside, normal, GLASS)
        end = back + (shape[8] - back[2]) / out[2] * out
        spots[a, r] = qd.Vector([end[0], end[1]])
        centre[a] += spots[a, r] / RAYS
        places[a, r, 0], places[a, r, 1], places[a, r, 2], places[a, r, 3] = start, front, back, end


@qd.kernel
def measure():
    for a, r in spots:
        loss[None] += (spots[a, r] - centre[a]).norm_sqr() / (RAYS * len(ANGLES)) * 1e6  # µm²
    for a in centre:  # the picture has its size: a focal length of 100 mm
        loss[None] += (centre[a][1] - 100 * qd.tan(slant[a])) ** 2 * 1e3


# %% [markdown]
# ## The gradient
#
# The stop lets through the same bundle of rays at each angle: rings of points.

# %%
radii = [(0.0, 0.0)] + [(APERTURE * ring / RINGS, 2 * np.pi * k / (6 * ring))
                        for ring in range(1, RINGS + 1) for k in range(6 * ring)]
pupil.from_numpy(np.array([(r * np.cos(phi), r * np.sin(phi)) for r, phi in radii]))
slant.from_numpy(ANGLES)


def gradient(values):
    """The loss, and its derivatives by the ten numbers of the lens."""
    shape.from_numpy(values)
    centre.fill(0)
    with qd.ad.Tape(loss):
        trace()
        measure()
    return loss[None], shape.grad.to_numpy()


spheres = np.array([0.98, 0, 0, 0, -0.98, 0, 0, 0, 98.0, 4.0])  # the same on both sides, as in a magnifying glass
value, slope = gradient(spheres)
print("d loss / d shape     by the gradient     by differences")
for k in range(10):
    step = 1e-6 * np.eye(10)[k]
    difference = (gradient(spheres + step)[0] - gradient(spheres - step)[0]) / 2e-6
    print(f"{k:16}  {slope[k]:18.6f} {difference:18.6f}")
    assert abs(slope[k] - difference) < 1e-5 * max(1.0, abs(difference))

# %% [markdown]
# ## Descent, by Adam
#
# First the curvatures and the sensor alone: the best lens with spheres. Then all ten numbers. They are scaled in the kernels so that
# all of them are around 1, and steps become shorter in time.

# %%
def adam(p, learnt, rate, iterations):
    """Changes the numbers of `p` that are learnt; returns the losses on the way."""
    mean, square, losses = np.zeros_like(p), np.zeros_like(p), []
    for t in tqdm(range(1, iterations + 1)):
        value, slope = gradient(p)
        losses.append(value)
        mean += 0.1 * (learnt * slope - mean)
        square += 0.01 * ((learnt * slope) ** 2 - square)
        now = rate * 0.5 * (1 + np.cos(np.pi * t / iterations))
        p -= now * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.99**t)) + 1e-12)
    return losses


def result(values):
    """Spots around their middles, places of rays, and how large spots are, in µm."""
    gradient(values)
    away = spots.to_numpy() - centre.to_numpy()[:, None]
    return away, places.to_numpy(), 1000 * np.sqrt((away**2).sum(axis=-1).mean(axis=1))


losses = adam(spheres, np.array([1, 0, 0, 0, 1, 0, 0, 0, 1, 0]), 0.02, ITERATIONS)
values = spheres.copy()
losses += adam(values, np.ones(10), 0.02, 2 * ITERATIONS)
before, after = result(spheres), result(values)
print("size of the spots, µm: with spheres", before[2].round(1), " as found", after[2].round(1))
print("curvature (1/m) and conic constant:", (10 * values[[0, 4]]).round(2), values[[1, 5]].round(3))
assert losses[-1] < losses[0] / (1.2 if QUICK else 20)

# %% [markdown]
# ## What is found

# %%
def surface(s, height):
    c, k, a, b = values_shown[4 * s] / 100, values_shown[4 * s + 1], values_shown[4 * s + 2] * 1e-5, values_shown[4 * s + 3] * 1e-7
    square = height**2
    return c * square / (1 + np.sqrt(1 - (1 + k) * c * c * square)) + a * square**2 + b * square**3


figure, axes = plt.subplot_mosaic([["lens"] * 3 + ["spots"] * 3, ["found"] * 3 + ["sharp"] * 3, ["loss"] * 6], figsize=(13, 9),
                                  layout="constrained", height_ratios=[1, 1, 0.8])
colours = ("#30638e", "#2a9d5c", "#d1495b")
for panel, spot_panel, values_shown, (spot, place, size), title in (
        ("lens", "spots", spheres, before, "the best two spheres"), ("found", "sharp", values, after, "as found: two aspheres")):
    axis = axes[panel]
    height = np.linspace(-1, 1, 101) * (1 + np.abs(place[:, :, 1:3, 1]).max())
    axis.fill_betweenx(height, surface(0, height), THICK + surface(1, height), color="#9cc9e3")
    middle = np.nonzero(np.abs(pupil.to_numpy()[:, 0]) < 1e-9)[0]
    for a, colour in enumerate(colours):
        for r in middle[:: max(1, RINGS // 6)]:
            axis.plot(place[a, r, :, 2], place[a, r, :, 1], color=colour, linewidth=0.6)
    axis.axvline(values_shown[8], color="#222222", linewidth=2)
    for sign in (-1, 1):
        axis.plot([-3 * values_shown[9]] * 2, [sign * APERTURE, sign * (APERTURE + 5)], color="#222222", linewidth=3)
    axis.set(xlim=(-75, 110), ylim=(-24, 24))
    axis.set(title=f"{title}: rays from {', '.join(f'{np.degrees(a):.0f}' for a in ANGLES)} degrees", xlabel="mm", ylabel="mm")
    axis = axes[spot_panel]
    for a, colour in enumerate(colours):
        axis.plot(1000 * spot[a, :, 0] + 350 * (a - 1), 1000 * spot[a, :, 1], ".", color=colour, markersize=3)
        axis.text(350 * (a - 1), -190, f"{np.degrees(ANGLES[a]):.0f} degrees: {size[a]:.0f} µm", ha="center")
    axis.set(title=f"{title}: spots on the sensor, side by side", xlabel="µm", ylabel="µm", aspect="equal", xlim=(-560, 560),
             ylim=(-220, 320))
axes["loss"].semilogy(losses, color="#b2182b")
axes["loss"].axvline(ITERATIONS, color="#888888", linestyle=":")
axes["loss"].set(xlabel="iteration: spheres and the sensor, then all ten numbers", title="loss: mean squared size of the spots, µm², and of the error of the focal length")
axes["loss"].grid(alpha=0.3)
figure.savefig("lens.png", dpi=85)
