"""`i`, `ij`, `ijk`, ...: the axes of fields."""

from itertools import combinations as _combinations

from costate.lang.data.snode import Axis as _Axis

_axes = {name: _Axis(number) for number, name in enumerate("ijkl")}
for _n in range(1, 5):
    for _names in _combinations("ijkl", _n):
        globals()["".join(_names)] = (_axes[_names[0]] if _n == 1 else
                                      [_axes[_name] for _name in _names])

__all__ = [_name for _name in list(globals()) if not _name.startswith("_")]
