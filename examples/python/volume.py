"""What is inside? A cloud is found from pictures of a few of its sides.

A ray takes as many steps as it needs: it ends where it leaves the cloud, or where hardly any light
from behind would come through.

    python volume.py [--picture volume.png] [--iterations 120]
"""

import argparse
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

SIDES, CELLS, PIXELS = 9, 28, 36
OPAQUE = 1e-3  # less light than this ends a ray

Volume = qd.types.ndarray(dtype=qd.f64, ndim=3)
Images = qd.types.ndarray(dtype=qd.f64, ndim=3)


@qd.func
def density_at(density, point):
    """The density at a point of the unit cube, between the cells."""
    n = density.shape[0]
    cell = point * (n - 1)
    low = qd.math.clamp(qd.cast(cell, qd.i32), 0, n - 2)
    part = cell - qd.math.floor(cell)
    total = 0.0
    for i, j, k in qd.static(qd.ndrange(2, 2, 2)):
        weight = ((part[0] if i else 1 - part[0]) * (part[1] if j else 1 - part[1])
                  * (part[2] if k else 1 - part[2]))
        total += weight * density[low[0] + i, low[1] + j, low[2] + k]
    return total


@qd.kernel
def densify(parameters: Volume, density: Volume):
    """Densities are positive, whatever the parameters are."""
    for i, j, k in density:
        density[i, j, k] = qd.log(1 + qd.exp(parameters[i, j, k]))


@qd.kernel
def render(density: Volume, images: Images):
    """Parallel rays through the cloud from sides all around."""
    for side, row, column in images:
        angle = side * (2 * math.pi / SIDES)
        up = qd.Vector([0.0, 0.0, 1.0])
        ahead = qd.Vector([qd.cos(angle), qd.sin(angle), 0.0])
        y, x = (row + 0.5) / PIXELS - 0.5, (column + 0.5) / PIXELS - 0.5
        start = 0.5 - 0.8 * ahead - 1.2 * y * up + 1.2 * x * ahead.cross(up)
        h = 0.7 / density.shape[0]
        way, light, clear = 0.0, 0.0, 1.0
        while way < 1.6 and clear > OPAQUE:
            point = start + way * ahead
            if all(point > 0) and all(point < 1):
                passes = qd.exp(-h * density_at(density, point))
                light += clear * (1 - passes) * (1.0 - 0.9 * way / 1.6)  # far is dark
                clear *= passes
            way += h
        images[side, row, column] = light


@qd.kernel
def compare(images: Images, given: Images, loss: qd.types.ndarray(dtype=qd.f64, ndim=0)):
    """The last side is not compared."""
    for side, row, column in qd.ndrange(SIDES - 1, PIXELS, PIXELS):
        miss = images[side, row, column] - given[side, row, column]
        loss[None] += miss**2 / ((SIDES - 1) * PIXELS**2)


def ball_in_ring(n):
    """Dense where the distance to a ball, or to a tilted ring, is negative."""
    x, y, z = np.meshgrid(*[np.linspace(-0.5, 0.5, n)] * 3, indexing="ij")
    height, across = 0.8 * z - 0.6 * x, 0.6 * z + 0.8 * x
    ball = np.sqrt(x**2 + y**2 + z**2) - 0.13
    ring = np.hypot(np.hypot(across, y) - 0.36, height) - 0.07
    return 60 * np.clip(0.5 - np.minimum(ball, ring) * n, 0, 1)


class Scan:
    """From the parameters of the densities to how much the pictures miss."""

    def __init__(self):
        volume, images = (CELLS,) * 3, (SIDES, PIXELS, PIXELS)
        self.parameters = qd.ndarray(qd.f64, shape=volume, needs_grad=True)
        self.density = qd.ndarray(qd.f64, shape=volume, needs_grad=True)
        self.images = qd.ndarray(qd.f64, shape=images, needs_grad=True)
        self.given = qd.ndarray(qd.f64, shape=images)
        self.loss = qd.ndarray(qd.f64, shape=(), needs_grad=True)
        self.density.from_numpy(ball_in_ring(CELLS))
        render(self.density, self.images)
        self.given.copy_from(self.images)

    def run(self):
        densify(self.parameters, self.density)
        render(self.density, self.images)
        compare(self.images, self.given, self.loss)

    def value(self, parameters):
        self.parameters.from_numpy(parameters)
        self.loss.fill(0)
        self.run()
        return self.loss[None]

    def gradient(self, parameters):
        """The loss, and its derivatives by the parameters."""
        self.parameters.from_numpy(parameters)
        self.loss.fill(0)
        self.parameters.grad.fill(0)
        with qd.ad.Tape(self.loss):
            self.run()
        return self.loss[None], self.parameters.grad.to_numpy()


def check(scan, parameters):
    """Prints some derivatives beside central differences."""
    _, slope = scan.gradient(parameters)
    print("d loss / d parameter     reverse mode   central differences")
    for at in ((14, 14, 14), (10, 14, 17), (20, 9, 12)):
        step = np.zeros_like(parameters)
        step[at] = 1e-4
        difference = (scan.value(parameters + step) - scan.value(parameters - step)) / 2e-4
        print(f"{str(at):>20}   {slope[at]:14.6e}   {difference:14.6e}")
        assert abs(slope[at] - difference) < 1e-5 * abs(slope).max()


def descend(scan, parameters, iterations, rate=0.3):
    """Adam (Kingma and Ba, 2015); the losses on the way."""
    mean, square, losses = np.zeros_like(parameters), np.zeros_like(parameters), []
    progress = tqdm(range(1, iterations + 1), unit="iteration")
    for t in progress:
        loss, slope = scan.gradient(parameters)
        losses.append(loss)
        progress.set_postfix(loss=f"{loss:.3e}")
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        parameters -= rate * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.99**t)) + 1e-12)
    return [*losses, scan.value(parameters)]


def draw(rows, file):
    """One row of pictures for each name; the last side was not given."""
    sides = range(0, SIDES, 2)
    figure, axes = plt.subplots(len(rows), len(sides), figsize=(11, 7), layout="constrained")
    for line, (name, images) in zip(axes, rows.items()):
        line[0].set_ylabel(name, fontsize=14)
        for axis, side in zip(line, sides):
            axis.imshow(images[side], cmap="inferno", vmin=0, vmax=0.75)
            axis.set(xticks=[], yticks=[])
    for axis, side in zip(axes[0], sides):
        axis.set_title("not given" if side == SIDES - 1 else f"side {side + 1}")
    figure.savefig(file, dpi=110)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", default="volume.png")
    parser.add_argument("--iterations", type=int, default=120)
    parser.add_argument("--arch", default="cpu", help="cpu, gpu, ...")
    options = parser.parse_args(arguments)
    qd.init(arch=getattr(qd, options.arch), default_fp=qd.f64)
    scan = Scan()
    parameters = np.full((CELLS,) * 3, 0.5)  # a thin fog
    check(scan, parameters)
    scan.value(parameters)
    fog = scan.images.to_numpy()
    losses = descend(scan, parameters, options.iterations)
    print(f"from {losses[0]:.3e} to {losses[-1]:.3e}: {losses[0] / losses[-1]:.0f} times less")
    draw({"given": scan.given.to_numpy(), "at first": fog, "learnt": scan.images.to_numpy()},
         options.picture)
    return losses


if __name__ == "__main__":
    main()
