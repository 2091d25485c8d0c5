"""The vendor's pseudocode of an instruction as a Python function.

`tinygrad` ships the text (PCODE); here it is parsed. Values are whole numbers, the bits of a register, until `.f64` and the like make
numbers of them. A function gets a State and changes it.
"""

import math
import re
import struct
from fractions import Fraction

TOKEN = re.compile(r"""\s*(?:
    (?P<cast>\d+'[UIFB](?=\())|
    (?P<sized>\d+'-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?)[A-Z]*)|
    (?P<number>0x[0-9a-fA-F]+(?:ULL|LL|U)?|\d+\.\d+F?|\d+(?:ULL|LL|U|L)?)|
    (?P<name>[A-Za-z_][A-Za-z_0-9]*)|
    (?P<sign>\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\|=|&=|[-+*/%&|^~!<>?:=.,;(){}\[\]])
)""", re.X)
BITS = {"u1": 1, "b1": 1, "u4": 4, "u8": 8, "b8": 8, "u16": 16, "b16": 16, "u24": 24, "u32": 32, "b32": 32, "u64": 64, "b64": 64,
        "b128": 128, "b96": 96}
SIGNED = {"i8": 8, "i16": 16, "i24": 24, "i32": 32, "i64": 64}
FLOATS = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def of_bits(value, kind):
    number, raw = FLOATS[kind]
    return struct.unpack(number, struct.pack(raw, value & ((1 << (8 * struct.calcsize(raw))) - 1)))[0]


def to_bits(value, kind):
    number, raw = FLOATS[kind]
    try:
        return struct.unpack(raw, struct.pack(number, value))[0]
    except OverflowError:
        return struct.unpack(raw, struct.pack(number, math.copysign(math.inf, value)))[0]


def member(value, kind):
    if kind in FLOATS:
        return value if isinstance(value, float) else of_bits(value, kind)
    if isinstance(value, float):
        value = to_bits(value, "f64" if "64" in kind else "f32")
    return signed(value, SIGNED[kind]) if kind in SIGNED else int(value) & ((1 << BITS[kind]) - 1)


def divide(a, b):
    if not isinstance(a, float) and not isinstance(b, float):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    a, b = float(a), float(b)
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def power(a, b):
    return 2 ** b if isinstance(b, int) and b >= 0 and a == 2 else float(a) ** b if -1000 < b < 1000 else math.inf if b > 0 else 0.0


def ldexp(a, b):
    """Rounded once: `a * 2.0 ** b` of the text means this."""
    if a == 0 or not math.isfinite(a):
        return a
    try:
        return math.ldexp(a, b)
    except OverflowError:
        return math.copysign(math.inf, a)


