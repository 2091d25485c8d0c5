"""How far long work has come: on a terminal, or where `progress=True` asks for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from costate import _core

#: Seconds. Shorter work shows nothing unless it is asked for; between two looks; after which kernels are counted anew.
DELAY, INTERVAL, PAUSE = 1.0, 0.1, 5.0


class Line:
    """A line of text, where `tqdm` is not installed; it has what is used of that."""

    def __init__(self, desc: str, total: int | None, unit: str, postfix: str) -> None:
        self.desc, self.total, self.unit, self.postfix = desc, total, unit, postfix
        self.n, self.start_t = 0, 0.0

    def _text(self) -> str:
        if self.total is None:
            return f"{self.desc}: {self.n} {self.unit}, {self.postfix}"
        filled = 40 * self.n // max(self.total, 1)
        return f"{self.desc} [{'#' * filled}{'.' * (40 - filled)}] {self.n} of {self.total} {self.unit}"

    def set_postfix_str(self, text: str) -> None:
        self.postfix = text
        self.refresh()

    def refresh(self) -> None:
        sys.stderr.write(f"\r\x1b[K{self._text()}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K" if self.total is None else "\n")
        sys.stderr.flush()


def _line(desc: str, total: int | None, unit: str, start: float, done: int = 0, postfix: str = "") -> Any:
    """By tqdm where it is installed. Without a total it vanishes when it is closed."""
    try:
        from tqdm import tqdm
    except ImportError:
        line: Any = Line(desc, total, unit, postfix)
    else:
        known = "{percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt} " + unit + " [{elapsed}<{remaining}]"
        count = "{n_fmt} " + unit + " [{elapsed}{postfix}]"
        line = tqdm(desc=desc, total=total, leave=total is not None, postfix=postfix, delay=1e-9, file=sys.stderr,
                    bar_format="{desc}: " + (count if total is None else known))
    line.n, line.start_t = done, start
    line.refresh()
    return line


def is_wanted(option: Any = None) -> bool:
    """Whether work shows how far it is; `option`: of the work, True or False, else on a terminal only."""
    if option is None:
        return sys.stderr is not None and sys.stderr.isatty()
    return bool(option)


class Bar:
    """Of work whose amount is known."""

    def __init__(self, desc: str, unit: str, delay: float) -> None:
        self.desc, self.unit, self.delay = desc, unit, delay
        self.start = time.time()
        self.line: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self.line is None:
            if time.time() - self.start < self.delay:
                return
            self.line = _line(self.desc, total, self.unit, self.start, done)
            return
        self.line.n = done
        self.line.refresh()

    def close(self) -> None:
        if self.line is not None:
            self.line.close()


@contextmanager
def bar(desc: str, unit: str, option: Any) -> Iterator[Callable[[int, int], None] | None]:
    """What is to be called with what is done, and of how much; None if nobody looks."""
    if not is_wanted(option):
        yield None
        return
    made = Bar(desc, unit, 0 if option else DELAY)
    try:
        yield made
    finally:
        made.close()


class Compilations:
    """One line for all kernels that are compiled, on any thread; it is there while that lasts."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.option: bool | None = None
        self.running: dict[int, str] = {}     # the kernel that a thread compiles
        self.count, self.spent, self.start, self.end = 0, 0.0, 0.0, 0.0
        self.line: Any = None
        self.timer: threading.Timer | None = None

    def __call__(self, kernel: str, begins: bool) -> None:
        if not is_wanted(self.option):
            return
        with self.lock:
            (self._begin if begins else self._end)(kernel)

    def _begin(self, kernel: str) -> None:
        if not self.running:
            self.start = time.time()
            if self.start - self.end > PAUSE:
                self.count, self.spent = 0, 0.0
        self.running[threading.get_ident()] = kernel
        if self.option or self.spent > DELAY:
            self._show()
        elif self.timer is None:
            self.timer = threading.Timer(DELAY - self.spent, self._show_later)
            self.timer.daemon = True
            self.timer.start()

    def _show_later(self) -> None:
        with self.lock:
            if self.running:
                self._show()

    def _show(self) -> None:
        names = ", ".join(dict.fromkeys(self.running.values()))
        if self.line is None:
            self.line = _line("compiling kernels", None, "done", self.start - self.spent, self.count, names)
            return
        self.line.n = self.count
        self.line.set_postfix_str(names)

    def _end(self, kernel: str) -> None:
        self.running.pop(threading.get_ident(), None)
        self.count += 1
        if self.running:
            return
        self.end = time.time()
        self.spent += self.end - self.start
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.line is not None:
            self.line.close()
            self.line = None


compilations = Compilations()


def watch(option: bool | None) -> None:
    """From here on, as `init(progress=option)` says."""
    compilations.option = option
    if is_wanted(option):
        _core._watch_compilation(compilations)
