"""One scene of Genesis in this process, on what `import quadrants` gives; its last line is `RESULT {json}`.

    python scenes.py SCENE [--device DEVICE] [--first] [--arrays FILE] [--moved FILE]

`--first` ends after the first step, and after its gradient where the scene has one. `--arrays` is where the final
positions, velocities and gradients are written, for comparisons; `--moved` where those of a start moved by 1e-14 are.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

BEGIN = float(os.environ.get("GENESIS_BEGIN", time.time()))  # when the process was started

import genesis as gs
import numpy as np
import quadrants
import torch

SECONDS = 2.0     # of repetitions
REPETITIONS = 4   # at least; the first one warms up
MOVE = [0.0]      # how far the start is moved: nothing, and 1e-14 for `--moved`


@dataclass
class Case:
    """A built scene, and for gradients: what they are taken by, and of what."""

    scene: Any
    steps: int
    start: Callable[[], dict] = dict  # sets what the state begins with; the inputs by name
    act: Callable[[int], dict] = lambda step: {}  # before each step; the inputs by name
    loss: Callable[[], Any] | None = None


def new_scene(dt=0.01, substeps=1, gradient=False, **options):
    return gs.Scene(sim_options=gs.options.SimOptions(dt=dt, substeps=substeps, requires_grad=gradient),
                    show_viewer=False, show_FPS=False, **options)


def at(x, y, z):
    return x + MOVE[0], y, z + MOVE[0]


def leaf(values):
    return torch.tensor(values, dtype=gs.tc_float, device=gs.device, requires_grad=True)


def box():
    scene = new_scene()
    scene.add_entity(gs.morphs.Plane())
    scene.add_entity(gs.morphs.Box(size=(0.3, 0.2, 0.1), pos=at(0.0, 0.0, 0.35), euler=(25.0, 10.0, 5.0)))
    scene.build()
    return Case(scene, steps=60)


def heap():
    """16 boxes in four layers, each rotated and moved a little."""
    scene = new_scene()
    scene.add_entity(gs.morphs.Plane())
    for i in range(16):
        layer, row, column = i // 4, i // 2 % 2, i % 2
        position = at(0.17 * column + 0.03 * layer, 0.17 * row - 0.02 * layer, 0.08 + 0.16 * layer)
        scene.add_entity(gs.morphs.Box(size=(0.15, 0.15, 0.15), pos=position, euler=(2.0 * row, 3.0 * column, 5.0 * layer)))
    scene.build()
    return Case(scene, steps=40)


CHAIN = """<mujoco><worldbody><body name="link0" pos="0 0 0"><freejoint/>{link}{body1}</body></worldbody></mujoco>"""
LINK = """<geom type="box" size="0.1 0.06 0.04" density="500"/>"""


def chain_file(folder, links=4):
    """Boxes one after the other, with a hinge between neighbours."""
    text = ""
    for i in reversed(range(1, links)):
        axis = "0 1 0" if i % 2 else "0 0 1"
        joint = f'<joint type="hinge" axis="{axis}" pos="-0.11 0 0" damping="0.05"/>'
        text = f'<body name="link{i}" pos="0.22 0 0">{joint}{LINK}{text}</body>'
    path = Path(folder) / "chain.xml"
    path.write_text(CHAIN.format(link=LINK, body1=text))
    return str(path)


def chain():
    """A chain falls onto the ground and a fixed box; gradients by its first velocity and the forces of all steps."""
    scene = new_scene(substeps=2, gradient=True)
    scene.add_entity(gs.morphs.Plane())
    scene.add_entity(gs.morphs.Box(size=(0.3, 0.4, 0.02), pos=(0.6, 0.0, 0.01), fixed=True))
    with tempfile.TemporaryDirectory() as folder:
        robot = scene.add_entity(gs.morphs.MJCF(file=chain_file(folder), pos=(0.0, 0.0, 0.07)))
        scene.build()
    count = robot.n_dofs

    def start():
        velocity = leaf([0.5 + MOVE[0], 0.0, -1.5] + [0.0] * (count - 3))
        robot.set_dofs_velocity(velocity)
        return {"first velocity": velocity}

    def act(step):
        force = leaf([0.1 * (i % 3) for i in range(count)])
        robot.control_dofs_force(force)
        return {f"force {step}": force}

    return Case(scene, 10, start, act, lambda: (scene.rigid_solver.get_state().qpos ** 2).sum())


def push():
    """A tool pushes an elastic box; gradients by the tool's velocities and by how the box begins."""
    scene = new_scene(dt=2e-3, substeps=10, gradient=True, mpm_options=gs.options.MPMOptions(
        lower_bound=(0.0, -0.2, -0.1), upper_bound=(0.8, 0.8, 0.55), grid_density=32))
    tool = scene.add_entity(gs.morphs.Mesh(file="meshes/stirrer.obj", scale=0.6, pos=(0.5, 0.5, 0.05), euler=(90.0, 0.0, 0.0)),
                            material=gs.materials.Tool(friction=8.0))
    block = scene.add_entity(gs.morphs.Box(lower=(0.2, 0.1, 0.05), upper=(0.4, 0.3, 0.15)),
                             material=gs.materials.MPM.Elastic(rho=500, sampler="regular"))
    scene.build()
    goal = torch.tensor([0.5, 0.8, 0.05], dtype=gs.tc_float, device=gs.device)

    def start():
        inputs = {"place of the tool": leaf([[0.3, 0.1, 0.28]]), "place": leaf([0.3 + MOVE[0], 0.3, 0.1]),
                  "velocity": leaf([0.0, -1.0, 0.0])}
        tool.set_position(inputs["place of the tool"])
        block.set_position(inputs["place"])
        block.set_velocity(inputs["velocity"])
        return inputs

    def act(step):
        velocity = leaf([[0.0, 1.0, 0.0]])
        tool.set_velocity(vel=velocity)
        return {f"velocity of the tool {step}": velocity}

    return Case(scene, 6, start, act, lambda: ((block.get_state().pos - goal) ** 2).sum())


