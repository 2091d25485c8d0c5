"""A soft pony learns to gallop: gradient descent through its simulation (MLS-MPM).

    python pony.py [--picture demo.png] [--iterations 22] [--steps 500]
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd

# The world: 1.5 m wide, 0.75 m high, somewhere with the gravity of Mars.
COLUMNS, ROWS, MARGIN = 96, 48, 3
SPACING, TIME_STEP = 1 / 64, 2e-3
GRAVITY, FRICTION = 3.7, 0.8
# The flesh: soft rubber, as dense as water.
MU, LAMBDA, VISCOSITY = 1e4 / 2.6, 1e4 / 2.6 * 0.6 / 0.4, 15.0
SIZE = SPACING / 3.6  # of the square that a particle stands for
VOLUME, MASS = SIZE**2, 1000 * SIZE**2
# The stress of a muscle is a sum of a few waves in time, squashed to a limit.
STRENGTH, WAVES, SLOWEST = 3e3, 4, 4.0
TARGET = (0.85, 0.18)


def make_pony():
    """Position, muscle and fibre of each particle: legs of two muscles, a back, a head, a tail."""
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
    return np.array(position), np.array(muscle), np.array(fibre, float)


@qd.data_oriented
class Simulation:
    """From the weights of the muscles to the distance that is left at the end."""

    def __init__(self, steps):
        position, muscle, fibre = make_pony()
        self.steps, self.count, self.muscles = steps, len(position), muscle.max() + 1
        frames = (steps + 1, self.count)
        self.weights = qd.field(qd.f64, shape=(self.muscles, 2 * WAVES), needs_grad=True)
        self.activation = qd.field(qd.f64, shape=(steps, self.muscles), needs_grad=True)
        self.x = qd.Vector.field(2, qd.f64, shape=frames, needs_grad=True)
        self.v = qd.Vector.field(2, qd.f64, shape=frames, needs_grad=True)
        self.C = qd.Matrix.field(2, 2, qd.f64, shape=frames, needs_grad=True)
        self.F = qd.Matrix.field(2, 2, qd.f64, shape=frames, needs_grad=True)
        nodes = (steps, COLUMNS, ROWS)
        self.mass = qd.field(qd.f64, shape=nodes, needs_grad=True)
        self.momentum = qd.Vector.field(2, qd.f64, shape=nodes, needs_grad=True)
        self.velocity = qd.Vector.field(2, qd.f64, shape=nodes, needs_grad=True)
        self.centre = qd.Vector.field(2, qd.f64, shape=(), needs_grad=True)
        self.loss = qd.field(qd.f64, shape=(), needs_grad=True)
        self.muscle = qd.field(qd.i32, shape=self.count)
        self.fibre = qd.Vector.field(2, qd.f64, shape=self.count)
        self.muscle.from_numpy(muscle.astype(np.int32))
        self.fibre.from_numpy(fibre)
        frame = np.zeros((*frames, 2))
        frame[0] = position
        self.x.from_numpy(frame)
        shape = np.zeros((*frames, 2, 2))
        shape[0] = np.eye(2)
        self.F.from_numpy(shape)

    @qd.kernel
    def activate(self):
        for t, m in self.activation:
            total = 0.0
            for k in range(WAVES):
                angle = (k + 1) * SLOWEST * TIME_STEP * t
                total += self.weights[m, 2 * k] * qd.sin(angle)
                total += self.weights[m, 2 * k + 1] * qd.cos(angle)
            self.activation[t, m] = qd.tanh(total)

    @qd.func
    def nodes(self, point):
        """The node at the lower left of a point, the way from it, and the weights of 3 x 3 nodes."""
        at = point / SPACING
        base = qd.math.clamp(qd.cast(at - 0.5, qd.i32), 0, qd.Vector([COLUMNS - 3, ROWS - 3]))
        offset = at - base
        return base, offset, [0.5 * (1.5 - offset) ** 2, 0.75 - (offset - 1) ** 2,
                              0.5 * (offset - 0.5) ** 2]

    @qd.kernel
    def scatter(self, t: qd.i32):
        for p in range(self.count):
            flow = self.C[t, p]
            eye = qd.Matrix.identity(qd.f64, 2)
            F = (eye + TIME_STEP * flow) @ self.F[t, p]
            self.F[t + 1, p] = F
            # Neo-Hookean rubber, viscosity, and a muscle that pulls along its fibre.
            pull = F @ self.fibre[p]
            stress = (MU * (F @ F.transpose()) + (LAMBDA * qd.log(F.determinant()) - MU) * eye
                      + VISCOSITY * (flow + flow.transpose())
                      + STRENGTH * self.activation[t, self.muscle[p]] * pull.outer_product(pull))
            impulse = -TIME_STEP * VOLUME * 4 / SPACING**2 * stress + MASS * flow
            base, offset, weights = self.nodes(self.x[t, p])
            for i, j in qd.static(qd.ndrange(3, 3)):
                arm = SPACING * (qd.Vector([i, j]) - offset)
                weight = weights[i][0] * weights[j][1]
                self.mass[t, base[0] + i, base[1] + j] += weight * MASS
                self.momentum[t, base[0] + i, base[1] + j] += weight * (
                    MASS * self.v[t, p] + impulse @ arm)

    @qd.kernel
    def collide(self, t: qd.i32):
        for i, j in qd.ndrange(COLUMNS, ROWS):
            v = qd.Vector([0.0, 0.0])
            if self.mass[t, i, j] > 0:
                v = self.momentum[t, i, j] / self.mass[t, i, j]
                v[1] -= GRAVITY * TIME_STEP
                if (i < MARGIN and v[0] < 0) or (i >= COLUMNS - MARGIN and v[0] > 0):
                    v[0] = 0.0
                if j >= ROWS - MARGIN and v[1] > 0:
                    v[1] = 0.0
                if j < MARGIN and v[1] < 0:  # the floor stops y, and brakes x
                    v[0] -= qd.math.clamp(v[0], FRICTION * v[1], -FRICTION * v[1])
                    v[1] = 0.0
            self.velocity[t, i, j] = v

    @qd.kernel
    def gather(self, t: qd.i32):
        for p in range(self.count):
            base, offset, weights = self.nodes(self.x[t, p])
            mean = qd.Vector([0.0, 0.0])
            moment = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
            for i, j in qd.static(qd.ndrange(3, 3)):
                share = weights[i][0] * weights[j][1] * self.velocity[t, base[0] + i, base[1] + j]
                mean += share
                moment += share.outer_product(SPACING * (qd.Vector([i, j]) - offset))
            self.v[t + 1, p] = mean
            self.C[t + 1, p] = 4 / SPACING**2 * moment
            self.x[t + 1, p] = self.x[t, p] + TIME_STEP * mean

    @qd.kernel
    def average(self):
        for p in range(self.count):
            self.centre[None] += self.x[self.steps, p] / self.count

    @qd.kernel
    def measure(self):
        self.loss[None] = (self.centre[None] - qd.Vector(TARGET)).norm_sqr()

    def run(self):
        self.activate()
        for t in range(self.steps):
            self.scatter(t)
            self.collide(t)
            self.gather(t)
        self.average()
        self.measure()

    def reset(self, weights):
        self.weights.from_numpy(weights)
        for field in (self.mass, self.momentum, self.centre):
            field.fill(0)

    def value(self, weights):
        self.reset(weights)
        self.run()
        return self.loss[None]

    def gradient(self, weights):
        """The loss, and its derivatives by the weights."""
        self.reset(weights)
        with qd.ad.Tape(self.loss):
            self.run()
        return self.loss[None], self.weights.grad.to_numpy()


def check(simulation):
    """Prints some derivatives beside central differences."""
    weights = 0.3 * np.sin(12.9 * np.arange(simulation.muscles * 2 * WAVES)).reshape(-1, 2 * WAVES)
    _, slope = simulation.gradient(weights)
    print("d loss / d weight     reverse mode   central differences")
    for k in range(2, weights.size, weights.size // 4):
        step = np.zeros_like(weights)
        step.flat[k] = 1e-5
        difference = (simulation.value(weights + step) - simulation.value(weights - step)) / 2e-5
        print(f"           {k:4}   {slope.flat[k]:16.12f}   {difference:16.12f}")
        assert abs(slope.flat[k] - difference) < 1e-6


def learn(simulation, iterations):
    """Descent with momentum along the direction of the gradient; the losses on the way."""
    weights = np.zeros((simulation.muscles, 2 * WAVES))
    momentum, losses = np.zeros_like(weights), []
    progress = tqdm(range(iterations), unit="iteration")
    for _ in progress:
        loss, slope = simulation.gradient(weights)
        losses.append(loss)
        progress.set_postfix(loss=f"{loss:.6f}")
        momentum = 0.6 * momentum + 0.4 * slope / np.linalg.norm(slope)
        weights -= min(1.0, 10 * np.sqrt(loss)) * momentum
    return [*losses, simulation.value(weights)]


def draw(simulation, losses, file):
    x, activation = simulation.x.to_numpy(), simulation.activation.to_numpy()
    muscle = simulation.muscle.to_numpy()
    figure, axes = plt.subplot_mosaic([["stage"] * 2, ["losses", "muscles"]], figsize=(13, 9),
                                      height_ratios=[1.3, 1], layout="constrained")
    stage = axes["stage"]
    stage.axhspan(0, MARGIN * SPACING, color="#d8d0bd")
    stage.scatter(*x[0].T, s=5, color="#c9c4b8")
    stage.scatter(*x[-1].T, s=5, c=activation[-1][muscle], cmap="RdBu_r", vmin=-1, vmax=1)
    stage.plot(*x.mean(axis=1).T, color="#222222", linewidth=2)
    stage.plot(*TARGET, "o", color="#1a7a3c", markersize=13, fillstyle="none", markeredgewidth=2)
    stage.set(aspect="equal", xlim=(0.03, 1.28), ylim=(0, 0.42), xticks=[], yticks=[],
              title="A soft pony learns to gallop, by gradient descent through its simulation")
    axes["losses"].semilogy(losses, "o-", color="#b2182b")
    axes["losses"].set(xlabel="iteration", title="loss: squared distance to the target, m²")
    image = axes["muscles"].imshow(activation.T, aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1,
                                   origin="lower", extent=(0, simulation.steps * TIME_STEP, 0,
                                                           simulation.muscles))
    axes["muscles"].set(xlabel="time, s", ylabel="muscle",
                        title="what the muscles learnt: red pulls, blue pushes")
    figure.colorbar(image, ax=axes["muscles"])
    figure.savefig(file, dpi=110)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", default="pony.png")
    parser.add_argument("--iterations", type=int, default=22)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--arch", default="cpu", help="cpu, gpu, ...")
    options = parser.parse_args(arguments)
    qd.init(arch=getattr(qd, options.arch), default_fp=qd.f64)
    simulation = Simulation(options.steps)
    print(f"{simulation.count} particles, {simulation.muscles} muscles, "
          f"{simulation.muscles * 2 * WAVES} weights to learn")
    check(simulation)
    losses = learn(simulation, options.iterations)
    print(f"from {losses[0]:.6f} to {losses[-1]:.6f}: {losses[0] / losses[-1]:.0f} times less")
    draw(simulation, losses, options.picture)
    return losses


if __name__ == "__main__":
    main()
