"""Takes out of a program what the language of Python does not have."""

from programs.nodes import atom, first_statement, make

DROPPED = {"print", "assert", "local", "put", "bump"}
ONE = {"sum", "sums", "least", "most", "argmin", "argmax", "philox", "get"}


class Pruning:
    """`Pruning().program(node)`; `dropped` says what has been taken out."""

    def __init__(self):
        self.dropped = set()

    def program(self, node):
        return self.block(node, 0)

    def block(self, node, depth):
        first = first_statement(node)
        body = [one for child in node.children[first:]
                if not self.drops(child, depth) for one in self.statements(child, depth)]
        return make(node.text, *map(self.value, node.children[:first]), *body)

    def drops(self, node, depth):
        what = "driven" if node.text == "range" and depth > 0 else node.text
        if what in DROPPED or what == "driven":
            self.dropped.add(what)
            return True
        return False

    def statements(self, node, depth):
        return self.called(node, depth) if node.text == "called" else [self.statement(node, depth)]

    def called(self, node, depth):
        """What a function does when it is called twice."""
        self.dropped.add("called")
        total, value, *rest = node.children
        once = [self.block(make("then", *rest, make(change, total, value)), depth + 1)
                for change in ("set", "add")]
        return [make("var", total, atom("f64"), atom("0.0")),
                *(make("if", atom("true"), then) for then in once)]

    def statement(self, node, depth):
        if first_statement(node) is None:
            return self.value(node)
        return self.block(node, depth + 1)

    def value(self, node):
        """Any other value of the type will do."""
        if not node.is_list:
            return node
        if node.text in ONE:
            self.dropped.add(node.text)
            return atom(1)
        if node.text == "fetch" and node[0].text in ("exchange", "compare"):
            self.dropped.add(node[0].text)
            values = 2 if node[0].text == "compare" else 1
            return self.value(make("load", *node.children[1:len(node) - values]))
        return make(node.text, *map(self.value, node.children))
