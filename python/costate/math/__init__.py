"""Functions and vector types by the names of GLSL: `ti.math`."""

from __future__ import annotations as _annotations

import math as _math
from typing import Any as _Any

from costate.lang.data.annotations import DefaultCompound as _Default
from costate.lang.values import arith as _arith
from costate.lang.values import ops as _ops
from costate.lang.values.matrix import Matrix as _Matrix
from costate.lang.values.ops import (abs, acos, asin, atan2, ceil, clz, exp2, ffs, floor, inv, isfinite, isinf,  # noqa: F401
                                     isnan, log2, max, min, popcnt, pow, round, sgn, sqrt, tan, tanh, trunc)

pi = _math.pi
e = _math.e
inf = _math.inf
nan = _math.nan
sign = sgn
cos: _Any
exp: _Any
log: _Any
sin: _Any
cos, exp, log, sin = (_ops.FUNCTIONS[_name] for _name in ("cos", "exp", "log", "sin"))

vec2, vec3, vec4 = (_Default((n,), "f") for n in (2, 3, 4))
ivec2, ivec3, ivec4 = (_Default((n,), "i") for n in (2, 3, 4))
uvec2, uvec3, uvec4 = (_Default((n,), "u") for n in (2, 3, 4))
mat2, mat3, mat4 = (_Default((n, n), "f") for n in (2, 3, 4))

_add, _sub, _mul, _div = _ops.add, _ops.sub, _ops.mul, _ops.div


def clamp(x: _Any, xmin: _Any, xmax: _Any) -> _Any:
    """x between xmin and xmax, by component; at the bounds the derivative is that of x."""
    return _ops.clamp(x, xmin, xmax)


def mix(x: _Any, y: _Any, a: _Any) -> _Any:
    """x * (1 - a) + y * a"""
    return _add(_mul(x, _sub(1.0, a)), _mul(y, a))


def fract(x: _Any) -> _Any:
    """x - floor(x)"""
    return _sub(x, floor(x))


def mod(x: _Any, y: _Any) -> _Any:
    """x - y * floor(x / y)"""
    return _ops.mod(x, y)


def step(edge: _Any, x: _Any) -> _Any:
    """0.0 where x is below the edge, else 1.0."""
    return _ops.cast(_ops.cmp_ge(x, edge), float)


def smoothstep(edge0: _Any, edge1: _Any, x: _Any) -> _Any:
    """From 0 to 1 along 3 t^2 - 2 t^3 between the edges."""
    t = clamp(_div(_sub(x, edge0), _sub(edge1, edge0)), 0.0, 1.0)
    return _mul(_mul(t, t), _sub(3.0, _mul(2.0, t)))


def degrees(x: _Any) -> _Any:
    """Radians to degrees."""
    return _mul(x, 180.0 / pi)


def radians(x: _Any) -> _Any:
    """Degrees to radians."""
    return _mul(x, pi / 180.0)


def _vector(x: _Matrix) -> _Matrix:
    return x if isinstance(x, _Matrix) else _Matrix(x)


def dot(x: _Any, y: _Any) -> _Any:
    """The inner product."""
    return _vector(x).dot(y)


def cross(x: _Any, y: _Any) -> _Any:
    """The cross product."""
    return _vector(x).cross(y)


def length(x: _Any) -> _Any:
    """The length of a vector."""
    return _vector(x).norm()


def distance(x: _Any, y: _Any) -> _Any:
    """The distance of two points, or numbers."""
    d = _sub(x, y)
    return d.norm() if isinstance(d, _Matrix) else abs(d)


def normalize(v: _Any) -> _Any:
    """The vector of length 1 in this direction."""
    return _vector(v).normalized()


def reflect(x: _Any, n: _Any) -> _Any:
    """x reflected at the plane with the normal n."""
    return _sub(x, _mul(_mul(2.0, dot(x, n)), n))


def refract(x: _Any, n: _Any, eta: _Any) -> _Any:
    """x refracted at the plane with the normal n; 0 where it is reflected."""
    dxn = dot(x, n)
    k = _sub(1.0, _mul(_mul(eta, eta), _sub(1.0, _mul(dxn, dxn))))
    root = sqrt(max(k, 0.0))
    bent = _sub(_mul(eta, x), _mul(_add(_mul(eta, dxn), root), n))
    return _mul(_ops.select(_arith.lt(k, 0.0), 0.0, 1.0), bent)


def determinant(m: _Any) -> _Any:
    """The determinant."""
    return m.determinant()


def inverse(m: _Any) -> _Any:
    """The inverse."""
    return m.inverse()


def log10(x: _Any) -> _Any:
    """The logarithm to base 10."""
    return _ops.log10(x)


def cmul(x: _Any, y: _Any) -> _Any:
    """The product of complex numbers."""
    return _Matrix([_arith.sub(_arith.mul(x[0], y[0]), _arith.mul(x[1], y[1])),
                    _arith.add(_arith.mul(x[0], y[1]), _arith.mul(x[1], y[0]))])


