"""Runs kernels of code objects: waves of 32 or 64 lanes, blocks whose waves meet at barriers.

Instructions are decoded by tinygrad. What they compute is the vendor's pseudocode, but for memory, branches, and what reads other lanes.
"""

import importlib
import re
import struct

import pcode
from tinygrad.renderer.amd import decode_inst

ARCHITECTURES = {"gfx9": "cdna", "gfx11": "rdna3", "gfx12": "rdna4"}
SHARED, PRIVATE = 1 << 48, 1 << 49  # where flat addresses are those of a block, or of a lane
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
INLINE = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0, 248: 0.15915494309189532}
SIZES = {"U8": 1, "I8": 1, "B8": 1, "U16": 2, "I16": 2, "B16": 2, "B32": 4, "B64": 8, "B96": 12, "B128": 16, "DWORD": 4, "DWORDX2": 8,
         "DWORDX3": 12, "DWORDX4": 16, "UBYTE": 1, "SBYTE": 1, "USHORT": 2, "SSHORT": 2, "BYTE": 1, "SHORT": 2}


class Unknown(Exception):
    pass


class Memory:
    """Pieces at addresses of the device."""

    def __init__(self):
        self.pieces, self.next = [], 1 << 32

    def add(self, data):
        address = self.next
        self.pieces.append((address, data))
        self.next += (len(data) + 8191) // 4096 * 4096
        return address

    def find(self, address, size):
        for start, data in self.pieces:
            if start <= address and address + size <= start + len(data):
                return data, address - start
        raise Unknown(f"no memory at {address:#x}")

    def read(self, address, size):
        data, at = self.find(address, size)
        return int.from_bytes(data[at:at + size], "little")

    def write(self, address, size, value):
        data, at = self.find(address, size)
        data[at:at + size] = (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


class State:
    """What pseudocode sees of one lane, or of the scalar unit."""

    def __init__(self, wave, lane=0):
        self.wave, self.laneId, self.out = wave, lane, {}
        self.WAVE32, self.WAVE64 = wave.lanes == 32, wave.lanes == 64
        self.D0 = self.D1 = 0

    def set_lane(self, name, bit):
        self.out[name] = bit

    @property
    def EXECZ(self):
        return int(self.wave.exec == 0)


class Wave:
    def __init__(self, block, number):
        self.block, self.lanes = block, block.kernel.lanes
        self.s = [0] * 128
        self.v = [[0] * self.lanes for _ in range(512)]
        self.scc, self.steps, self.relative = 0, 0, (0, 0)
        threads = min(self.lanes, block.threads - number * self.lanes)
        self.exec = (1 << threads) - 1
        self.private = [bytearray(b"\xa5" * block.machine.private_bytes) for _ in range(self.lanes)]
        self.v[0] = [number * self.lanes + lane for lane in range(self.lanes)]
        kernel, s = block.kernel, self.s
        for name, at in kernel.places.items():
            if name in block.pointers:
                s[at], s[at + 1] = block.pointers[name] & M32, block.pointers[name] >> 32
        at = kernel.user_registers
        for axis in kernel.block_numbers:
            s[at] = block.number if axis == 0 else 0
            at += 1
        s[108 + 9] = block.number  # ttmp9 of gfx12
        self.pc = kernel.entry

    # Registers. 106: vcc, 126: exec; constants from 128 on.

    @property
    def exec(self):
        return self.s[126] | self.s[127] << 32

    @exec.setter
    def exec(self, value):
        self.s[126], self.s[127] = value & M32, value >> 32 & M32

    @property
    def vcc(self):
        return self.s[106] | self.s[107] << 32

    def scalar(self, number, registers, literal, is_float=False, bits=32):
        if number == self.block.machine.null:
            return 0
        if number < 128:
            value = 0
            for k in range(registers):
                value |= self.s[number + k] << (32 * k)
            return value
        if number <= 192:
            return number - 128
        if number <= 208:
            return (192 - number) & ((1 << (32 * registers)) - 1)
        if number in INLINE:
            return pcode.to_bits(INLINE[number], "f64" if registers == 2 else f"f{bits}")
        if number == 255:
            return literal << 32 if is_float and registers == 2 else literal if registers == 1 else pcode.signed(literal, 32) & M64
        if number in (235, 237):
            return SHARED if number == 235 else PRIVATE
        if number == 253:
            return self.scc
        raise Unknown(f"source {number}")

    def vector(self, number, registers, lane):
        value = 0
        for k in range(registers):
            value |= self.v[number - 256 + k][lane] << (32 * k)
        return value

    def source(self, register, registers, lane, literal, is_float=False, bits=32):
        if register.offset >= 256:
            return self.vector(register.offset + (self.relative[1] if self.relative[0] & 7 else 0), registers, lane)
        return self.scalar(register.offset, registers, literal, is_float, bits)

    def set_scalar(self, number, registers, value):
        if number == self.block.machine.null:
            return
        for k in range(registers):
            self.s[number + k] = value >> (32 * k) & M32

    def set_vector(self, number, registers, lane, value):
        for k in range(registers):
            self.v[number - 256 + k][lane] = value >> (32 * k) & M32

    def index(self, operand):
        """What is added to the number of a vector register: bits 1, 2, 4 of sources, 8 of the result."""
        modes, index = self.relative
        return index if modes & operand else 0

    def active(self):
        return [lane for lane in range(self.lanes) if self.exec >> lane & 1]


def extreme(choose, kind):
    """The number that is not NaN, or the smaller or larger one of two; -0 is below 0."""
    mask = (1 << int(kind[1:])) - 1

    def run(m):
        numbers = [pcode.of_bits(value & mask, kind) for value in (m.S0, m.S1)]
        numbers = [x for x in numbers if x == x] or numbers[:1]
        m.D0 = pcode.to_bits(choose(numbers, key=lambda x: (x, pcode.math.copysign(1, x))), kind)
    return run


def multiply_halves(m):
    m.D0 = m.S0 * m.S1 + m.S2 & 0xffff


# Instructions whose pseudocode is missing, or is about signals.
OWN = {"V_MAD_LEGACY_U16": multiply_halves,
       **{f"V_{name}_{number}F{bits}": extreme(choose, f"f{bits}") for name, choose in (("MIN", min), ("MAX", max)) for number in ("", "NUM_")
          for bits in (16, 32, 64)}}


class CacheControl:
    """Of gfx11 and gfx90a, which tinygrad does not decode."""

    OPERATIONS = {"rdna3": (43, 44), "cdna": (62, 63)}

    class Op:
        name = "BUFFER_GL_INV"

    op = Op

    @staticmethod
    def size():
        return 8


class Block:
    def __init__(self, machine, kernel, number, threads, pointers, shared_bytes):
        self.machine, self.kernel, self.number, self.threads = machine, kernel, number, threads
        self.pointers = pointers
        self.shared = bytearray(b"\xa5" * (kernel.shared + shared_bytes + 64))
        self.waves = [Wave(self, k) for k in range((threads + kernel.lanes - 1) // kernel.lanes)]

    def run(self):
        waiting = {wave: self.machine.run(wave) for wave in self.waves}
        while waiting:
            for wave, steps in list(waiting.items()):
                if next(steps, "end") == "end":
                    del waiting[wave]


class Machine:
    def __init__(self, chip, memory=None, most_steps=2_000_000):
        self.arch = next(arch for start, arch in ARCHITECTURES.items() if chip.startswith(start))
        self.memory = memory or Memory()
        self.pcode = importlib.import_module(f"tinygrad.runtime.autogen.amd.{self.arch}.str_pcode").PCODE
        self.null = 124 if self.arch != "cdna" else -1
        self.m0 = 125 if self.arch != "cdna" else 124
        self.functions, self.decoded, self.most_steps, self.private_bytes = {}, {}, most_steps, 16384
        self.used = set()

    def launch(self, code, name, blocks, threads, words, shared_bytes=0):
        kernel = code.kernels[name]
        arguments = bytearray(max(kernel.arguments, 8 * len(words) + 256))
        struct.pack_into(f"<{len(words)}Q", arguments, 0, *words)
        hidden = (8 * max(1, len(words)) + 7) // 8 * 8
        struct.pack_into("<IIIHHH", arguments, hidden, blocks, 1, 1, threads, 1, 1)
        pointers = {"arguments": self.memory.add(arguments), "dispatch": self.memory.add(bytearray(64)), "queue": self.memory.add(bytearray(256))}
        for number in range(blocks):
            Block(self, kernel, number, threads, pointers, shared_bytes).run()

    def instruction(self, pc):
        found = self.decoded.get(pc)
        if not found:
            data, at = self.memory.find(pc, 4)
            word = int.from_bytes(data[at:at + 4], "little")
            if word >> 26 == 56 and (word >> 18 & 127) in CacheControl.OPERATIONS.get(self.arch, ()):
                found = CacheControl()
            else:
                found = decode_inst(bytes(data[at:at + 20]).ljust(20, b"\0"), self.arch)
            self.decoded[pc] = found
            found.length = found.size()
        return found

    def run(self, wave):
        """Until the wave ends; stops at barriers."""
        while True:
            wave.steps += 1
            if wave.steps > self.most_steps:
                raise Unknown("a wave does not end")
            inst = self.instruction(wave.pc)
            after = wave.pc + inst.length
            kind = type(inst).__name__.split("_")[0].replace("CacheControl", "MUBUF")
            name = inst.op.name if hasattr(inst, "op") else kind
            self.used.add(name)
            if name == "S_ENDPGM":
                return
            wave.pc = after
            if name in ("S_BARRIER", "S_BARRIER_WAIT"):
                yield name
            else:
                self.perform(wave, inst, kind, name)

    UNITS = {"VFLAT": "FLAT", "VGLOBAL": "FLAT", "GLOBAL": "FLAT", "VSCRATCH": "FLAT", "SCRATCH": "FLAT"}

    def perform(self, wave, inst, kind, name):
        try:
            getattr(self, "run_" + self.UNITS.get(kind, kind))(wave, inst, name)
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise Unknown(f"{inst!r}: {type(error).__name__} {error}") from error

    def function(self, op):
        if own := OWN.get(re.sub(r"_(E32|E64)$", "", op.name)):
            return own
        if op not in self.functions:
            text = self.pcode.get(op) or self.other_text(op)
            if text is None:
                raise Unknown(f"no pseudocode of {op.name}")
            try:
                self.functions[op] = pcode.compiled(text)
            except (SyntaxError, IndexError) as error:
                raise Unknown(f"pseudocode of {op.name}: {error}") from error
        return self.functions[op]

    def function_named(self, op, plain):
        """Of one half of two instructions at once."""
        if op not in self.functions:
            texts = [text for other, text in self.pcode.items() if re.sub(r"_(E32|E64)$", "", other.name) == plain]
            if op not in self.pcode and not texts:
                raise Unknown(op.name)
            self.functions[op] = pcode.compiled(self.pcode.get(op) or texts[0])
        return self.functions[op]

    def other_text(self, op):
        """Of the same instruction in another encoding."""
        plain = re.sub(r"_(E32|E64)$", "", op.name)
        for other, text in self.pcode.items():
            if re.sub(r"_(E32|E64)$", "", other.name) == plain:
                return text
        return None

    # The scalar unit.

    def run_SOPP(self, wave, inst, name):
        jumps = {"S_BRANCH": True, "S_CBRANCH_EXECZ": wave.exec == 0, "S_CBRANCH_EXECNZ": wave.exec != 0, "S_CBRANCH_SCC0": not wave.scc,
                 "S_CBRANCH_SCC1": bool(wave.scc), "S_CBRANCH_VCCZ": wave.vcc & self.mask(wave) == 0, "S_CBRANCH_VCCNZ": wave.vcc & self.mask(wave) != 0}
        if name == "S_SET_GPR_IDX_OFF":
            wave.relative = (0, 0)
            return
        if jumps.get(name):
            wave.pc += 4 * pcode.signed(inst.simm16, 16)
        elif name not in jumps and not re.match(r"S_(NOP|WAITCNT|WAIT|DELAY_ALU|CLAUSE|SET_INST|SLEEP|BARRIER_SIGNAL|ICACHE|SENDMSG|INST_PREFETCH|CODE_END)", name):
            raise Unknown(name)

    @staticmethod
    def mask(wave):
        return (1 << wave.lanes) - 1

    def scalar_state(self, wave, inst):
        m = State(wave)
        m.SCC, m.PC, m.M0 = wave.scc, wave.pc - 4, wave.s[self.m0]
        m.EXEC, m.VCC = wave.exec, wave.vcc
        m.SIMM32 = getattr(inst, "literal", 0)
        return m

    def finish_scalar(self, wave, m, inst, before):
        wave.scc = int(m.SCC) & 1
        if m.EXEC != before:
            wave.exec = m.EXEC
        if hasattr(inst, "sdst"):
            wave.set_scalar(inst.sdst.offset, inst.canonical_op_regs["d"], m.D0)

    def run_SOP1(self, wave, inst, name):
        if name == "S_GETPC_B64":
            return wave.set_scalar(inst.sdst.offset, 2, wave.pc)
        target = wave.scalar(inst.ssrc0.offset, inst.canonical_op_regs["s0"], getattr(inst, "literal", 0))
        if name in ("S_SETPC_B64", "S_SWAPPC_B64"):
            if name == "S_SWAPPC_B64":
                wave.set_scalar(inst.sdst.offset, 2, wave.pc)
            wave.pc = target
            return None
        m = self.scalar_state(wave, inst)
        m.S0, m.D0 = target, wave.scalar(inst.sdst.offset, inst.canonical_op_regs["d"], 0)
        self.function(inst.op)(m)
        self.finish_scalar(wave, m, inst, wave.exec)

    def run_SOP2(self, wave, inst, name):
        m, literal = self.scalar_state(wave, inst), getattr(inst, "literal", 0)
        if name == "S_SET_GPR_IDX_ON":
            if inst._raw >> 8 & 255 not in (1, 8):
                raise Unknown(f"registers relative in {inst._raw >> 8 & 255}")
            wave.relative = (inst._raw >> 8 & 255, wave.scalar(inst.ssrc0.offset, 1, literal) & 255)
            return
        m.S0 = wave.scalar(inst.ssrc0.offset, inst.canonical_op_regs["s0"], literal)
        m.S1 = wave.scalar(inst.ssrc1.offset, inst.canonical_op_regs["s1"], literal)
        self.function(inst.op)(m)
        self.finish_scalar(wave, m, inst, wave.exec)

    run_SOPC = run_SOP2

    def run_SOPK(self, wave, inst, name):
        if name.startswith(("S_WAITCNT", "S_SETREG", "S_VERSION")):
            return
        if name.startswith("S_GETREG"):
            raise Unknown(name)
        m = self.scalar_state(wave, inst)
        m.SIMM16 = m.S1 = m.S0 = inst.simm16
        m.D0 = wave.scalar(inst.sdst.offset, 1, 0)
        if name.startswith("S_CMPK"):
            m.S0 = m.D0
        self.function(inst.op)(m)
        if name.startswith("S_CMPK"):
            wave.scc = int(m.SCC) & 1
        else:
            self.finish_scalar(wave, m, inst, wave.exec)

    def run_SMEM(self, wave, inst, name):
        size = re.search(r"_(B32|B64|B96|B128|B256|B512|DWORD(?:X\d+)?)$", name)
        if not name.startswith("S_LOAD") or not size:
            if re.match(r"S_(DCACHE|GL1|ICACHE)", name):
                return
            raise Unknown(name)
        count = {"DWORD": 1}.get(size[1]) or (int(size[1][1:]) // 32 if size[1][0] == "B" else int(size[1][6:]))
        address = wave.scalar(inst.sbase.offset, 2, 0) + pcode.signed(inst.offset, 21)
        if self.arch == "cdna":
            if inst.soffset_en:
                address += wave.scalar(inst.soffset.offset, 1, 0)
        elif inst.soffset.offset != self.null:
            address += wave.scalar(inst.soffset.offset, 1, 0)
        wave.set_scalar(inst.sdata.offset, count, self.memory.read(address & M64 & ~3, 4 * count))

    # The vector unit.

    FLOAT = re.compile(r"F(16|32|64)")

    def modified(self, inst, name, k, bits, value):
        """`-x` and `|x|` of floats."""
        if getattr(inst, "abs", 0) >> k & 1:
            value &= ~(1 << (bits - 1))
        if getattr(inst, "neg", 0) >> k & 1:
            value ^= 1 << (bits - 1)
        return value

    def sources(self, inst):
        found = []
        for k, names in enumerate((("src0",), ("vsrc1", "src1"), ("src2",))):
            for name in names:
                if hasattr(type(inst), name) and ("s%d" % k in inst.canonical_operands or name in inst.operands):
                    found.append((k, getattr(inst, name)))
                    break
        return found

    def run_vector(self, wave, inst, name):
        if "DPP" in type(inst).__name__:
            raise Unknown(type(inst).__name__)
        if getattr(inst, "omod", 0):
            raise Unknown(f"{inst!r}: multiplied")
        plain = re.sub(r"_(E32|E64)$", "", name)
        if special := getattr(self, "do_" + plain, None):
            if getattr(inst, "clmp", 0):
                raise Unknown(f"{inst!r}: clamped")
            return special(wave, inst)
        found = self.evaluated(wave, inst, plain)
        if plain.startswith(("V_CMP_", "V_CMPX_")):
            self.write_comparison(wave, inst, plain, found)
        else:
            self.write_numbers(wave, inst, plain, found)

    def evaluated(self, wave, inst, plain):
        """(lane, what the pseudocode leaves) of each active lane."""
        run, literal = self.function(inst.op), getattr(inst, "literal", 0)
        registers, bits = inst.canonical_op_regs, inst.canonical_op_bits
        is_float, is_comparison = bool(self.FLOAT.search(plain)), plain.startswith(("V_CMP_", "V_CMPX_"))
        scales = plain.startswith("V_DIV_FMAS")
        carries = None
        if "_CO_CI_" in plain or plain.startswith(("V_ADDC", "V_SUBB", "V_CNDMASK")) or scales:
            place = getattr(inst, "src2", None)
            carries = wave.vcc if place is None or scales else wave.scalar(place.offset, wave.lanes // 32, 0)
        sources = [(k, min(64, bits[f"s{k}"]), self.reader(wave, inst, k, register, literal, is_float))
                   for k, register in self.sources(inst) if carries is None or k != 2 or scales]
        found = []
        for lane in wave.active():
            m = State(wave, lane)
            m.SCC, m.EXEC, m.VCC = wave.scc, wave.exec, carries if carries is not None else wave.vcc
            m.SIMM32 = literal
            for k, width, read in sources:
                setattr(m, f"S{k}", self.modified(inst, plain, k, width, read(lane)))
            if hasattr(inst, "vdst") and not is_comparison and inst.vdst.offset >= 256:
                m.D0 = wave.vector(inst.vdst.offset, registers["d"], lane)
            if plain.startswith("V_DIV_SCALE"):
                m.D0, m.VCC = m.S0, 0
            run(m)
            found.append((lane, m))
        return found

    def reader(self, wave, inst, k, register, literal, is_float):
        """What a source has in a lane."""
        if "SDWA" in type(inst).__name__:
            return lambda lane: self.part(wave, inst, k, lane)
        if self.has_halves(inst, f"s{k}") and register.offset >= 256:
            number, shift = self.half(inst, register.offset, k)
            return lambda lane: wave.vector(number, 1, lane) >> shift & 0xffff
        count, bits = inst.canonical_op_regs[f"s{k}"], inst.canonical_op_bits[f"s{k}"]
        return lambda lane: wave.source(register, count, lane, literal, is_float, 16 if is_float and bits == 16 else 32)

    def has_halves(self, inst, operand):
        """Whether numbers of 16 bits have halves of registers."""
        return self.arch != "cdna" and inst.canonical_op_bits[operand] == 16

    def write_comparison(self, wave, inst, plain, found):
        result = sum((m.both & 1) << lane for lane, m in found)
        place = 106
        if "VOP3" in type(inst).__name__:
            place = inst.vdst.offset
        elif getattr(inst, "sd", 0):
            place = inst.sdst.offset
        writes_exec = plain.startswith("V_CMPX_")
        if writes_exec:
            wave.exec = result
        if not writes_exec or self.arch == "cdna":
            wave.set_scalar(place, wave.lanes // 32, result)

    def write_numbers(self, wave, inst, plain, found):
        mask, is_part, has_halves = None, "SDWA" in type(inst).__name__, self.has_halves(inst, "d")
        for lane, m in found:
            value = self.clamped(inst, plain, m) if getattr(inst, "clmp", 0) else m.D0
            if has_halves:
                number, shift = self.half(inst, inst.vdst.offset, 3)
                before = wave.vector(number, 1, lane)
                wave.set_vector(number, 1, lane, before & ~(0xffff << shift) | (value & 0xffff) << shift)
                continue
            if is_part:
                value = self.placed(inst, value, wave.vector(inst.vdst.offset, 1, lane))
            wave.set_vector(inst.vdst.offset + wave.index(8), inst.canonical_op_regs["d"], lane, value)
            carries = [m.out["VCC"]] if "VCC" in m.out else []
            if plain.startswith("V_DIV_SCALE"):
                carries.append(m.VCC)
            if plain.startswith("V_MAD_") and plain.endswith(("U64_U32", "I64_I32")):
                carries.append(m.D1)
            for bit in carries:
                mask = (mask or 0) | (bit & 1) << lane
        if mask is not None:
            wave.set_scalar(inst.sdst.offset if hasattr(inst, "sdst") else 106, wave.lanes // 32, mask)

    SATURATED = {"V_ADD_U32": lambda a, b: min(a + b, M32), "V_ADD_NC_U32": lambda a, b: min(a + b, M32),
                 "V_SUB_U32": lambda a, b: max(a - b, 0), "V_SUB_NC_U32": lambda a, b: max(a - b, 0)}

    def clamped(self, inst, plain, m):
        """A sum or difference that stays within its type."""
        if plain not in self.SATURATED:
            raise Unknown(f"{inst!r}: clamped")
        return self.SATURATED[plain](m.S0 & M32, m.S1 & M32)

    @staticmethod
    def half(inst, number, operand):
        """The register of 16 bits, and where they start. Encodings of 32 bits number halves."""
        if "VOP3" in type(inst).__name__:
            return number, 16 * (inst.opsel >> operand & 1)
        return (number - 128, 16) if number >= 256 + 128 else (number, 0)

    MIXED = re.compile(r"V_(?:MAD|FMA)_MIX(LO_F16|HI_F16|_F32)$")

    def run_VOP3P(self, wave, inst, name):
        if mixed := self.MIXED.match(name):
            return self.multiply_mixed(wave, inst, mixed[1])
        if name == "V_PK_MOV_B32":
            return self.move_pair(wave, inst)
        if not name.startswith("V_ACCVGPR_"):
            raise Unknown(name)
        reads = "READ" in name
        for lane in wave.active():
            value = wave.vector(inst.src0.offset + 256, 1, lane) if reads else wave.source(inst.src0, 1, lane, 0)
            wave.set_vector(inst.vdst.offset + (0 if reads else 256), 1, lane, value)

    def move_pair(self, wave, inst):
        """A half of each of two pairs of registers."""
        if any(128 <= register.offset < 256 for register in (inst.src0, inst.src1)):
            raise Unknown(f"{inst!r}: a constant")
        for lane in wave.active():
            low, high = (wave.source(register, 2, lane, 0) >> (32 if inst.opsel >> k & 1 else 0) & M32
                         for k, register in enumerate((inst.src0, inst.src1)))
            wave.set_vector(inst.vdst.offset, 2, lane, high << 32 | low)

    def multiply_mixed(self, wave, inst, result):
        """`a * b + c` of f32 and f16, rounded once to f32, also on CDNA 3 (`v_fma_mix` of LLVM, with the manual's other name)."""
        if inst.clmp:
            raise Unknown(f"{inst!r}: clamped")
        is_half = inst.opsel_hi | inst.opsel_hi2 << 2
        for lane in wave.active():
            values = []
            for k, register in enumerate((inst.src0, inst.src1, inst.src2)):
                if is_half >> k & 1 and register.offset in INLINE:
                    raise Unknown(f"{inst!r}: a constant of f16")
                bits = wave.source(register, 1, lane, getattr(inst, "literal", 0), True)
                value = pcode.of_bits(bits >> (16 if inst.opsel >> k & 1 else 0) & 0xffff, "f16") if is_half >> k & 1 else pcode.of_bits(bits, "f32")
                value = abs(value) if inst.neg_hi >> k & 1 else value
                values.append(-value if inst.neg >> k & 1 else value)
            single = pcode.to_bits(pcode.fma32(*values), "f32")
            before = wave.vector(inst.vdst.offset, 1, lane)
            if result != "_F32":
                half = pcode.to_bits(pcode.of_bits(single, "f32"), "f16")
                single = before & 0xffff0000 | half if result == "LO_F16" else before & 0xffff | half << 16
            wave.set_vector(inst.vdst.offset, 1, lane, single)

    def do_V_ACCVGPR_MOV_B32(self, wave, inst):
        for lane in wave.active():
            wave.set_vector(inst.vdst.offset + 256, 1, lane, wave.vector(inst.src0.offset + 256, 1, lane))

    PARTS = ((0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32))

    def part(self, wave, inst, k, lane):
        """Of a source, as SDWA says."""
        if k == 0:
            register, is_scalar = inst.vsrc0.offset, inst.s0
        else:
            register, is_scalar = inst.vsrc1.offset, inst.s1
        value = wave.scalar(register - 256, 1, 0) if is_scalar else wave.vector(register, 1, lane)
        low, bits = self.PARTS[getattr(inst, f"src{k}_sel")]
        value = value >> low & ((1 << bits) - 1)
        if getattr(inst, f"src{k}_sext"):
            value = pcode.signed(value, bits) & M32
        top = 1 << (bits - 1)
        if getattr(inst, f"src{k}_abs"):
            value &= ~top
        return value ^ top if getattr(inst, f"src{k}_neg") else value

    def placed(self, inst, value, before):
        low, bits = self.PARTS[inst.dst_sel]
        mask = ((1 << bits) - 1) << low
        value = value << low & mask
        if inst.dst_unused == 2:
            return before & ~mask & M32 | value
        if inst.dst_unused == 1:
            return (pcode.signed(value >> low, bits) << low) & M32
        return value

    run_VOP1 = run_VOP2 = run_VOP3 = run_VOPC = run_VOP3SD = run_vector

    def do_V_CNDMASK_B32(self, wave, inst):
        place = getattr(inst, "src2", None)
        choice = wave.vcc if place is None else wave.scalar(place.offset, wave.lanes // 32, 0)
        literal = getattr(inst, "literal", 0)
        sources = self.sources(inst)[:2]
        is_part = "SDWA" in type(inst).__name__
        for lane in wave.active():
            k, register = sources[choice >> lane & 1]
            if is_part:
                value = self.placed(inst, self.part(wave, inst, k, lane), wave.vector(inst.vdst.offset, 1, lane))
            else:
                value = self.modified(inst, "", k, 32, wave.source(register, 1, lane, literal))
            wave.set_vector(inst.vdst.offset, 1, lane, value)

    def do_V_READLANE_B32(self, wave, inst):
        lane = wave.scalar(inst.src1.offset, 1, 0) % wave.lanes
        wave.set_scalar(inst.vdst.offset % 256, 1, wave.source(inst.src0, 1, lane, 0))

    def do_V_READFIRSTLANE_B32(self, wave, inst):
        lanes = wave.active() or [0]
        wave.set_scalar(inst.vdst.offset % 256, 1, wave.source(inst.src0, 1, lanes[0], 0))

    def do_V_WRITELANE_B32(self, wave, inst):
        lane = wave.scalar(inst.src1.offset, 1, 0) % wave.lanes
        wave.set_vector(inst.vdst.offset, 1, lane, wave.scalar(inst.src0.offset, 1, getattr(inst, "literal", 0)))

    def do_V_MOVRELS_B32(self, wave, inst):
        for lane in wave.active():
            wave.set_vector(inst.vdst.offset, 1, lane, wave.vector(inst.src0.offset + wave.s[self.m0], 1, lane))

    def do_V_MOVRELD_B32(self, wave, inst):
        for lane in wave.active():
            wave.set_vector(inst.vdst.offset + wave.s[self.m0], 1, lane, wave.source(inst.src0, 1, lane, getattr(inst, "literal", 0)))

    def bits_below(self, wave, inst, first):
        for lane in wave.active():
            a, b = (wave.source(register, 1, lane, getattr(inst, "literal", 0)) for _, register in self.sources(inst)[:2])
            below = (1 << max(0, min(32, lane - first))) - 1
            wave.set_vector(inst.vdst.offset, 1, lane, (a & below).bit_count() + b)

    def do_V_MBCNT_LO_U32_B32(self, wave, inst):
        self.bits_below(wave, inst, 0)

    def do_V_MBCNT_HI_U32_B32(self, wave, inst):
        self.bits_below(wave, inst, 32)

    def do_V_ALIGNBIT_B32(self, wave, inst):
        for lane in wave.active():
            a, b, c = (wave.source(register, 1, lane, getattr(inst, "literal", 0)) for register in (inst.src0, inst.src1, inst.src2))
            wave.set_vector(inst.vdst.offset, 1, lane, (a << 32 | b) >> (c & 31))

    def do_V_PERM_B32(self, wave, inst):
        for lane in wave.active():
            a, b, choice = (wave.source(register, 1, lane, getattr(inst, "literal", 0)) for register in (inst.src0, inst.src1, inst.src2))
            data, value = a << 32 | b, 0
            for k in range(4):
                which = choice >> (8 * k) & 255
                if which >= 13:
                    byte = 255
                elif which == 12:
                    byte = 0
                elif which >= 8:
                    byte = 255 * (data >> (16 * (which - 8) + 15) & 1)
                else:
                    byte = data >> (8 * which) & 255
                value |= byte << (8 * k)
            wave.set_vector(inst.vdst.offset, 1, lane, value)

    def do_V_RNDNE_F64(self, wave, inst):
        for lane in wave.active():
            x = pcode.of_bits(self.modified(inst, "", 0, 64, wave.source(inst.src0, 2, lane, getattr(inst, "literal", 0), True)), "f64")
            wave.set_vector(inst.vdst.offset, 2, lane, pcode.to_bits(pcode.whole(x, lambda v: pcode.math.copysign(float(round(v)), v)), "f64"))

    def do_V_RNDNE_F32(self, wave, inst):
        for lane in wave.active():
            x = pcode.of_bits(self.modified(inst, "", 0, 32, wave.source(inst.src0, 1, lane, getattr(inst, "literal", 0))), "f32")
            wave.set_vector(inst.vdst.offset, 1, lane, pcode.to_bits(pcode.whole(x, lambda v: pcode.math.copysign(float(round(v)), v)), "f32"))

    def run_VOPD(self, wave, inst, name):
        """Two instructions at once: neither sees what the other one writes."""
        literal, writes = getattr(inst, "literal", 0), []
        for op, to, first, second in ((inst.opx, inst.vdstx, inst.srcx0, inst.vsrcx1), (inst.opy, inst.vdsty, inst.srcy0, inst.vsrcy1)):
            plain = op.name.replace("V_DUAL_", "V_")
            self.used.add(op.name)
            run = None if plain.startswith("V_CNDMASK") else OWN.get(plain) or self.function_named(op, plain)
            for lane in wave.active():
                m = State(wave, lane)
                m.SCC, m.EXEC, m.VCC, m.SIMM32 = wave.scc, wave.exec, wave.vcc, literal
                m.S0, m.S1 = wave.source(first, 1, lane, literal), wave.vector(second.offset, 1, lane)
                m.D0 = wave.vector(to.offset, 1, lane)
                if run:
                    run(m)
                else:
                    m.D0 = m.S1 if wave.vcc >> lane & 1 else m.S0
                writes.append((to.offset, lane, m.D0))
        for to, lane, value in writes:
            wave.set_vector(to, 1, lane, value)

    # Memory.

    def place(self, wave, lane, address):
        """Of a flat address: memory and where in it."""
        if address >> 48 == 1:
            return wave.block.shared, address & M32
        if address >> 49 == 1:
            return wave.private[lane], address & M32
        return None, address

    def load(self, memory, at, size):
        return self.memory.read(at, size) if memory is None else int.from_bytes(memory[at:at + size], "little")

    def store(self, memory, at, size, value):
        if memory is None:
            self.memory.write(at, size, value)
        else:
            memory[at:at + size] = (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")

    UPDATES = {
        "ADD": lambda a, b, bits: a + b, "SUB": lambda a, b, bits: a - b, "SWAP": lambda a, b, bits: b, "AND": lambda a, b, bits: a & b,
        "OR": lambda a, b, bits: a | b, "XOR": lambda a, b, bits: a ^ b, "UMAX": lambda a, b, bits: max(a, b), "UMIN": lambda a, b, bits: min(a, b),
        "SMAX": lambda a, b, bits: max(a, b, key=lambda x: pcode.signed(x, bits)), "SMIN": lambda a, b, bits: min(a, b, key=lambda x: pcode.signed(x, bits)),
    }
    RENAMED = {"MAX_U": "UMAX", "MIN_U": "UMIN", "MAX_I": "SMAX", "MIN_I": "SMIN", "SWAP_B": "SWAP", "STOREXCHG_RTN_B": "SWAP", "WRXCHG_RTN_B": "SWAP"}

    def update(self, name, memory, at, data, other):
        """Returns what was there."""
        bits = 64 if re.search(r"(64|X2)$", name) else 32
        old = self.load(memory, at, bits // 8)
        core = re.sub(r"^(GLOBAL|FLAT|DS)_(ATOMIC_)?", "", name).replace("_RTN", "")
        if core.startswith(("CMPSWAP", "CMPST", "CMPSTORE")):
            new = data if old == other else old
        elif "ADD_F" in core:
            kind = f"f{bits}"
            new = pcode.to_bits(pcode.of_bits(old, kind) + pcode.of_bits(data, kind), kind)
        else:
            core = re.sub(r"(_X2|_?[UIB]?(32|64))$", lambda found: "_" + found[0][1] if found[0][1:2] in ("U", "I") and core.startswith(("MAX", "MIN")) else "", core)
            core = {"MAX_U": "UMAX", "MIN_U": "UMIN", "MAX_I": "SMAX", "MIN_I": "SMIN", "STOREXCHG": "SWAP", "WRXCHG": "SWAP"}.get(core, core)
            if core not in self.UPDATES:
                raise Unknown(name)
            new = self.UPDATES[core](old, data, bits)
        self.store(memory, at, bits // 8, new)
        return old

    def run_FLAT(self, wave, inst, name):
        segment = name.split("_")[0]
        offset = pcode.signed(inst.ioffset, 24) if hasattr(inst, "ioffset") else pcode.signed(inst.offset, 13)
        if self.arch == "cdna" and segment == "FLAT":
            offset = inst.offset
        saddr = inst.saddr.offset if hasattr(inst, "saddr") else None
        has_base = segment != "FLAT" and saddr not in (None, 124, 125, 127)
        own = 256 if getattr(inst, "acc", 0) else 0
        to = inst.vdst.offset + own
        data_field = inst.data if hasattr(inst, "data") else inst.vsrc
        vaddr = inst.addr if hasattr(inst, "addr") else inst.vaddr
        for lane in wave.active():
            if segment == "SCRATCH":
                at = offset + (wave.vector(vaddr.offset, 1, lane) if getattr(inst, "sve", 0) else 0) + (wave.s[saddr] if has_base else 0)
                memory, at = wave.private[lane], at & M32
            elif has_base:
                memory, at = None, (wave.scalar(saddr, 2, 0) + wave.vector(vaddr.offset, 1, lane) + offset) & M64
            else:
                memory, at = self.place(wave, lane, (wave.vector(vaddr.offset, 2, lane) + offset) & M64)
            self.access(wave, inst, name, lane, memory, at, to, data_field.offset + own)

    def access(self, wave, inst, name, lane, memory, at, to, data):
        if "_LOAD_" in name:
            kind = name.split("_LOAD_")[1]
            if half := re.match(r"(SHORT|UBYTE|SBYTE)?_?D16_?(HI_)?(U8|I8|B16)?(_HI)?$|D16_(HI_)?(U8|I8|B16)$", kind):
                part = half[3] or half[6] or {"SHORT": "B16", "UBYTE": "U8", "SBYTE": "I8"}.get(half[1])
                value = self.load(memory, at, SIZES[part])
                value = pcode.signed(value, 8) & 0xffff if part == "I8" else value
                old = wave.vector(to, 1, lane)
                wave.set_vector(to, 1, lane, old & 0xffff | value << 16 if "HI" in kind else old & 0xffff0000 | value)
                return
            if kind not in SIZES:
                raise Unknown(name)
            size = SIZES[kind]
            value = self.load(memory, at, size)
            if kind in ("I8", "I16", "SBYTE", "SSHORT"):
                value = pcode.signed(value, 8 * size) & M32
            wave.set_vector(to, max(1, size // 4), lane, value)
        elif "_STORE_" in name:
            kind = name.split("_STORE_")[1]
            shift = 16 if "HI" in kind else 0
            kind = re.sub(r"_?D16_?(HI_?)?", "", kind)
            if kind not in SIZES:
                raise Unknown(name)
            size = SIZES[kind]
            self.store(memory, at, size, wave.vector(data, max(1, size // 4), lane) >> shift)
        elif "_ATOMIC_" in name:
            count = 2 if re.search(r"(64|X2)$", name) else 1
            value, other = wave.vector(data, count, lane), 0
            if "CMPSWAP" in name:
                other = wave.vector(data + count, count, lane)
            old = self.update(name, memory, at, value, other)
            if getattr(inst, "sc0", 0) or getattr(inst, "glc", 0) or getattr(inst, "th", 0) & 1:
                wave.set_vector(to, count, lane, old)
        else:
            raise Unknown(name)

    def run_DS(self, wave, inst, name):
        name = name.replace("DS_READ", "DS_LOAD").replace("DS_WRITE", "DS_STORE").replace("LOAD2ST64", "LOAD_2ADDR_STRIDE64").replace(
            "STORE2ST64", "STORE_2ADDR_STRIDE64").replace("LOAD2_", "LOAD_2ADDR_").replace("STORE2_", "STORE_2ADDR_")
        if name == "DS_BPERMUTE_B32":
            values = {lane: wave.vector(inst.data0.offset, 1, lane) for lane in wave.active()}
            for lane in wave.active():
                other = (wave.vector(inst.addr.offset, 1, lane) + inst.offset0) // 4 % wave.lanes
                wave.set_vector(inst.vdst.offset, 1, lane, values.get(other, 0))
            return
        for lane in wave.active():
            base, shared = wave.vector(inst.addr.offset, 1, lane), wave.block.shared
            if "_2ADDR_" in name:
                size = SIZES[name.split("_")[-1]]
                step = size * (64 if "STRIDE64" in name else 1)
                for k, offset in enumerate((inst.offset0, inst.offset1)):
                    if "LOAD" in name:
                        wave.set_vector(inst.vdst.offset + k * size // 4, size // 4, lane, self.load(shared, base + offset * step, size))
                    else:
                        data = inst.data1 if k else inst.data0
                        self.store(shared, base + offset * step, size, wave.vector(data.offset, size // 4, lane))
                continue
            at = (base + inst.offset0 + 256 * inst.offset1) & M32
            if "_LOAD_" in name or "_STORE_" in name:
                self.access(wave, inst, name, lane, shared, at, inst.vdst.offset, inst.data0.offset)
                continue
            count = 2 if name.endswith("64") else 1
            data, other = wave.vector(inst.data0.offset, count, lane), wave.vector(inst.data1.offset, count, lane)
            if "CMPST_" in name:  # before gfx11 what is compared comes first
                data, other = other, data
            old = self.update(name, shared, at, data, other)
            if "_RTN" in name:
                wave.set_vector(inst.vdst.offset, count, lane, old)

    def run_MUBUF(self, wave, inst, name):
        """Of caches."""
        if not re.match(r"BUFFER_(INV|WBL2|GL\d?_?INV|GL_INV)", name):
            raise Unknown(name)
