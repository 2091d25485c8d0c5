"""The source text of a kernel of Python for a program.

Every operation has operands of one type, as in the program, so that no rule of promotion has a
say: what is compared is what the front end makes of syntax.
"""

from costate import _core
from programs.nodes import first_statement

ARRAYS = {"x": ("f64", 1), "y": ("f64", 1), "z": ("f64", 1), "u": ("f64", 2), "v": ("f64", 2),
          "out": ("f64", 1), "s": ("f64", 0), "a": ("f32", 1), "b": ("f32", 1), "m": ("i32", 1),
          "n": ("i32", 1), "g": ("i64", 1), "h": ("u32", 1), "w": ("u64", 1), "c": ("u1", 1),
          "d": ("i8", 1), "e": ("i16", 1), "o": ("u8", 1), "r": ("u16", 1), "f": ("f16", 1),
          "l": ("f16", 1)}

NARROW = ("i8", "i16", "u8", "u16")
INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<",
         "shr": ">>"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
OF_FLOATS = [op.name for op, _, _ in _core.functions()]
FUNCTIONS = {name: name for name in (
    *"min max abs floor ceil round trunc sqrt fma popcnt clz select".split(), *OF_FLOATS)}
FUNCTIONS |= {"rem": "raw_mod", "fmod": "raw_mod", "div": "raw_div", "clamp": "clamp"}
TENSORS = {"vplus": "({} + {})", "vminus": "({} - {})", "vtimes": "({} * {})",
           "vscale": "({} * {})", "cross": "{}.cross({})", "vsin": "sin({})",
           "vmax": "max({}, {})", "vunit": "tamed({})", "vselect": "select({}, {}, {})",
           "swizzle": "rotated({})", "vec3": "Vector([{}, {}, {}], ti.f64)",
           "mat4": "Matrix([[{}, {}], [{}, {}]], ti.f64)", "mplus": "({} + {})", "mm": "({} @ {})",
           "mscale": "({} * {})", "transpose": "{}.transpose()", "outer": "outer({}, {})",
           "mselect": "select({}, {}, {})", "mtame": "tamed({})", "dot": "{}.dot({})",
           "norm": "{}.norm()", "norm2": "{}.norm_sqr()", "vsum": "{}.sum()",
           "det": "{}.determinant()", "trace": "{}.trace()", "comp": "{}[{}]",
           "entry": "{}[{}, {}]"}
KINDS = {"vplus": "vv", "vminus": "vv", "vtimes": "vv", "vscale": "ev", "cross": "vv", "vsin": "v",
         "vmax": "vv", "vunit": "v", "vselect": "cvv", "swizzle": "v", "vec3": "eee",
         "mat4": "eeee", "mplus": "vv", "mm": "vv", "mscale": "ve", "transpose": "v",
         "outer": "vv", "mselect": "cvv", "mtame": "v", "dot": "vv", "norm": "v", "norm2": "v",
         "vsum": "v", "det": "v", "trace": "v", "comp": "vi", "entry": "vii"}

HEAD = '''
@func
def tamed(whole):
    return whole / (cast(1.0, ti.f64) + whole.norm())

@func
def rotated(a):
    return Vector([a[2], a[0], a[0]], ti.f64)

@func
def outer(a, b):
    return Vector([a[0], a[1]], ti.f64).outer_product(Vector([b[2], b[1]], ti.f64))

@kernel
def random('''


