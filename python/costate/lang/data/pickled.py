"""Copies and pickles of fields and ndarrays: their values, gradients and tangents."""

from __future__ import annotations

from typing import Any

from costate.lang.data.storage import Storage


def contents(array: Any) -> dict[Any, Any]:
    """The elements of an array and of its companions, by their names."""
    found = {"": Storage.to_numpy(array)}
    for which in ("grad", "dual"):
        if getattr(array, f"needs_{which}"):
            found[which] = Storage.to_numpy(array.companion(which))
    return found


def rebuilt(make: type[Any], arguments: tuple[Any, ...], more: dict[Any, Any], found: dict[Any, Any]) -> Any:
    """The array whose `contents` are `found`."""
    array = make(*arguments)
    for name, value in more.items():
        setattr(array, name, value)
    for which, values in found.items():
        (array.companion(which) if which else array).from_numpy(values)
    return array


class Copied(Storage):
    """Base of arrays that are copied and pickled."""

    def _made_by(self) -> tuple[Any, Any, Any]:
        """What makes one of the same kind, with which arguments, and what it gets afterwards."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        return rebuilt, (*self._made_by(), contents(self))

    def __deepcopy__(self, memo: dict[Any, Any] | None = None) -> Any:
        made = rebuilt(*self._made_by(), {})
        made.copy_from(self)
        for which, values in contents(self).items():
            if which:
                made.companion(which).from_numpy(values)
        return made

    __copy__ = __deepcopy__


class CopiedCompanion(Copied):
    """A gradient or tangent is copied as an array of its own."""

    _strong: Any

    def _made_by(self) -> tuple[Any, Any, Any]:
        make, arguments, more = self._strong._made_by()
        return make, (self.dtype, *arguments[1:3]), more
