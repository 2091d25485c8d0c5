"""Programs as lists in parentheses, as `costate-fuzz --programs` prints them."""

from dataclasses import dataclass, field


@dataclass
class Node:
    """An atom has a text and no list; the head of a list is its text."""

    text: str
    children: list = field(default_factory=list)
    is_list: bool = False

    def __getitem__(self, at):
        return self.children[at]

    def __len__(self):
        return len(self.children)

    def __str__(self):
        if not self.is_list:
            return self.text
        return "(" + " ".join([self.text, *map(str, self.children)]) + ")"


def atom(text):
    return Node(str(text))


def make(head, *children):
    return Node(head, list(children), True)


def parse(text):
    """All programs in `text`."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()
    position = 0

    def one():
        nonlocal position
        token = tokens[position]
        position += 1
        if token != "(":
            return atom(token)
        node = Node(tokens[position], [], True)
        position += 1
        while tokens[position] != ")":
            node.children.append(one())
        position += 1
        return node

    programs = []
    while position < len(tokens):
        programs.append(one())
    return programs


BLOCKS = {"program": 1, "range": 1, "for": 4, "while": 2, "decay": 2, "if": 1, "then": 0,
          "elif": 1, "else": 0, "called": 2}


def first_statement(node):
    """The place of the first statement in a block; None for other nodes."""
    return BLOCKS.get(node.text) if node.is_list else None
