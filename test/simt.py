"""The unit tests that launch kernels, on the host as a GPU, with validation."""

import unit

# Of one layer, or of a device that they open themselves.
OTHERS = ("-Batch.*:RandomIr*:*Mutation*:ArrayApi*:Nvidia*:Cuda*:*Interpreter*:Lower*:Tracer*:"
          "ShadowMemory*:LaunchTest*:Damaged*:Reference*:Devices/DeviceConformance*:*.AgreeForLonger:*.EqualThemForLonger")
VULKAN = ":Spirv*:Vulkan*"  # of their own device too, but ./dev vulkan is to run them


def run(root, build, preset):
    return unit.run(root, build, preset, COSTATE_DEVICE="simt", COSTATE_VALIDATE="1",
                    GTEST_FILTER=OTHERS + VULKAN)
