"""`ad.clear_all_gradients`."""

import weakref

#: All fields that have been made.
fields = weakref.WeakSet()


def clear_all_gradients(gradient_type=None):
    """Sets the gradients of all fields to 0; with `SNodeGradType.DUAL` the tangents."""
    which = "dual" if gradient_type is not None and getattr(gradient_type, "name", "") == "DUAL" \
        else "grad"
    for field in list(fields):
        array = field._core_array
        if array is not None and getattr(array, f"has_{which}"):
            companion = field._companions.get(which)
            if companion is not None:
                companion._forget_host()
            getattr(array, which).fill(0)
