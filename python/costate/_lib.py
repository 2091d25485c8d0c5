"""What programs of Taichi ask of its core: which devices there are."""

from costate.lang.impl import Lib as _Lib

core = _Lib()
