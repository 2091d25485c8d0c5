# %% [markdown]
# # Fit: how heavy is the particle, and how sure is that?
#
# A detector has measured the mass of 200,000 pairs of particles. Most are background, which falls off; some are a particle that
# decays, a peak. The most likely values of five parameters are sought (how much of it is peak, where the peak is, how wide, how
# long its tail, how steep the background), and the error of each. Events are not filled into bins: the likelihood is a product
# over all of them.
#
# ![The measured masses with what is fitted, the loss, and the errors of two parameters](fit.png)

# %%
import os

import matplotlib.pyplot as plt
import numpy as np

import costate as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)  # or qd.gpu

QUICK = "COSTATE_QUICK" in os.environ  # the smallest sizes, for tests
EVENTS = 5_000 if QUICK else 200_000
LOW, HIGH = 100.0, 160.0  # GeV
NAMES = ("part of the peak", "mass, GeV", "width, GeV", "tail, widths", "slope, 1/GeV")

# %% [markdown]
# ## The likelihood
#
# The peak has a tail to low masses, because some energy is lost: it is Gaussian above, and an exponential from `tail` widths below
# the mass on. Densities must have an integral of 1 whatever the parameters are. That of the background has a formula; that of the
# peak is a sum over 400 points, computed in the same kernel by a serial loop, in front of the parallel one over events. Its
# derivative is part of the gradient: a density that forgets it gives a wrong mass.

# %%
Numbers = qd.types.ndarray(dtype=qd.f64, ndim=1)
Loss = qd.types.ndarray(dtype=qd.f64, ndim=0)


@qd.func
def peak(x, mass, width, tail):
    """Gaussian above, exponential below; the two meet without a kink."""
    away = (x - mass) / width
    log = -0.5 * away * away
    if away < -tail:
        log = tail * (away + 0.5 * tail)
    return qd.exp(log)


@qd.kernel
def likelihood(p: Numbers, events: Numbers, loss: Loss):
    part, mass, width, tail, slope = p[0], p[1], p[2], p[3], p[4]
    integral = 0.0
    qd.loop_config(serialize=True)
    for k in range(400):
        integral += (HIGH - LOW) / 400 * peak(LOW + (k + 0.5) * (HIGH - LOW) / 400, mass, width, tail)
    for k in events:
        x = events[k]
        background = slope * qd.exp(-slope * (x - LOW)) / (1 - qd.exp(-slope * (HIGH - LOW)))
        loss[None] -= qd.log(part * peak(x, mass, width, tail) / integral + (1 - part) * background)


# %% [markdown]
# ## The events
#
# They are drawn from known parameters, so one can see whether the fit finds them.

# %%
def density(x, p, of=("peak", "background")):
    part, mass, width, tail, slope = p
    shape = lambda x: np.exp(np.where((x - mass) / width < -tail, tail * ((x - mass) / width + 0.5 * tail),
                                      -0.5 * ((x - mass) / width) ** 2))
    grid = np.linspace(LOW, HIGH, 20001)
    area = shape(grid).mean() * (HIGH - LOW)
    background = slope * np.exp(-slope * (x - LOW)) / (1 - np.exp(-slope * (HIGH - LOW)))
    return ("peak" in of) * part * shape(x) / area + ("background" in of) * (1 - part) * background


truth = np.array([0.08, 125.1, 1.7, 1.2, 0.03])
grid = np.linspace(LOW, HIGH, 20001)
mass_below = np.cumsum(density(grid, truth))
drawn = np.interp(np.random.default_rng(4).uniform(0, 1, EVENTS), mass_below / mass_below[-1], grid)

p = qd.ndarray(qd.f64, shape=5, needs_grad=True, needs_dual=True)
events = qd.ndarray(qd.f64, shape=EVENTS, needs_grad=True, needs_dual=True)
loss = qd.ndarray(qd.f64, shape=(), needs_grad=True, needs_dual=True)
events.from_numpy(drawn)

# %% [markdown]
# ## Gradient and Hessian
#
# A direction stands in `p.dual`; `hessian_vector_product` adds the gradient to `p.grad`, and the product to `p.grad.dual`. With five
# parameters the Hessian is five products with unit vectors. No step has to be chosen, as it would for differences.

# %%
def value(values):
    p.from_numpy(values)
    loss.fill(0)
    likelihood(p, events, loss)
    return loss[None]


