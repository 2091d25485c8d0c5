"""What a trace has read of objects of Python: at the next launch they may have other members."""

import operator
import weakref
from collections import deque
from types import CodeType, FunctionType, ModuleType

import numpy as np

from costate.lang.matrix import Matrix

_PRIMITIVE = (int, float, str, bool, type(None), np.generic)
MOST_ENTRIES = 256   # of a list or dictionary that is watched as a whole


class Watch:
    """Collects what is read; `sealed()` can tell whether all of it is still there."""

    def __init__(self):
        self._members = {}   # id of an object -> (it, {name: value})
        self._parts = {}     # (id of a container, what of it) -> (it, a function that reads, what that gave)

    def attribute(self, owner, name, value):
        """`owner.name` was read."""
        if isinstance(owner, (ModuleType, Matrix, *_PRIMITIVE)) or _is_ours(owner):
            return
        if _is_stable(owner, name, value):
            self._members.setdefault(id(owner), (owner, {}))[1][name] = value
        self.contents(value)

    def presence(self, owner, name):
        """Whether there is an `owner.name` was asked."""
        if not isinstance(owner, (ModuleType, *_PRIMITIVE)) and not _is_ours(owner):
            self._parts[id(owner), f"has {name}"] = owner, lambda one: (hasattr(one, name),), (hasattr(owner, name),)

    def called(self, function, arguments):
        """A function of Python ran: what it may have read of objects are the members that its code names."""
        owner, function = getattr(function, "__self__", None), getattr(function, "__func__", function)
        for one in (owner, *arguments):
            if isinstance(one, np.ndarray) and one.size <= MOST_ENTRIES:
                self._parts[id(one), "all"] = one, _numbers, _numbers(one)
        if isinstance(function, FunctionType) and not (function.__module__ or "").startswith("costate."):
            reader = _Reader(self, _names_in(function, type(owner)))
            for one in (owner, *arguments):
                reader.read(one)

    def item(self, owner, index, value):
        """`owner[index]` was read."""
        if isinstance(owner, (list, dict)) or isinstance(owner, np.ndarray) and isinstance(value, np.generic):
            self._parts[id(owner), str(index)] = owner, lambda one: (one[index],), (value,)
            self.contents(value)

    def contents(self, value):
        """Anything may be done with a list, dictionary or vector while the kernel is compiled."""
        read = (_entries if isinstance(value, Matrix) else _of_dict if isinstance(value, dict) else
                _itself if isinstance(value, (list, set, deque)) else None)
        if read is not None and len(value) > MOST_ENTRIES:
            read = _length
        if read is not None:
            self._parts[id(value), "all"] = value, read, list(read(value))
        if isinstance(value, (list, tuple)) and len(value) <= MOST_ENTRIES:
            for one in value:
                self.contents(one)

    def sealed(self):
        members = [(owner, _getter(names), list(names.values())) for owner, names in self._members.values()]
        return Seen([*members, *self._parts.values()])


class Seen:
    """What was read, kept alive only where it is numbers, lists and dictionaries."""

    def __init__(self, places):
        self.gone = []
        self.places = [(_reference(owner), read, [id(v) for v in values], [self._kept(v) for v in values])
                       for owner, read, values in places]

    def _kept(self, value):
        if isinstance(value, _PRIMITIVE):
            return value
        try:
            return weakref.ref(value, self.gone.append)
        except TypeError:
            return value

    def objects(self):
        """The identities of the objects that were read."""
        return {place for _, _, ids, kept in self.places for place, one in zip(ids, kept) if isinstance(one, weakref.ref)}

    def holds(self):
        """Whether all is as it was."""
        if self.gone or not self.places:
            return not self.gone
        try:
            for owner, read, ids, kept in self.places:
                values = read(owner())
                if [*map(id, values)] != ids and not _alike(values, ids, kept):
                    return False
        except Exception:    # an owner is gone, or has no such member
            return False
        return True


class _Reader:
    """Notes the members of some names, of objects and of what these hold."""

    def __init__(self, watch, names):
        self.watch, self.names, self.known = watch, names, set()

    def read(self, one):
        if id(one) in self.known or isinstance(one, (ModuleType, type, *_PRIMITIVE)) or _is_ours(one):
            return
        self.known.add(id(one))
        if isinstance(one, (list, tuple, dict)):
            for part in (one.values() if isinstance(one, dict) else one) if len(one) <= MOST_ENTRIES else ():
                self.read(part)
            return
        for name in self.names:
            value = getattr(one, "__dict__", {}).get(name, one)
            if value is not one:
                self.watch.attribute(one, name, value)
                self.read(value)


def _names_in(function, owner):
    """The names in the code of a function, and of methods and functions that it names."""
    names, known, waiting = set(), set(), [function.__code__]
    while waiting:
        code = waiting.pop()
        if code in known:
            continue
        known.add(code)
        names.update(code.co_names)
        named = [getattr(owner, n, None) or function.__globals__.get(n) for n in code.co_names]
        named = [one.fget if isinstance(one, property) else one for one in named]
        waiting += [one.__code__ for one in named if isinstance(one, FunctionType)]
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    return names


def _alike(values, ids, kept):
    """The same objects, or equal numbers."""
    return len(values) == len(ids) and all(
        id(v) == place or type(v) is type(k) and isinstance(v, _PRIMITIVE) and (v == k or v != v and k != k)
        for v, place, k in zip(values, ids, kept))


def _entries(vector):
    return vector.entries


def _of_dict(one):
    return [*one, *one.values()]


def _itself(one):
    return one


def _numbers(array):
    return array.ravel().tolist()


def _length(one):
    return len(one),


def _getter(names):
    get = operator.attrgetter(*names)
    return get if len(names) > 1 else lambda owner: (get(owner),)


def _is_stable(owner, name, value):
    """Whether a member is there, and not made anew whenever it is asked for, as methods are."""
    try:
        again = getattr(owner, name)
    except Exception:
        return False
    return again is value or isinstance(value, _PRIMITIVE) and type(again) is type(value)


def _is_ours(owner):
    kind = owner if isinstance(owner, type) else type(owner)
    return kind.__module__.partition(".")[0] == "costate"


def _reference(value):
    """What gives the value when it is called, and does not keep it alive if that is possible."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
