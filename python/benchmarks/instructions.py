"""How many instructions the loops over the interior of stencils have, for a vector of 8 numbers of f32.

    ./dev bench instructions [--json FILE]

Compiles for AVX2 what `stencils.py` calls 2d-f32-cubic-inside and 3d-f32-cubic-inside, and disassembles it. Of each
kernel and of its gradient the loop without branches counts that has the most instructions on vectors.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["COSTATE_VECTORS"] = "avx2"
for name in ("COSTATE_CACHE", "COSTATE_CACHE_DIR", "COSTATE_DEVICE"):  # which would override options
    os.environ.pop(name, None)

import costate as qd

import results
import stencils

DISASSEMBLER = "llvm-objdump-22"
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)")
TARGET = re.compile(r"(?:0x)?([0-9a-f]+) <")
KINDS = {  # the first that begins so
    "products": ("vmul",),
    "sums": ("vadd", "vsub", "vfm", "vfnm"),
    "guards": ("vcmp", "vand", "vblend"),
    "prefetches": ("prefetch",),
    "moves": ("vmov", "vbroadcast", "mov"),
}


def disassembled(file):
    """Addresses, names and operands of the code in a file of the cache."""
    content = file.read_bytes()
    start = content.find(b"\x7fELF")
    if start < 0:
        return []
    with tempfile.NamedTemporaryFile(suffix=".o") as code:
        code.write(content[start:])
        code.flush()
        text = subprocess.check_output([DISASSEMBLER, "-d", "--no-show-raw-insn", code.name], text=True)
    found = filter(None, map(INSTRUCTION.match, text.splitlines()))
    return [(int(one[1], 16), one[2], one[3]) for one in found]


def loops(code):
    """What lies between a jump and where it goes back to, without another jump."""
    places = {address: i for i, (address, _, _) in enumerate(code)}
    for end, (address, name, operands) in enumerate(code):
        target = TARGET.match(operands) if name.startswith("j") else None
        start = places.get(int(target[1], 16)) if target else None
        if start is not None and start <= end and not any(name.startswith("j") for _, name, _ in code[start:end]):
            yield code[start:end + 1]


def on_vectors(loop):
    return sum("%ymm" in operands for _, _, operands in loop)


def widest_loop(folder):
    return max((loop for file in folder.glob("*.code") for loop in loops(disassembled(file))), key=on_vectors)


def kinds(loop):
    counts = dict.fromkeys([*KINDS, "others"], 0)
    for _, name, _ in loop:
        counts[next((kind for kind, heads in KINDS.items() if name.startswith(heads)), "others")] += 1
    return counts


def count(spelling, folder):
    """Kernel and gradient have a cache each, which says whose code is whose."""
    found = []
    for name in ("kernel", "gradient"):
        cache = Path(folder) / f"{spelling.name}-{name}"
        qd.init(arch=qd.cpu, offline_cache=True, offline_cache_file_path=str(cache))
        heat = spelling.kernel(64, folder)
        arrays = spelling.arrays(64)
        (heat if name == "kernel" else heat.grad)(*arrays)
        found.append(widest_loop(cache))
    kernel, gradient = found
    return {"bench": "instructions", "case": spelling.name, "device": "cpu", "kernel": len(kernel),
            "gradient": len(gradient), **kinds(gradient)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [count(spelling, folder) for spelling in stencils.SPELLINGS
                if spelling.name in ("2d-f32-cubic-inside", "3d-f32-cubic-inside")]
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items() if name not in ("bench", "device")))
    if options.json:
        results.append(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
