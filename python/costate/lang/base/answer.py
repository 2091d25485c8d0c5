"""`x.has_grad`, which Quadrants calls and Taichi reads."""


class Answer(int):
    """True or False; calling it gives it as a `bool`."""

    def __call__(self):
        return bool(self)

    def __repr__(self):
        return repr(bool(self))

    __str__ = __repr__