def particles(material, steps, **options):
    """A cube of them falls onto the floor of the solver."""
    scene = new_scene(dt=4e-3, **options)
    scene.add_entity(gs.morphs.Box(lower=at(-0.1, -0.1, 0.03), upper=at(0.1, 0.1, 0.23)), material=material)
    scene.build()
    return Case(scene, steps)


def room(floor=0.0):
    return {"lower_bound": (-0.4, -0.4, floor), "upper_bound": (0.4, 0.4, 0.6)}


def mpm_options():
    return gs.options.MPMOptions(grid_density=40, **room(-0.06))  # which keeps three cells free at its walls


def mpm_elastic():
    return particles(gs.materials.MPM.Elastic(sampler="regular"), 30, substeps=10, mpm_options=mpm_options())


def mpm_liquid():
    return particles(gs.materials.MPM.Liquid(sampler="regular"), 30, substeps=10, mpm_options=mpm_options())


def sph_liquid():
    options = gs.options.SPHOptions(particle_size=0.02, **room())
    return particles(gs.materials.SPH.Liquid(sampler="regular"), 25, substeps=10, sph_options=options)


def pbd_liquid():
    options = gs.options.PBDOptions(particle_size=0.02, max_density_solver_iterations=10, **room())
    return particles(gs.materials.PBD.Liquid(sampler="regular"), 25, substeps=4, pbd_options=options)


def pbd_cloth():
    """A cloth falls onto a fixed box."""
    scene = new_scene(dt=4e-3, substeps=5, pbd_options=gs.options.PBDOptions(particle_size=0.02))
    scene.add_entity(gs.morphs.Plane())
    scene.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0.0, 0.0, 0.1), fixed=True))
    scene.add_entity(gs.morphs.Mesh(file="meshes/cloth.obj", scale=0.6, pos=at(0.0, 0.0, 0.22)), material=gs.materials.PBD.Cloth())
    scene.build()
    return Case(scene, steps=20)


