"""`x.has_grad`, which Quadrants calls and Taichi reads."""

from __future__ import annotations

class Answer(int):
    """True or False; calling it gives it as a `bool`."""

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))

    __str__ = __repr__
