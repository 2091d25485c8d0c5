"""Numbers that know their derivatives by all parameters."""

import math

import numpy as np


class Dual:
    """A value and its derivatives."""

    __slots__ = ("value", "slopes")

    def __init__(self, value, slopes=0.0):
        self.value, self.slopes = float(value), slopes

    def __add__(self, other):
        other = dual(other)
        return Dual(self.value + other.value, self.slopes + other.slopes)

    def __mul__(self, other):
        other = dual(other)
        return Dual(self.value * other.value, self.slopes * other.value + self.value * other.slopes)

    __radd__, __rmul__ = __add__, __mul__

    def quotient(self):
        """1 / (1.5 + x * x)"""
        value = 1 / (1.5 + self.value * self.value)
        return Dual(value, -2 * self.value * value * value * self.slopes)

    def sin(self):
        return Dual(math.sin(self.value), math.cos(self.value) * self.slopes)

    def scaled(self, factor):
        """The same value with other derivatives: as a gradient of the user may have it."""
        return Dual(self.value, factor * self.slopes)


def dual(x):
    return x if isinstance(x, Dual) else Dual(x)


def constants(values):
    """An array of numbers without derivatives."""
    values = np.asarray(values, np.float64)
    made = np.empty(values.shape, object)
    for index in np.ndindex(values.shape):
        made[index] = Dual(values[index])
    return made


def values_of(array):
    return np.vectorize(lambda d: d.value, otypes=[float])(array)


def slopes_of(number, count):
    return np.broadcast_to(np.asarray(number.slopes, float), (count,))