def fem_implicit():
    """An elastic ball falls onto the ground."""
    scene = new_scene(dt=5e-3, substeps=2, fem_options=gs.options.FEMOptions(use_implicit_solver=True),
                      coupler_options=gs.options.SAPCouplerOptions())
    scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=at(0.0, 0.0, 0.105)),
                     material=gs.materials.FEM.Elastic(E=1e5, model="linear_corotated"))
    scene.build()
    return Case(scene, steps=8)


SCENES = {"box": box, "heap": heap, "chain": chain, "push": push, "mpm-elastic": mpm_elastic, "mpm-liquid": mpm_liquid,
          "sph-liquid": sph_liquid, "pbd-liquid": pbd_liquid, "pbd-cloth": pbd_cloth, "fem-implicit": fem_implicit}


def sync():
    quadrants.sync()
    if gs.device.type == "cuda":
        torch.cuda.synchronize()


def clock():
    """Seconds of the world; and of all threads of this process, and of the processes that it has waited for."""
    sync()
    processor = sum(used.ru_utime + used.ru_stime
                    for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    return np.array([time.time(), processor])


def final(scene):
    """Positions and velocities of all that moves."""
    arrays = {}
    for state in scene.get_state().solvers_state:
        for name in ("qpos", "dofs_vel", "pos", "vel"):
            value = getattr(state, name, None)
            if value is not None and value.numel() > 0:
                arrays[f"{type(state).__name__}.{name}"] = value.detach().cpu().numpy().copy()
    return arrays


def rollout(case, steps):
    """Seconds of all steps and of the gradient, of both clocks; and what comes out."""
    case.scene.reset()
    inputs = dict(case.start())
    begin = clock()
    for step in range(steps):
        inputs |= case.act(step)
        case.scene.step()
    forward, backward, arrays = clock() - begin, None, {}
    with torch.no_grad():
        arrays |= final(case.scene)
    if case.loss:
        loss = case.loss()
        begin = clock()
        loss.backward()
        backward = clock() - begin
        arrays |= {f"gradient by {name}": value.grad.detach().cpu().numpy().copy() for name, value in inputs.items()
                   if value.grad is not None}
    return forward, backward, arrays


def repeat(case):
    """The least seconds of a step and of the gradient of all steps; the arrays of the first repetition."""
    forward, backward, end = [], [], time.perf_counter() + SECONDS
    arrays, again = None, None
    while len(forward) < REPETITIONS or time.perf_counter() < end:
        one, other, again = rollout(case, case.steps)
        arrays = arrays or again
        forward.append(one)
        backward += [] if other is None else [other]
    answer = {"step": (np.min(forward[1:], axis=0) / case.steps).tolist(), "repetitions": len(forward),
              "repeats": all(np.array_equal(arrays[name], again[name]) for name in arrays)}
    if backward:
        answer["backward"] = np.min(backward[1:], axis=0).tolist()
    return answer, arrays


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scene", choices=SCENES)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--performance-mode", action="store_true")
    parser.add_argument("--arrays", type=Path)
    parser.add_argument("--moved", type=Path)
    arguments = parser.parse_args()
    gs.init(backend=getattr(gs, arguments.device), precision="64", seed=0, logging_level="error",
            performance_mode=arguments.performance_mode)
    case = SCENES[arguments.scene]()
    rollout(case, 1)
    answer = {"first": (clock() - [BEGIN, 0.0]).tolist()}
    if not arguments.first:
        times, arrays = repeat(case)
        answer |= times
        if arguments.arrays:
            np.savez(arguments.arrays, **arrays)
    answer["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if arguments.moved:
        MOVE[0] = 1e-14
        np.savez(arguments.moved, **rollout(SCENES[arguments.scene](), case.steps)[2])
    print("\nRESULT " + json.dumps(answer))


if __name__ == "__main__":
    main()