def fma(a, b, c):
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a * b == 0 or c == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fma32(a, b, c):
    """To 24 bits at once."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = fma(a, b, c)
    single = of_bits(to_bits(near, "f32"), "f32")
    if not math.isfinite(single) or Fraction(near) == exact or near == single:
        return near
    # Twice rounded may differ where the first one lands between two numbers.
    return math.nextafter(near, math.inf if Fraction(near) < exact else -math.inf)


def whole(value, function):
    return function(value) if math.isfinite(value) else value


def to_int(value, low, high):
    if value != value:
        return 0
    return low if value <= low else high if value >= high else int(value)


def bits(value, high, low):
    if high >= low:
        return value >> low & ((1 << (high - low + 1)) - 1)
    return int(f"{bits(value, low, high):0{low - high + 1}b}"[::-1], 2)


def is_denormal(value, kind):
    return value != 0 and exponent(value, kind) == 0


def mantissa(value):
    return math.frexp(value)[0]


def choose(function, kind):
    def run(*values):
        numbers = [x for x in values if x == x] or values[:1]
        return function(numbers)
    return run


def exponent(value, kind):
    return to_bits(value, kind) >> (52 if kind == "f64" else 23) & (2047 if kind == "f64" else 255)


FUNCTIONS = {
    "isNAN": lambda x: x != x, "isQuietNAN": lambda x: x != x, "isSignalNAN": lambda x: False, "cvtToQuietNAN": lambda x: x,
    "sign": lambda x: int(math.copysign(1, x) < 0), "abs": abs, "fma": fma, "ldexp": ldexp,
    "trunc": lambda x: whole(x, lambda v: math.copysign(float(math.trunc(v)), v)),
    "floor": lambda x: whole(x, lambda v: math.copysign(float(math.floor(v)), v)),
    "ceil": lambda x: whole(x, lambda v: math.copysign(float(math.ceil(v)), v)),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 or x == 0 else math.nan,
    "f32_to_f64": float, "f64_to_f32": lambda x: of_bits(to_bits(x, "f32"), "f32"), "f32_to_f16": float, "f16_to_f32": float,
    "u32_to_f64": float, "i32_to_f64": float, "u32_to_f32": float, "i32_to_f32": float,
    "f64_to_u32": lambda x: to_int(x, 0, 2 ** 32 - 1), "f32_to_u32": lambda x: to_int(x, 0, 2 ** 32 - 1),
    "f64_to_i32": lambda x: to_int(x, -2 ** 31, 2 ** 31 - 1), "f32_to_i32": lambda x: to_int(x, -2 ** 31, 2 ** 31 - 1),
    "u16_to_f16": float, "i16_to_f16": float, "f16_to_u16": lambda x: to_int(x, 0, 2 ** 16 - 1),
    "f16_to_i16": lambda x: to_int(x, -2 ** 15, 2 ** 15 - 1), "signext": lambda x: x, "bits": bits, "mantissa": mantissa,
    "signext_from_bit": lambda x, count: signed(x, count) if count else 0, "isEven": lambda x: x % 2 == 0,
    "fract": lambda x: x - math.floor(x) if math.isfinite(x) else math.nan, "pow": lambda x, y: power(x, y),
    "sin": math.sin, "cos": math.cos,
    **{f"v_{name}{count}_{kind}": choose(function, kind) for name, function in (("min", min), ("max", max)) for count in ("", "3")
       for kind in ("i32", "u32", "f32", "f64", "i16", "u16", "f16", "num_f16", "num_f32", "num_f64")},
    "log2": lambda x: math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan, "min": min, "max": max,
}
CONSTANTS = {"INF": math.inf, "NAN": math.nan, "PI": math.pi, "OVERFLOW_F64": math.inf, "UNDERFLOW_F64": 0.0, "OVERFLOW_F32": math.inf,
             "UNDERFLOW_F32": 0.0}


class Parser:
    """Python source of a text. Variables that are not its own are members of `m`."""

    def __init__(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        self.tokens = [(kind, value) for match in TOKEN.finditer(text) for kind, value in match.groupdict().items() if value]
        self.at, self.lines, self.indent, self.locals = 0, [], 1, set()

    def peek(self, offset=0):
        return self.tokens[self.at + offset][1] if self.at + offset < len(self.tokens) else None

    def take(self, expected=None):
        value = self.tokens[self.at][1]
        if expected is not None and value != expected:
            raise SyntaxError(f"{expected} expected, not {value}")
        self.at += 1
        return value

    def emit(self, line):
        self.lines.append("    " * self.indent + line)

    def source(self):
        while self.peek() is not None:
            self.statement()
        return "def run(m):\n" + "\n".join(self.lines or ["    pass"])

    def block(self, *ends):
        self.indent += 1
        before = len(self.lines)
        while self.peek() not in ends:
            self.statement()
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1

    def statement(self):
        token = self.peek()
        if token == ";":
            self.take()
        elif token == "declare":
            while self.peek() not in (";", None):
                self.take()
        elif token == "if":
            self.take()
            self.emit(f"if {self.expression()}:")
            self.take("then")
            self.block("elsif", "else", "endif")
            while self.peek() == "elsif":
                self.take()
                self.emit(f"elif {self.expression()}:")
                self.take("then")
                self.block("elsif", "else", "endif")
            if self.peek() == "else":
                self.take()
                self.emit("else:")
                self.block("endif")
            self.take("endif")
        elif token == "for":
            self.take()
            name = self.take()
            self.locals.add(name)
            self.take("in")
            low = self.expression()
            self.take(":")
            high = self.expression()
            self.take("do")
            self.emit(f"for {name} in range({low}, {high} + 1):")
            self.block("endfor")
            self.take("endfor")
        elif token == "break":
            self.take()
            self.emit("break")
        else:
            self.assignment()

    def assignment(self):
        if self.peek() == "{":
            self.take()
            if "".join(self.take() for _ in range(9)) not in ("D1.u1,D0.u64}=", "D1.i1,D0.i64}="):
                raise SyntaxError("another pair of results")
            self.emit(f"wide = {self.expression()}")
            self.emit("m.D0, m.D1 = wide & (1 << 64) - 1, wide >> 64 & 1")
            return
        name = self.take()
        kind, index = None, None
        while self.peek() in (".", "["):
            if self.take() == ".":
                kind = self.take()
            else:
                high = self.expression()
                if self.peek() == ":":
                    self.take()
                    index = (high, self.expression())
                else:
                    index = (high, high)
                self.take("]")
        operator = self.take()
        value = self.expression() if not self.is_chain() else self.chain()
        outer = name in ("D0", "D1", "VCC", "EXEC", "SCC", "PC")
        place = f"m.{name}" if outer else name
        if not outer:
            self.locals.add(name)
        if operator != "=":
            old = f"member({place}, '{kind}')" if kind else place
            value = f"({old} {operator[:-1]} ({value}))"
        if kind in FLOATS:
            value = f"to_bits({value}, '{kind}')" if outer or index else f"float({value})"
        elif kind:
            value = f"member(int({value}), '{kind}')"
        if index and "laneId" in index[0]:
            self.emit(f"m.both = int({value})")
            self.emit(f"m.set_lane('{name}', m.both)")
        elif index:
            self.emit(f"{place} = deposit({place}, {index[0]}, {index[1]}, int({value}))")
        else:
            self.emit(f"{place} = {value}")

    def is_chain(self):
        """`EXEC.u64[laneId] = D0.u64[laneId] = ...`"""
        return [self.peek(k) for k in range(7)] == ["D0", ".", "u64", "[", "laneId", "]", "="]

    def chain(self):
        self.assignment()
        return "m.both"

    def expression(self):
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        then = self.expression()
        self.take(":")
        return f"({then} if {condition} else {self.expression()})"

    LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"), ("**",))
    PYTHON = {"||": "or", "&&": "and", "<>": "!="}

    def binary(self, level):
        if level == len(self.LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in self.LEVELS[level]:
            operator = self.take()
            right = self.binary(level + 1)
            if operator == "/":
                left = f"divide({left}, {right})"
            elif operator == "**":
                left = f"power({left}, {right})"
            elif operator == "*" and right.startswith("power(2.0, "):
                left = f"ldexp({left}, {right[11:-1]})"
            elif operator == "==" and "m.DENORM" in right:
                left = f"is_denormal({left}, '{right[-5:-2]}')"
            else:
                left = f"({left} {self.PYTHON.get(operator, operator)} {right})"
        return left

    def unary(self):
        if self.peek() in ("-", "+", "~", "!"):
            operator = self.take()
            operand = self.unary()
            return f"(not {operand})" if operator == "!" else f"({operator}{operand})"
        return self.postfix()

    def postfix(self):
        value = self.primary()
        while self.peek() in (".", "["):
            if self.take() == ".":
                value = f"member({value}, '{self.take()}')"
                continue
            high = self.expression()
            low = high
            if self.peek() == ":":
                self.take()
                low = self.expression()
            self.take("]")
            value = f"({value} >> {low} & 1)" if low == high else f"FUNCTIONS['bits']({value}, {high}, {low})"
        return value

    def primary(self):
        kind, token = self.tokens[self.at]
        self.at += 1
        if token == "(":
            value = self.expression()
            self.take(")")
            return f"({value})"
        if token == "{":
            parts = []
            while True:
                width = int(self.peek().split("'")[0]) if "'" in self.peek() else None
                part = self.expression()
                parts.append((part, width or int(re.search(r"'[ubif](\d+)'\)$", part)[1])))
                if self.take() == "}":
                    break
            code = "0"
            for part, width in parts:
                code = f"({code} << {width} | member(int({part}), 'u{width}'))"
            return code
        if kind == "cast":
            bits, cast = token.split("'")
            self.take("(")
            value = self.expression()
            self.take(")")
            if cast == "F":
                return f"member({value}, 'f{bits}')"
            return f"signed(int({value}), {bits})" if cast == "I" else f"(int({value}) & {(1 << int(bits)) - 1})"
        if kind == "sized":
            return re.sub(r"[A-Z]+$", "", token.split("'")[1])
        if kind == "number":
            return token.rstrip("ULLF") if not token.startswith("0x") else re.sub(r"(ULL|LL|U)$", "", token)
        if self.peek() == "(":
            self.take()
            arguments = []
            while self.peek() != ")":
                arguments.append(self.expression())
                if self.peek() == ",":
                    self.take()
            self.take(")")
            if token == "exponent":
                return f"exponent({arguments[0]}, '{'f64' if 'f64' in arguments[0] else 'f32'}')"
            if token == "fma" and "f32" in arguments[0]:
                return f"fma32({', '.join(arguments)})"
            if token not in FUNCTIONS:
                raise SyntaxError(f"no function {token}")
            return f"FUNCTIONS['{token}']({', '.join(arguments)})"
        if token in self.locals:
            return token
        if token in CONSTANTS:
            return f"CONSTANTS['{token}']"
        return f"m.{token}"


def deposit(value, high, low, part):
    mask = (1 << (high - low + 1)) - 1
    return value & ~(mask << low) | (part & mask) << low


def compiled(text):
    source = Parser(text).source()
    names = dict(FUNCTIONS=FUNCTIONS, CONSTANTS=CONSTANTS, member=member, to_bits=to_bits, signed=signed, divide=divide, power=power, ldexp=ldexp,
                 fma32=fma32, exponent=exponent, deposit=deposit, is_denormal=is_denormal)
    exec(source, names)
    return names["run"]
