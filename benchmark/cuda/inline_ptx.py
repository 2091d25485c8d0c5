"""inline_ptx.py PTX HEADER: functions of one float, as compiled by LLVM, become
inline assembly that CUDA programs can call."""

import re
import sys
from pathlib import Path

NAMES = {"costate_device_near_sin": "nearSine", "costate_device_near_cos": "nearCosine",
         "libclc_Z3sinf": "farSine", "libclc_Z3cosf": "farCosine"}
# As DeviceMaths.c has them; sine.cu compares bits.
WHOLE = """
__device__ __forceinline__ float costateSine(float x) {
  float y = nearSine(x);
  return fabsf(x) <= 65536.0f ? y : farSine(x);
}

__device__ __forceinline__ float costateCosine(float x) {
  float y = nearCosine(x);
  return fabsf(x) <= 65536.0f ? y : farCosine(x);
}
"""
FUNCTION = re.compile(r"\.visible \.func\s+\(\.param \.b32 func_retval0\) (\w+)\((.*?)\)\s*\{(.*?)\n\}",
                      re.DOTALL)


def without_comment(line):
    return line.split("//")[0].rstrip()


def instruction(line):
    """A line of the function as one of assembly: operands are %0 and %1."""
    line = line.replace("%", "%%")
    line = re.sub(r"ld\.param\.b32\s+(\S+), \[\w+_param_0\];", r"mov.b32 \1, %1;", line)
    line = re.sub(r"st\.param\.b32\s+\[func_retval0\], (\S+);", r"mov.b32 %0, \1;", line)
    return line


def translated(name, body):
    lines = [instruction(line) for line in body.splitlines() if line.strip()]
    if lines[-1].strip() != "ret;" or any(".param" in line or "call" in line for line in lines):
        sys.exit(f"inline_ptx.py: {name} is no function of one float without calls")
    text = "\n".join(f'      "{line.strip()}\\n"' for line in lines[:-1])
    inlining = "__noinline__" if name.startswith("libclc") else "__forceinline__"
    return (f"__device__ {inlining} float {NAMES[name]}(float x) {{\n  float y;\n"
            f'  asm("{{\\n"\n{text}\n      "}}" : "=f"(y) : "f"(x));\n  return y;\n}}\n')


def main(ptx, header):
    text = "\n".join(map(without_comment, Path(ptx).read_text().splitlines()))
    found = {match[1]: match[3] for match in FUNCTION.finditer(text)}
    missing = sorted(set(NAMES) - set(found))
    if missing:
        sys.exit(f"inline_ptx.py: no {', '.join(missing)} in {ptx}")
    functions = [translated(name, found[name]) for name in NAMES]
    Path(header).write_text("#pragma once\n// The sine and cosine of Costate on NVIDIA GPUs, made by inline_ptx.py "
                            "from what LLVM\n// compiles them to.\n\n" + "\n".join(functions) + WHOLE)


if __name__ == "__main__":
    main(*sys.argv[1:])
