"""Costate: parallel kernels and their derivatives."""

import os as _os

from . import _core

_core._set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
__version__ = _core.__version__
