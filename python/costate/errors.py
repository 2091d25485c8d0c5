"""The exceptions of Costate.

One class for each code of the C++ library under `Error`, and the classes that
users of Quadrants and Taichi catch. The classes of the library derive from
those, so that both spellings catch the same errors.
"""

from __future__ import annotations as _annotations

from typing import Any as _Any

from costate import _core

Error = _core.Error


class CompilationError(Error):
    """The source of a kernel breaks a rule of the language."""


class QuadrantsSyntaxError(CompilationError, SyntaxError):
    """A construct of Python that kernels do not have."""

    def __init__(self, *args: _Any) -> None:
        super().__init__(*args)
        self.msg = str(args[0]) if args else ""   # what a traceback shows

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class RecursiveCall(QuadrantsSyntaxError):
    """Functions of a kernel that call each other without an end."""


class QuadrantsNameError(CompilationError, NameError):
    """A name that is not defined in the kernel."""


class QuadrantsIndexError(CompilationError, IndexError):
    """An index that does not fit its field or matrix."""


class KnownIndexError(QuadrantsIndexError, AssertionError):
    """An index outside of an array, on the host or known when a kernel is compiled: in debug mode of Quadrants a failed assertion."""


class QuadrantsTypeError(CompilationError, TypeError):
    """An operation on values of types that it is not made for."""


class ArgumentCountError(QuadrantsSyntaxError, QuadrantsTypeError):
    """A kernel or func is called with too few or too many arguments."""

    @classmethod
    def of(cls, name: str, error: TypeError) -> ArgumentCountError:
        """What Python says of a call, as Quadrants says it too."""
        text = str(error)
        for found, said in (("missing a required", "Missing argument"), ("too many", "Too many arguments"),
                            ("an unexpected", "Unexpected argument"), ("multiple values", "Multiple values for argument")):
            if found in text:
                argument = text[text.rindex(" '"):] if text.endswith("'") else ""
                return cls(f"{said}{argument}: `{name}()`: {text}")
        return cls(f"`{name}()`: {text}")


class QuadrantsRuntimeError(Error, RuntimeError):
    """Something went wrong while a kernel ran, or in a call from Python."""


class BadOrder(CompilationError, QuadrantsRuntimeError):
    """An order of axes that is not that of the shape."""


class QuadrantsAssertionError(QuadrantsRuntimeError, AssertionError):
    """An `assert` of a kernel does not hold, or a check of debug mode."""


class QuadrantsRuntimeTypeError(QuadrantsRuntimeError, TypeError, ValueError):
    """An argument of a kernel has the wrong type or shape."""


class BadArgument(_core.BadArgument, QuadrantsRuntimeError, TypeError):
    """Wrong number, dtype, rank, shape or device of arguments; overlap."""


class BadKernel(_core.BadKernel, CompilationError):
    """The kernel breaks a rule that only the compiler sees."""


class MissingGradient(_core.MissingGradient, CompilationError, QuadrantsRuntimeError):
    """A gradient or tangent that an array does not have."""


class NotDifferentiable(_core.NotDifferentiable, CompilationError, QuadrantsRuntimeError):
    """An operation on the way from input to output has no derivative."""


class CannotReplay(_core.CannotReplay, CompilationError, QuadrantsRuntimeError):
    """The gradient needs values that have been overwritten."""


class CannotCapture(_core.CannotCapture, QuadrantsRuntimeError):
    """A graph cannot repeat this."""


class OutOfRange(_core.OutOfRange, QuadrantsAssertionError):
    """An index outside an array, in debug mode: an "Out of bound access" of Quadrants."""

    def __init__(self, text: str = "", *more: _Any) -> None:
        super().__init__(text.replace(": index ", ": Out of bound access: index ", 1), *more)


class Race(_core.Race, QuadrantsAssertionError):
    """Work items of one range get in each other's way, in debug mode."""


class AssertionFailed(_core.AssertionFailed, QuadrantsAssertionError):
    """An `assert` in a kernel does not hold, in debug mode."""


class NotFinite(_core.NotFinite, QuadrantsAssertionError):
    """An operation gave inf or NaN, with `find_nan`."""


class OutOfMemory(_core.OutOfMemory, QuadrantsRuntimeError):
    """Memory of host or device is exhausted, or a limit is reached."""


class NoDevice(_core.NoDevice, QuadrantsRuntimeError):
    """A device, driver or feature is missing."""


class KernelFailed(_core.KernelFailed, QuadrantsRuntimeError):
    """Something else went wrong while a kernel ran."""


class BadFile(_core.BadFile, QuadrantsRuntimeError, OSError):
    """A file cannot be read or written, or has wrong contents."""


class RankLost(_core.RankLost, QuadrantsRuntimeError):
    """A rank of a distributed program has ended or left, or has not answered within the timeout."""


class Internal(_core.Internal, QuadrantsRuntimeError):
    """A defect of Costate itself."""

#: The class of each error code of the library.
BY_CODE = {
    c.__name__: c
    for c in (BadArgument, BadKernel, MissingGradient, NotDifferentiable, CannotReplay,
              CannotCapture, OutOfRange, Race, AssertionFailed, NotFinite, OutOfMemory,
              NoDevice, KernelFailed, BadFile, RankLost, Internal)
}

_core._set_error_classes(BY_CODE)

QuadrantsCompilationError = CompilationError

TaichiCompilationError = CompilationError
TaichiSyntaxError = QuadrantsSyntaxError
TaichiNameError = QuadrantsNameError
TaichiIndexError = QuadrantsIndexError
TaichiTypeError = QuadrantsTypeError
TaichiRuntimeError = QuadrantsRuntimeError
TaichiAssertionError = QuadrantsAssertionError
TaichiRuntimeTypeError = QuadrantsRuntimeTypeError

__all__ = [n for n in dir() if n.startswith(("Quadrants", "Taichi"))] + [
    "Error", "CompilationError", *BY_CODE]
