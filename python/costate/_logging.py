"""`info`, `warn` and the like: the logger "costate" of Python's `logging`."""

from __future__ import annotations

import logging as _logging
from collections.abc import Callable
from typing import Any

TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL = "trace", "debug", "info", "warn", "error", "critical"
_LEVELS = {TRACE: 5, DEBUG: 10, INFO: 20, WARN: 30, ERROR: 40, CRITICAL: 50}
_logger = _logging.getLogger("costate")


def set_logging_level(level: str) -> None:
    """Logs messages of this level ("trace", "debug", "info", "warn", "error", "critical") and above."""
    _logger.setLevel(_LEVELS[level])


def is_logging_effective(level: str) -> bool:
    """Whether messages of this level are logged."""
    return _logger.isEnabledFor(_LEVELS[level])


def _log(level: str) -> Callable[..., Any]:
    def log(message: str, *args: Any, **options: Any) -> None:
        _logger.log(_LEVELS[level], str(message).format(*args, **options) if args or options else message)
    log.__name__ = log.__qualname__ = level
    log.__doc__ = f"Logs a message of level \"{level}\"; `{{}}` in it stand for the arguments."
    return log


def _get_logging(level: str) -> Callable[..., Any]:
    """The function that logs messages of a level."""
    return _log(level)


trace, debug, info, warn, error, critical = map(_log, _LEVELS)
warning = warn
