"""All SPIR-V that the part `vulkan` has made goes through Mesa's compiler for AMD GPUs, of which there need be none.

Each chip is a process of its own: Mesa's driver asks its environment once.
By hand, for files of COSTATE_KEEP_CODE: RADV_FORCE_FAMILY=vega20 VK_ICD_FILENAMES=... python3 test/radv.py FILE...
"""

import ctypes
import os
import struct
import subprocess
import sys
from pathlib import Path

from report import Counts

DRIVER = Path("/usr/share/vulkan/icd.d/radeon_icd.x86_64.json")
FAMILIES = ("vega20", "navi21", "gfx1100")
THREADS, SHARED_WORDS = 64, 4096
COMPUTE = 0x20  # VK_SHADER_STAGE_COMPUTE_BIT
CAPABILITY, ENTRY_POINT = 17, 15
ADDS_FLOATS = {6033, 6034, 6095}  # AtomicFloat..AddEXT


def of_type(kind, *fields):
    """A structure of Vulkan: a class with the fields `name`, and its ctypes."""
    class Structure(ctypes.Structure):
        _fields_ = [("sType", ctypes.c_uint32), ("pNext", ctypes.c_void_p), *fields]

        def __init__(self, **values):
            super().__init__(sType=kind, **values)
    return Structure


U32, SIZE, HANDLE, TEXT = ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
Application = of_type(0, ("name", TEXT), ("version", U32), ("engine", TEXT), ("engineVersion", U32), ("apiVersion", U32))
Instance = of_type(1, ("flags", U32), ("application", HANDLE), ("layerCount", U32), ("layers", HANDLE),
                   ("extensionCount", U32), ("extensions", HANDLE))
Queue = of_type(2, ("flags", U32), ("family", U32), ("count", U32), ("priorities", HANDLE))
Device = of_type(3, ("flags", U32), ("queueCount", U32), ("queues", HANDLE), ("layerCount", U32), ("layers", HANDLE),
                 ("extensionCount", U32), ("extensions", HANDLE), ("features", HANDLE))
Shader = of_type(16, ("flags", U32), ("bytes", SIZE), ("code", TEXT))
Stage = of_type(18, ("flags", U32), ("stage", U32), ("module", HANDLE), ("name", TEXT), ("specialization", HANDLE))
Pipeline = of_type(29, ("flags", U32), ("stage", Stage), ("layout", HANDLE), ("base", HANDLE), ("baseIndex", ctypes.c_int32))
Layout = of_type(30, ("flags", U32), ("setCount", U32), ("sets", HANDLE), ("rangeCount", U32), ("ranges", HANDLE))


class Specialization(ctypes.Structure):
    _fields_ = [("count", U32), ("entries", HANDLE), ("bytes", SIZE), ("data", HANDLE)]


class Compiler:
    """A device that compiles, and nothing else."""

    def __init__(self):
        self.vulkan = ctypes.CDLL("libvulkan.so.1")
        application = Application(apiVersion=(1 << 22) | (3 << 12))
        instance = self.made("vkCreateInstance", Instance(application=ctypes.addressof(application)), first=())
        count, physical = U32(1), HANDLE()
        if self.vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), ctypes.byref(physical)) < 0 or not physical:
            raise SystemExit("Mesa's driver has no such device")
        priority = ctypes.c_float(1)
        queue = Queue(count=1, priorities=ctypes.addressof(priority))
        self.device = self.made("vkCreateDevice", Device(queueCount=1, queues=ctypes.addressof(queue)), first=(physical,))
        words = (U32 * 3)(COMPUTE, 0, 128)
        self.layout = self.made("vkCreatePipelineLayout", Layout(rangeCount=1, ranges=ctypes.addressof(words)))
        self.values = (U32 * 2)(THREADS, SHARED_WORDS)
        self.entries = ctypes.create_string_buffer(struct.pack("@IIN", 0, 0, 4) + struct.pack("@IIN", 1, 4, 4))
        self.sizes = Specialization(2, ctypes.addressof(self.entries), 8, ctypes.addressof(self.values))

    def made(self, function, info, first=None):
        handle = HANDLE()
        before = (self.device,) if first is None else first
        status = getattr(self.vulkan, function)(*before, ctypes.byref(info), None, ctypes.byref(handle))
        if status:
            raise RuntimeError(f"{function} says {status}")
        return handle

    def compile(self, code, name):
        shader = self.made("vkCreateShaderModule", Shader(bytes=len(code), code=code))
        stage = Stage(stage=COMPUTE, module=shader, name=name, specialization=ctypes.addressof(self.sizes))
        pipeline, info = HANDLE(), Pipeline(stage=stage, layout=self.layout)
        status = self.vulkan.vkCreateComputePipelines(self.device, None, U32(1), ctypes.byref(info), None, ctypes.byref(pipeline))
        if status or not pipeline:
            raise RuntimeError(f"vkCreateComputePipelines says {status}")
        self.vulkan.vkDestroyPipeline(self.device, pipeline, None)
        self.vulkan.vkDestroyShaderModule(self.device, shader, None)


def instructions(code):
    """Of a SPIR-V module: the operation, and its bytes."""
    at = 20
    while at < len(code):
        operation, length = struct.unpack_from("<HH", code, at)
        yield operation, code[at:at + 4 * length]
        at += 4 * length


def entries(code):
    """Names of the kernels of a SPIR-V module."""
    for operation, text in instructions(code):
        if operation == ENTRY_POINT:
            yield text[12:].split(b"\0")[0]


def adds_floats(code):
    """Whether a module is for devices that add floats in memory, which these are not by this driver."""
    return any(operation == CAPABILITY and struct.unpack_from("<I", text, 4)[0] in ADDS_FLOATS for operation, text in instructions(code))


def compile_all(files):
    """Says of each kernel whether it compiles; a driver that crashes has said which one it began."""
    compiler = Compiler()
    for file in files:
        code = Path(file).read_bytes()
        for name in entries(code):
            print(f"{Path(file).name} {name.decode()}", end=" ", flush=True)
            try:
                compiler.compile(code, name)
                print("compiles", flush=True)
            except RuntimeError as error:
                print(error, flush=True)


def run(root, build, preset):
    counts = Counts()
    files = sorted((build / "spirv").glob("*.spv"))
    for file in [file for file in files if adds_floats(file.read_bytes())]:
        files.remove(file)
        counts.skips(file.stem, "(adds floats in memory, which Mesa does for no AMD GPU)")
    if not DRIVER.exists() or not files:
        counts.skips("Mesa's compiler for AMD GPUs", "there is no SPIR-V of the part vulkan" if DRIVER.exists() else "it is not installed")
        return counts
    for family in FAMILIES:
        environment = dict(os.environ, RADV_FORCE_FAMILY=family, VK_ICD_FILENAMES=str(DRIVER), VK_DRIVER_FILES=str(DRIVER),
                           MESA_SHADER_CACHE_DISABLE="1")
        process = subprocess.run([sys.executable, __file__, *files], env=environment, capture_output=True, text=True)
        lines = process.stdout.splitlines()
        wrong = [line for line in lines if not line.endswith(" compiles")]
        counts.passes(len(lines) - len(wrong))
        if wrong or process.returncode or not lines:
            counts.fails(f"Mesa's compiler for {family}, which ended with {process.returncode}", "\n".join([*wrong, process.stderr]))
    return counts


if __name__ == "__main__":
    compile_all(sys.argv[1:])
