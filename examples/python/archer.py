# %% [markdown]
# # Archer: a network of PyTorch that learns through a simulation
#
# From the distance of a target and the wind, a network chooses the velocity of an arrow. The arrow flies through air that
# brakes it and blows it away, until it comes down; each flight takes as many steps as it needs. PyTorch trains the
# network, and the derivative of *where the arrow lands* by *how it was shot* comes from the simulation.
#
# ![Four flights that hit, and how far arrows miss while the network learns](archer.png)

# %%
import os

import matplotlib.pyplot as plt
import torch
from tqdm import tqdm

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)  # a network of this size gains nothing from more

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
ITERATIONS = 20 if QUICK else 1000
GRAVITY, DRAG, H = 9.81, 0.02, 0.01
NEAR, FAR, WIND = 10.0, 40.0, 8.0

# %% [markdown]
# ## The flight
#
# One work item is one arrow. Its last step crosses the ground; where exactly is found between the last two places, so that it
# depends smoothly on the shot.

# %%
@qd.func
def step(place, velocity, wind):
    """Place and velocity after a step, of drag that grows with the square of the air's speed."""
    air = velocity - qd.Vector([wind, 0.0])
    faster = velocity + H * (-DRAG * air.norm() * air - qd.Vector([0.0, GRAVITY]))
    return place + H * faster, faster


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


# %% [markdown]
# ## A kernel as a function of PyTorch
#
# `torch_function` says which argument is the result, and what its shape is. PyTorch's own check agrees with its gradient.

# %%
flight = qd.torch_function(fly, outputs={2: lambda shots, winds: (len(shots),)})
some = (15 + torch.rand(5, 2)).requires_grad_()
right = torch.autograd.gradcheck(lambda shots: flight(shots, torch.zeros(5)), (some,))
print(f"torch.autograd.gradcheck: {right}")
assert right

# %% [markdown]
# ## The network

# %%
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


archer = Archer()
optimizer = torch.optim.Adam(archer.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, ITERATIONS)
misses, progress = [], tqdm(range(ITERATIONS))
for _ in progress:
    target, wind = torch.rand(2, 256)
    target, wind = NEAR + (FAR - NEAR) * target, WIND * (2 * wind - 1)
    shots = archer(target, wind)
    miss = flight(shots, wind) - target
    loss = (miss**2).mean() + 1e-4 * (shots**2).mean()  # gently
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    misses.append((miss**2).mean().sqrt().item())
    progress.set_postfix(miss=f"{misses[-1]:.2f} m")
print(f"arrows miss by {misses[0]:.2f} m at first, and by {misses[-1]:.2f} m now")
assert misses[-1] < misses[0] / (1.5 if QUICK else 10)

# %% [markdown]
# ## What it has learnt
#
# It shoots higher against the wind, and lower with it. Every target is another one than those of its training.

# %%
figure, axes = plt.subplots(2, 1, figsize=(11, 8), height_ratios=[1.4, 1], layout="constrained")
path = torch.zeros(2000, 2)
for target, wind, colour in ((15.0, 0.0, "#d1495b"), (25.0, 6.0, "#edae49"), (25.0, -6.0, "#00798c"), (38.0, -3.0, "#30638e")):
    with torch.no_grad():
        shot = archer(torch.tensor([target]), torch.tensor([wind]))[0].contiguous()
    count = trace(shot, wind, path)
    axes[0].plot(*path[:count].T, color=colour, label=f"target at {target:.0f} m, wind {wind:+.0f} m/s")
    axes[0].plot(target, 0, "o", color=colour, markersize=12, fillstyle="none", markeredgewidth=2)
axes[0].axhline(0, color="#8a7f66")
axes[0].set(title="four shots at targets, through air that moves", xlabel="distance, m", ylabel="height, m")
axes[0].legend()
axes[1].semilogy(misses, color="#b2182b")
axes[1].set(xlabel="iteration", title="how far arrows miss, m (root mean square of 256)")
axes[1].grid(alpha=0.3)
figure.savefig("archer.png", dpi=80)