def derivatives(values):
    """The gradient and the Hessian."""
    p.from_numpy(values)
    columns = []
    for k in range(5):
        p.dual.from_numpy(np.eye(5)[k])
        p.grad.fill(0)
        p.grad.dual.fill(0)
        loss.grad.fill(1)
        qd.ad.hessian_vector_product(likelihood, p, events, loss)
        columns.append(p.grad.dual.to_numpy())
    return p.grad.to_numpy(), np.array(columns)


guess = np.array([0.03, 122.0, 3.0, 2.0, 0.02])
slope, hessian = derivatives(guess)
for k, name in enumerate(NAMES):
    step = 1e-5 * np.eye(5)[k]
    difference = (value(guess + step) - value(guess - step)) / 2e-5
    print(f"d loss / d {name:18}: {slope[k]:14.4f} by the gradient, {difference:14.4f} by differences")
    assert abs(slope[k] - difference) < 1e-4 * abs(difference)
    column = (derivatives(guess + step)[0] - derivatives(guess - step)[0]) / 2e-5
    assert np.abs(hessian[k] - column).max() < 1e-4 * np.abs(column).max()

# %% [markdown]
# ## Newton's method
#
# Far from the minimum the Hessian may have negative eigenvalues: their sign is changed, so that each step goes down. A step that
# is too long, or would make a width negative, is halved. Close to the minimum, the number of right digits doubles with each step.

# %%
values, losses = guess.copy(), []
for _ in range(30):
    slope, hessian = derivatives(values)
    now = value(values)
    losses.append(now)
    scale = 1 / np.sqrt(np.abs(np.diag(hessian)))
    size, axes = np.linalg.eigh(hessian * scale[:, None] * scale)
    step = -scale * (axes @ (axes.T @ (scale * slope) / np.maximum(np.abs(size), 1e-3)))
    gain, length = -(slope * step).sum(), 1.0
    if gain < 1e-9:
        break
    while (values + length * step)[:4].min() <= 0 or value(values + length * step) > now - 1e-4 * length * gain:
        length *= 0.5
    values = values + length * step
assert gain < 1e-9

# %% [markdown]
# ## Values and errors
#
# The inverse of the Hessian at the minimum is the covariance of the parameters: how sure the fit is of each, and which depend on
# each other.

# %%
covariance = np.linalg.inv(derivatives(values)[1])
errors = np.sqrt(np.diag(covariance))
for k, name in enumerate(NAMES):
    print(f"{name:18}: {values[k]:9.4f} ± {errors[k]:.4f}    (true: {truth[k]})")
assert (np.abs(values - truth) < 4 * errors).all()

# %%
figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained", width_ratios=[1.5, 1, 1])
counts, edges = np.histogram(drawn, bins=120, range=(LOW, HIGH))
middle = 0.5 * (edges[1:] + edges[:-1])
axes[0].errorbar(middle, counts, np.sqrt(counts), fmt="o", markersize=2.5, color="#222222", linewidth=0.8, label="measured")
number = EVENTS * (edges[1] - edges[0])
for p_, colour, style, label in ((guess, "#888888", ":", "the guess"), (values, "#b2182b", "-", "fitted")):
    axes[0].plot(middle, number * density(middle, p_), style, color=colour, label=label)
axes[0].plot(middle, number * density(middle, values, of="background"), "--", color="#30638e", label="of that, background")
axes[0].set(xlabel="mass, GeV", title=f"{EVENTS:,} pairs, in bins for the eye only", xlim=(LOW, HIGH), ylim=(0, None))
axes[0].legend()
axes[1].semilogy(np.array(losses[:-1]) - losses[-1], "o-", color="#b2182b")
axes[1].set(xlabel="iteration of Newton's method", title="-log of the likelihood, over its minimum")
axes[1].grid(alpha=0.3)
circle = np.stack([np.cos(np.linspace(0, 2 * np.pi, 100)), np.sin(np.linspace(0, 2 * np.pi, 100))])
for sigma in (1, 2):  # of each parameter alone
    ellipse = values[1:3, None] + sigma * np.linalg.cholesky(covariance[1:3, 1:3]) @ circle
    axes[2].plot(*ellipse, color="#30638e", alpha=1 / sigma, label=f"{sigma} σ")
axes[2].plot(*values[1:3], "o", color="#b2182b", label="fitted")
axes[2].plot(*truth[1:3], "*", color="#222222", markersize=12, label="true")
axes[2].set(xlabel=NAMES[1], ylabel=NAMES[2], title="how sure that is")
axes[2].ticklabel_format(useOffset=False)
axes[2].locator_params(nbins=4)
axes[2].legend(loc="upper left")
figure.savefig("fit.png", dpi=90)
