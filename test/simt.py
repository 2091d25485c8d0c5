"""The unit tests that launch kernels, on the host as a GPU, with validation."""

import os

import unit

# Of one layer, or of a device that they open themselves.
OTHERS = ("-Batch.*:RandomIr*:*Mutation*:ArrayApi*:Nvidia*:Cuda*:*Interpreter*:Lower*:Tracer*:"
          "ShadowMemory*:LaunchTest*:Damaged*:Reference*:Devices/DeviceConformance*:*.AgreeForLonger:*.EqualThemForLonger")
VULKAN = ":Spirv*:Vulkan*"  # of their own device too, but ./dev vulkan is to run them
# What takes long because of large kernels or many of them, not because of the
# device. Part of every test run on the CPU, of this one with COSTATE_SLOW=1.
SLOW = (":Decomposition.Derivatives*:Decomposition.SecondOrder:RandomKernel*:RandomRecordings*:KinkBehindABranch*:"
        "AdbenchBa.Perturbed*:SecondOrder.Gmm*")


def run(root, build, preset):
    slow = "" if os.environ.get("COSTATE_SLOW") else SLOW
    return unit.run(root, build, preset, COSTATE_DEVICE="simt", COSTATE_VALIDATE="1",
                    GTEST_FILTER=OTHERS + VULKAN + slow)