class Source:
    """`Source().program(node)` is the text of the kernel `random`."""

    def __init__(self):
        self.lines = []
        self.indent = 1
        self.types = {"p": "f64", "q": "i32"}  # of names
        self.fresh = 0

    def program(self, node):
        parameters = [f"{name}: NDArray[ti.{dtype}, {rank}]" for name, (dtype, rank) in ARRAYS.items()]
        self.statements(node, serial=True)
        return (HEAD + ", ".join([*parameters, "p: ti.f64", "q: ti.i32"]) + "):\n"
                + "\n".join(self.lines) + "\n")

    # -- statements ----------------------------------------------------------------

    def line(self, text):
        self.lines.append("    " * self.indent + text)

    def statements(self, node, serial=False, first=None):
        outer = dict(self.types)
        before = len(self.lines)
        for child in node.children[first_statement(node) if first is None else first:]:
            self.statement(child, serial)
        if len(self.lines) == before:
            self.line("pass")
        self.types = outer

    def statement(self, node, serial):
        method = getattr(self, "do_" + node.text.rstrip("_"), None)
        if method is None:
            raise ValueError(f"not understood: {node}")
        if node.text in ("range", "for", "while", "decay", "if"):
            method(node, serial)
        else:
            method(node)

    def body(self, node, *bound):
        """A block that binds the indices `bound`."""
        self.indent += 1
        outer = dict(self.types)
        self.types |= {name: "i64" for name in bound}
        self.statements(node)
        self.types = outer
        self.indent -= 1

    def do_range(self, node, _):
        head = node[0]
        names = [head.text, *(c.text for c in head.children[1::2])]
        extents = [self.value(c, "i64") for c in head.children[0::2]]
        if len(names) == 1:
            self.line(f"for {names[0]} in range({extents[0]}):")
        else:
            self.line(f"for {', '.join(names)} in ndrange({', '.join(extents)}):")
        self.body(node, *names)

    def do_for(self, node, serial):
        bounds = ", ".join(self.value(c, "i64") for c in node.children[1:4])
        if serial:
            self.line("loop_config(serialize=True)")
        self.line(f"for {node[0].text} in range({bounds}):")
        self.body(node, node[0].text)

    def do_while(self, node, _):
        iterations, most = self.name("iterations"), self.name("most")
        self.line(f"{iterations} = cast(0, ti.i32)")
        self.line(f"{most} = {self.value(node[0], 'i32')}")
        self.line(f"while ({iterations} < {most}) & {self.value(node[1], 'u1')}:")
        self.indent += 1
        self.line(f"{iterations} += cast(1, ti.i32)")
        self.statements(node)
        self.indent -= 1

    def do_decay(self, node, _):
        v, limit = self.name("v"), self.name("limit")
        self.line(f"{v} = min(abs({self.value(node[0], 'f64')}), cast(3.0, ti.f64))")
        self.line(f"{limit} = {self.value(node[1], 'f64')}")
        self.line(f"while {v} > {limit}:")
        self.indent += 1
        self.line(f"{v} *= cast(0.6, ti.f64) - cast(0.01, ti.f64) * {v}")
        self.set_decaying(v)
        self.statements(node)
        self.indent -= 1
        self.set_decaying(v)

    def set_decaying(self, value):
        if self.types.get("decaying") == "f64":
            self.line(f"decaying = {value}")

    def do_if(self, node, _):
        self.line(f"if {self.value(node[0], 'u1')}:")
        self.indent += 1
        if len(node) > 1:
            self.statements(node[1], first=0)
        else:
            self.line("pass")
        self.indent -= 1
        for branch in node.children[2:]:
            is_elif = branch.text == "elif"
            self.line(f"elif {self.value(branch[0], 'u1')}:" if is_elif else "else:")
            self.indent += 1
            self.statements(branch)
            self.indent -= 1

    def do_let(self, node):
        self.line(f"{node[0].text} = {self.value(node[1], 'i64')}")
        self.types[node[0].text] = "i64"

    def do_break(self, _):
        self.line("break")

    def do_continue(self, _):
        self.line("continue")

    def do_return(self, _):
        self.line("return")

    def do_var(self, node):
        dtype = dtype_named(node[1].text)
        self.line(f"{node[0].text} = {self.value(node[2], dtype)}")
        self.types[node[0].text] = dtype

    def assign(self, node, symbol):
        name = node[0].text
        self.line(f"{name} {symbol} {self.value(node[1], self.types[name])}")

    def do_set(self, node):
        self.assign(node, "=")

    def do_add(self, node):
        self.assign(node, "+=")

    def do_scale(self, node):
        self.assign(node, "*=")

    def do_store(self, node):
        self.write(node, "=")

    def do_update(self, node):
        self.write(node, "+=")

    def write(self, node, symbol):
        """The indices come first, as in C++."""
        array, *indices, value = node.children
        names = []
        for index in indices:
            names.append(self.value(index, "i64"))
            if index.is_list:
                name = self.name("at")
                self.line(f"{name} = {names[-1]}")
                names[-1] = name
        place = f"{array.text}[{', '.join(names) or None}]"
        self.line(f"{place} {symbol} {self.value(value, ARRAYS[array.text][0])}")

    def do_vec(self, node):
        self.line(f"{node[0].text} = {self.tensor(node[1])}")

    do_mat = do_vset = do_mset = do_vec

    def do_vadd(self, node):
        self.line(f"{node[0].text} += {self.tensor(node[1])}")

    do_madd = do_vadd

    def do_vput(self, node):
        indices = ", ".join(self.value(c, "i64") for c in node.children[1:-1])
        self.line(f"{node[0].text}[{indices}] = {self.value(node.children[-1], 'f64')}")

    do_mput = do_vput

    def name(self, base):
        self.fresh += 1
        return f"{base}_{self.fresh}"

    # -- values --------------------------------------------------------------------

    def element(self, parts):
        indices = ", ".join(self.value(c, "i64") for c in parts[1:])
        return f"{parts[0].text}[{indices or None}]"

    def value(self, node, dtype):
        if not node.is_list:
            return self.leaf(node.text, dtype)
        head = node.text
        if head in KINDS:
            return self.tensor(node)
        if head == "load":
            return self.element(node.children)
        if head == "cast":
            return f"cast({self.value(node[1], dtype_named(node[0].text))}, ti.{dtype})"
        if head in COMPARISONS:
            of = dtype_named(node[0].text)
            return f"({self.value(node[1], of)} {COMPARISONS[head]} {self.value(node[2], of)})"
        if head == "fetch":
            place = self.element(node.children[1:-1])
            return f"atomic_{node[0].text}({place}, {self.value(node.children[-1], dtype)})"
        if head == "idx":
            return f"abs(raw_mod({self.value(node[1], dtype)}, {self.value(node[0], dtype)}))"
        if head == "size":
            return "cast(x.shape[0], ti.i64)"
        text = self.operation(node, dtype)
        # As in C, arithmetic on narrow integers is that of i32; counts of bits are i32.
        return f"cast({text}, ti.{dtype})" if dtype in NARROW or head in ("popcnt", "clz") else text

    def operation(self, node, dtype):
        head = node.text
        operands = [self.value(c, "u1" if head == "select" and k == 0 else dtype)
                    for k, c in enumerate(node.children)]
        if head == "neg":
            return f"(-{operands[0]})"
        if head == "not":
            return f"(~{operands[0]})"
        if head in INFIX:
            return f"({operands[0]} {INFIX[head]} {operands[1]})"
        return f"{FUNCTIONS[head]}({', '.join(operands)})"

    def leaf(self, text, dtype):
        if text in self.types:
            return text
        if dtype == "u1":
            return f"cast({text == 'true'}, ti.u1)"
        number = float(text)
        return f"cast({number if dtype[0] == 'f' else int(number)}, ti.{dtype})"

    def tensor(self, node):
        if not node.is_list:
            return node.text
        get = {"v": self.tensor, "e": lambda c: self.value(c, "f64"),
               "c": lambda c: self.value(c, "u1"), "i": lambda c: self.value(c, "i64")}
        operands = [get[kind](c) for kind, c in zip(KINDS[node.text], node.children)]
        return TENSORS[node.text].format(*operands)


def dtype_named(name):
    return "u1" if name == "bool" else name
