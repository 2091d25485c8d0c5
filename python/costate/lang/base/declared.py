"""Between the declaration of fields and the first use of any."""

from __future__ import annotations

from costate.lang.base.hooks import Hooks

#: Whether fields have been declared since the last time.
pending = False
#: What happens then. It may use fields.
before_use = Hooks()


def declare() -> None:
    global pending
    pending = True


def use() -> None:
    """Outside of a trace, in front of what uses fields."""
    global pending
    if pending:
        pending = False
        before_use()
