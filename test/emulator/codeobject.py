"""Code objects for HSA: kernels, where their code is, and what they start with."""

import struct


class Kernel:
    def __init__(self, name, entry, descriptor):
        self.name, self.entry = name, entry
        self.shared, self.private, self.arguments = struct.unpack_from("<III", descriptor, 0)
        rsrc2, properties = struct.unpack_from("<I", descriptor, 52)[0], struct.unpack_from("<H", descriptor, 56)[0]
        self.user_registers = rsrc2 >> 1 & 31
        self.block_numbers = [axis for axis in range(3) if rsrc2 >> (7 + axis) & 1]
        names = (("buffer", 4, 0), ("dispatch", 2, 1), ("queue", 2, 2), ("arguments", 2, 3), ("id", 2, 4), ("scratch", 2, 5), ("size", 1, 6))
        self.places, at = {}, 0
        for name, count, bit in names:
            if properties >> bit & 1:
                self.places[name] = at
                at += count
        self.lanes = 32 if properties >> 10 & 1 else 64


class CodeObject:
    """Its segments in memory from `base` on."""

    def __init__(self, image, base):
        self.base = base
        table, = struct.unpack_from("<Q", image, 40)
        size, count = struct.unpack_from("<HH", image, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + size * k) for k in range(count)]
        headers, = struct.unpack_from("<Q", image, 32)
        header_size, header_count = struct.unpack_from("<HH", image, 54)
        self.bytes = bytearray()
        for k in range(header_count):
            kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from("<IIQQQQQQ", image, headers + header_size * k)
            if kind != 1:
                continue
            self.bytes.extend(bytes(max(0, address + in_memory - len(self.bytes))))
            self.bytes[address:address + in_file] = image[offset:offset + in_file]
        self.kernels = {}
        for _, kind, _, _, offset, length, link, _, _, entry in sections:
            if kind != 11:  # dynamic symbols
                continue
            names = sections[link][4]
            for at in range(offset, offset + length, entry):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, at)
                text = image[names + name:image.index(b"\0", names + name)].decode()
                if text.endswith(".kd"):
                    descriptor = self.bytes[value:value + 64]
                    start = value + struct.unpack_from("<q", descriptor, 16)[0]
                    self.kernels[text[:-3]] = Kernel(text[:-3], base + start, descriptor)
