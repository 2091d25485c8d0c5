"""Runs kernels for AMD GPUs for the process that started this one, in whose memory their arrays are.

Lines from it: `chip NAME`, `load FILE`, `launch NUMBER KERNEL BLOCKS THREADS SHARED-BYTES WORD...`; each is answered by one, `ok ...` or
`error ...`. COSTATE_AMD_INSTRUCTIONS names a file for the names of all instructions that have run.
"""

import os
import sys
import traceback

from codeobject import CodeObject
from machine import Machine, Memory


class ProcessMemory(Memory):
    """That of the parent, besides what is the emulator's own."""

    OWN = 1 << 40

    def __init__(self):
        super().__init__()
        self.next = self.OWN
        self.file = os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR)

    def read(self, address, size):
        if self.OWN <= address < 2 * self.OWN:
            return super().read(address, size)
        return int.from_bytes(os.pread(self.file, size, address), "little")

    def write(self, address, size, value):
        if self.OWN <= address < 2 * self.OWN:
            super().write(address, size, value)
        else:
            os.pwrite(self.file, (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little"), address)


class Server:
    def __init__(self):
        self.machine, self.codes = None, []

    def chip(self, name):
        self.machine = Machine(name, ProcessMemory(), most_steps=20_000_000)

    def load(self, file):
        with open(file, "rb") as image:
            data = image.read()
        base = self.machine.memory.next
        code = CodeObject(data, base)
        self.machine.memory.add(code.bytes)
        self.codes.append(code)
        return len(self.codes) - 1, *code.kernels

    def launch(self, number, kernel, blocks, threads, shared, *words):
        kept = len(self.machine.memory.pieces)
        try:
            self.machine.launch(self.codes[int(number)], kernel, int(blocks), int(threads), [int(word) for word in words], int(shared))
        finally:
            del self.machine.memory.pieces[kept:]


def main():
    server = Server()
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            answer = getattr(server, command)(*arguments)
            print("ok", *(answer or ()), flush=True)
        except Exception as error:
            traceback.print_exc()
            print("error", type(error).__name__, str(error).replace("\n", " "), flush=True)
    if server.machine and (file := os.environ.get("COSTATE_AMD_INSTRUCTIONS")):
        with open(file, "a") as names:
            names.write("".join(f"{server.machine.arch} {name}\n" for name in sorted(server.machine.used)))


main()
