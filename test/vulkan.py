"""A part of the unit tests that launch kernels, and of the Python tests, on Mesa's Vulkan driver for the CPU.

It takes seconds to assemble a gradient, so these are few. All of them:
./dev vulkan
COSTATE_DEVICE=vulkan PYTHONPATH=build/release/python .venv/bin/python -m pytest python/tests
"""

import shutil

import python
import unit

PYTHON = ("test_core.py", "test_arrays.py", "test_random_programs.py", "lang/test_ad_api.py", "lang/test_arguments.py", "lang/test_atomics.py",
          "lang/test_control_flow.py", "lang/test_errors.py", "lang/test_fields.py", "lang/test_idioms.py", "lang/test_programs.py")


def run(root, build, preset):
    kept = build / "spirv"  # for the part radv
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    counts = unit.run(root, build, preset, "devices,sample", COSTATE_DEVICE="vulkan", COSTATE_VALIDATE="1", COSTATE_KEEP_CODE=str(kept))
    like_apple = unit.run(root, build, preset, "devices,sample", COSTATE_DEVICE="vulkan", COSTATE_VULKAN_PROFILE="moltenvk;f64",
                          GTEST_FILTER="Local.*:Struct.*:Atomic.*")
    counts.add_as_one(like_apple, "like MoltenVK")
    if interpreter := python.interpreter(root, build, counts):
        python.run_on("vulkan", interpreter, root, build, counts, PYTHON, marks="not host", COSTATE_VALIDATE="1",
                      COSTATE_KEEP_CODE=str(kept))
    return counts
