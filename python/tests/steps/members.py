"""Members of objects that programs replace, with the values that they can have."""

MEMBERS = {}    # name: (values, function that puts one of them)


def member(name, *values):
    """What the decorated function of a world and a value puts; "a" and "b" are fields."""
    def add(put):
        MEMBERS[name] = values, put
        return put
    return add


def put(real, name, number):
    value = MEMBERS[name][0][number]
    MEMBERS[name][1](real, getattr(real, value) if isinstance(value, str) else value)


@member("k", 1.0, 0.5, -1.25)
def _(real, value):
    real.object.k = value


@member("x", "a", "b")
def _(real, value):
    real.object.x = value


@member("y", "b", "a")
def _(real, value):
    real.object.y = value


@member("part", 0, 1)
def _(real, value):
    real.object.part = real.object.parts[value]


@member("part c", 0.5, 2.0)
def _(real, value):
    real.object.parts[0].c = value


@member("part x", "b", "a")
def _(real, value):
    real.object.parts[1].x = value


@member("list", 0.5, -0.75)
def _(real, value):
    real.object.list[0] = value


@member("slots", 1.0, 0.25)
def _(real, value):
    real.object.slots.c = value


@member("fields", "a", "b")
def _(real, value):
    real.object.fields["x"] = value


@member("parameter x", "a", "b")
def _(real, value):
    real.parameters.x = value


@member("parameter k", 1.0, 0.3)
def _(real, value):
    real.parameters.k = value
