"""A network learns to hit: PyTorch trains it through a simulation of flights with drag and wind.

Each arrow flies until it comes down, so each flight takes as many steps as it needs.

    python archer.py [--picture archer.png] [--iterations 300]
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from tqdm import tqdm

import costate as qd

GRAVITY, DRAG, TIME_STEP = 9.81, 0.02, 0.01
NEAR, FAR, WIND = 10.0, 40.0, 8.0


@qd.func
def step(place, velocity, wind):
    """Place and velocity after a step, of drag that grows with the square of the air's speed."""
    air = velocity - qd.Vector([wind, 0.0])
    force = -DRAG * air.norm() * air - qd.Vector([0.0, GRAVITY])
    faster = velocity + TIME_STEP * force
    return place + TIME_STEP * faster, faster


@qd.kernel
def fly(shots: qd.types.ndarray(dtype=qd.f64, ndim=2), winds: qd.types.ndarray(dtype=qd.f64, ndim=1),
        landed: qd.types.ndarray(dtype=qd.f64, ndim=1)):
    """Where arrows with the velocities `shots` come down."""
    for i in landed:
        place, velocity = qd.Vector([0.0, 1.5]), qd.Vector([shots[i, 0], shots[i, 1]])
        before = place
        while place[1] > 0:
            before = place
            place, velocity = step(place, velocity, winds[i])
        # Between the last two steps, where the height is 0.
        part = before[1] / (before[1] - place[1])
        landed[i] = before[0] + part * (place[0] - before[0])


@qd.kernel
def trace(shot: qd.types.ndarray(dtype=qd.f64, ndim=1), wind: qd.f64,
          path: qd.types.ndarray(dtype=qd.f64, ndim=2)) -> qd.i32:
    """The points of one flight; returns how many."""
    place, velocity = qd.Vector([0.0, 1.5]), qd.Vector([shot[0], shot[1]])
    count = 0
    while place[1] > 0 and count < path.shape[0]:
        path[count, 0], path[count, 1] = place[0], place[1]
        place, velocity = step(place, velocity, wind)
        count += 1
    return count


class Archer(torch.nn.Module):
    """From the distance of the target and the wind to the velocity of the arrow."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(),
                                          torch.nn.Linear(32, 32), torch.nn.Tanh(),
                                          torch.nn.Linear(32, 2))

    def forward(self, target, wind):
        seen = torch.stack([(target - 25) / 15, wind / WIND], dim=1)
        return torch.nn.functional.softplus(self.layers(seen) + 2) * 5


def tasks(count, generator):
    target, wind = torch.rand(2, count, generator=generator)
    return NEAR + (FAR - NEAR) * target, WIND * (2 * wind - 1)


def train(archer, flight, iterations):
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(archer.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations)
    losses, progress = [], tqdm(range(iterations), unit="iteration")
    for _ in progress:
        target, wind = tasks(256, generator)
        shots = archer(target, wind)
        miss = flight(shots, wind) - target
        loss = (miss**2).mean() + 0.001 * (shots**2).mean()  # gently
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append((miss**2).mean().sqrt().item())
        progress.set_postfix(miss=f"{losses[-1]:.2f} m")
    return losses


def draw(archer, losses, file):
    figure, axes = plt.subplots(2, 1, figsize=(11, 8), height_ratios=[1.4, 1], layout="constrained")
    path = torch.zeros(2000, 2)
    for target, wind, colour in ((15.0, 0.0, "#d1495b"), (25.0, 6.0, "#edae49"),
                                 (25.0, -6.0, "#00798c"), (38.0, -3.0, "#30638e")):
        with torch.no_grad():
            shot = archer(torch.tensor([target]), torch.tensor([wind]))[0].contiguous()
        count = trace(shot, wind, path)
        axes[0].plot(*path[:count].T, color=colour, label=f"wind {wind:+.0f} m/s")
        axes[0].plot(target, 0, "o", color=colour, markersize=12, fillstyle="none", markeredgewidth=2)
    axes[0].axhline(0, color="#8a7f66")
    axes[0].set(title="Four shots at targets, through air that moves", xlabel="m", ylabel="m")
    axes[0].legend()
    axes[1].semilogy(losses, color="#b2182b")
    axes[1].set(xlabel="iteration", title="how far arrows miss, m")
    figure.savefig(file, dpi=110)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", default="archer.png")
    parser.add_argument("--iterations", type=int, default=300)
    options = parser.parse_args(arguments)
    qd.init(arch=qd.cpu, default_fp=qd.f64)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # a network of this size gains nothing from more
    flight = qd.torch_function(fly, outputs={2: lambda shots, winds: (len(shots),)})
    some = (15 + torch.rand(5, 2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda shots: flight(shots, torch.zeros(5)),
                                    (some,))
    archer = Archer()
    losses = train(archer, flight, options.iterations)
    print(f"arrows miss by {losses[0]:.2f} m at first, and by {losses[-1]:.2f} m now")
    draw(archer, losses, options.picture)
    return losses


if __name__ == "__main__":
    main()
