"""Members of objects that are replaced, or change in place, between launches of kernels that have run before."""


def put(path, value):
    """What sets a member, or an element, of an object to `value`, or to what that gives."""
    *owners, name = [int(one) if one.isdigit() else one for one in path.split(".")]

    def change(s):
        for one in owners:
            s = s[one] if _is_element(s, one) else getattr(s, one)
        new = value() if callable(value) else value
        if _is_element(s, name):
            s[name] = new
        else:
            setattr(s, name, new)
    return change


def _is_element(owner, name):
    return isinstance(name, int) or isinstance(owner, dict)


def expect_seen(s, kernel, change, expected):
    """After `change`, the kernel leaves `expected` in `s.out`, and something else before it."""
    launch = getattr(s, kernel)
    for _ in range(3):
        launch()
    before = s.out[None]
    change(s)
    for _ in range(2):
        launch()
        assert s.out[None] == expected != before