def cconj(z: _Any) -> _Any:
    """The conjugate of a complex number."""
    return _Matrix([z[0], _arith.neg(z[1])])


def cdiv(x: _Any, y: _Any) -> _Any:
    """The quotient of complex numbers."""
    return _div(cmul(x, cconj(y)), y.norm_sqr())


def cexp(z: _Any) -> _Any:
    """e to the power of a complex number."""
    r = exp(z[0])
    return _Matrix([_arith.mul(r, cos(z[1])), _arith.mul(r, sin(z[1]))])


def clog(z: _Any) -> _Any:
    """The logarithm of a complex number."""
    return _Matrix([log(z.norm()), atan2(z[1], z[0])])


def csqrt(z: _Any) -> _Any:
    """The root of a complex number."""
    r, a = sqrt(z.norm()), _arith.mul(0.5, atan2(z[1], z[0]))
    return _Matrix([_arith.mul(r, cos(a)), _arith.mul(r, sin(a))])


def cpow(z: _Any, n: _Any) -> _Any:
    """A complex number to a real power."""
    r, a = pow(z.norm(), n), _arith.mul(atan2(z[1], z[0]), n)
    return _Matrix([_arith.mul(r, cos(a)), _arith.mul(r, sin(a))])


def cinv(z: _Any) -> _Any:
    """1 / z of a complex number."""
    return _div(cconj(z), z.norm_sqr())


def vdir(ang: _Any) -> _Any:
    """The unit vector (cos, sin) of an angle."""
    return _Matrix([cos(ang), sin(ang)])


def eye(n: _Any) -> _Any:
    """The identity matrix."""
    return _Matrix.identity(float, n)


def rotation2d(angle: _Any) -> _Any:
    """The rotation of the plane by an angle."""
    c, s = cos(angle), sin(angle)
    return _Matrix([[c, _arith.neg(s)], [s, c]])


rot2 = rotation2d


def _homogeneous(rows: _Any) -> _Any:
    return _Matrix(rows)


def translate(dx: _Any, dy: _Any, dz: _Any) -> _Any:
    """The translation of homogeneous coordinates."""
    return _homogeneous([[1.0, 0.0, 0.0, dx], [0.0, 1.0, 0.0, dy], [0.0, 0.0, 1.0, dz],
                         [0.0, 0.0, 0.0, 1.0]])


def scale(sx: _Any, sy: _Any, sz: _Any) -> _Any:
    """The scaling of homogeneous coordinates."""
    return _homogeneous([[sx, 0.0, 0.0, 0.0], [0.0, sy, 0.0, 0.0], [0.0, 0.0, sz, 0.0],
                         [0.0, 0.0, 0.0, 1.0]])


def rot_by_axis(axis: _Any, angle: _Any) -> _Any:
    """The rotation by an angle about an axis, of homogeneous coordinates."""
    c, s = cos(angle), sin(angle)
    t = _arith.sub(1.0, c)
    x, y, z = (normalize(axis))
    m, a = _arith.mul, _arith.add

    def entry(p: _Any, q: _Any, more: _Any) -> _Any:
        return a(m(m(t, p), q), more)
    def minus(v: _Any) -> _Any:
        return _arith.neg(v)
    return _homogeneous([
        [entry(x, x, c), entry(x, y, m(s, z)), entry(x, z, minus(m(s, y))), 0.0],
        [entry(x, y, minus(m(s, z))), entry(y, y, c), entry(y, z, m(s, x)), 0.0],
        [entry(x, z, m(s, y)), entry(y, z, minus(m(s, x))), entry(z, z, c), 0.0],
        [0.0, 0.0, 0.0, 1.0]])


def rotation3d(ang_x: _Any, ang_y: _Any, ang_z: _Any) -> _Any:
    """The rotation by three angles, of homogeneous coordinates."""
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)


rot3 = rotation3d


def rot_yaw_pitch_roll(yaw: _Any, pitch: _Any, roll: _Any) -> _Any:
    """The rotation by yaw, pitch and roll, of homogeneous coordinates."""
    ch, sh = cos(yaw), sin(yaw)
    cp, sp = cos(pitch), sin(pitch)
    cb, sb = cos(roll), sin(roll)
    m, a, n = _arith.mul, _arith.add, _arith.neg
    return _homogeneous([
        [a(m(ch, cb), m(m(sh, sp), sb)), m(sb, cp), a(n(m(sh, cb)), m(m(ch, sp), sb)), 0.0],
        [a(n(m(ch, sb)), m(m(sh, sp), cb)), m(cb, cp), a(m(sb, sh), m(m(ch, sp), cb)), 0.0],
        [m(sh, cp), n(sp), m(ch, cp), 0.0],
        [0.0, 0.0, 0.0, 1.0]])
