"""Sparse fields whose indices do not begin at 0: lists, cells, and indices of nodes."""

import numpy as np
import pytest

import costate as ti




@pytest.mark.parametrize("offset", [-5, 3, 1000])
def test_a_list_of_its_own(offset):
    x, n = ti.field(ti.i32), ti.field(ti.i32, ())
    ti.root.dynamic(ti.i, 8).place(x, offset=offset)

    @ti.kernel
    def fill():
        for i in range(8):
            x.append(10 + i)
        n[None] = x.length()
        ti.append(x.parent(), [], 99)   # it is full

    @ti.kernel
    def clear():
        x.deactivate()
        ti.append(x, [], 5)
        n[None] = ti.length(x.parent(), [])

    fill()
    assert sorted(x.to_numpy().tolist()) == list(range(10, 18)) and n[None] == 8
    clear()
    assert x.to_numpy().tolist() == [5] + [0] * 7 and n[None] == 1 and x[offset] == 5


@pytest.mark.parametrize("offset", [(-2, 0), (3, 0), (-2, -7), (0, -7), (5, 100)])
def test_lists_by_index(offset):
    x, n = ti.field(ti.i32), ti.field(ti.i32, 4)
    ti.root.dense(ti.i, 4).dynamic(ti.j, 8).place(x, offset=offset)
    lo = offset[0]

    @ti.kernel
    def fill():
        for i in range(lo, lo + 4):
            for k in range(i - lo + 1):
                x[i].append(100 * (i - lo) + k)
            n[i - lo] = x[i].length()

    @ti.kernel
    def by_field():
        ti.append(x, [lo + 2], 7)
        n[0] = ti.length(x, [lo + 2])
        ti.deactivate(x, [lo + 3])
        x[lo + 1].deactivate()

    fill()
    expected = [[100 * i + k if k <= i else 0 for k in range(8)] for i in range(4)]
    assert x.to_numpy().tolist() == expected and n.to_numpy().tolist() == [1, 2, 3, 4]
    by_field()
    expected[1] = expected[3] = [0] * 8
    expected[2][3] = 7
    assert x.to_numpy().tolist() == expected and n[0] == 4


def test_lists_along_the_first_axis():
    x = ti.field(ti.i32)
    ti.root.dense(ti.j, 3).dynamic(ti.i, 4).place(x, offset=(10, -1))

    @ti.kernel
    def fill():
        x[-1].append(1)
        x[1].append(2)
        x[1].append(3)
        ti.append(x, [0], 4)

    fill()
    assert x.to_numpy().tolist() == [[1, 4, 2], [0, 0, 3], [0, 0, 0], [0, 0, 0]]


def test_structs_and_vectors_in_lists():
    S = ti.types.struct(a=ti.i32, v=ti.math.vec2)
    s = S.field()
    ti.root.dense(ti.i, 2).dynamic(ti.j, 4).place(s, offset=(-1, 2))

    @ti.kernel
    def fill():
        ti.append(s, [-1], S(3, ti.Vector([1.0, 2.0])))
        ti.append(s, [0], S(4, ti.Vector([5.0, 6.0])))

    fill()
    assert (s[-1, 2].a, s[0, 2].a) == (3, 4) and s[0, 2].v.to_list() == [5, 6]
    assert np.count_nonzero(s.a.to_numpy()) == 2


def test_cells():
    x, seen = ti.field(ti.i32), ti.field(ti.i32, 6)
    ti.root.pointer(ti.i, 4).dense(ti.i, 2).place(x, offset=-4)

    @ti.kernel
    def write():
        ti.activate(x, [-4])
        x[3] = 8

    @ti.kernel
    def look():
        seen[0], seen[1] = ti.is_active(x, [-3]), ti.is_active(x, [-2])
        seen[2], seen[3] = ti.is_active(x, [2]), ti.is_active(x, [0])
        seen[4] = ti.rescale_index(x, x.parent(2), [3])[0]
        seen[5] = ti.rescale_index(x.parent(2), x, [3])[0]

    write()
    look()
    assert seen.to_numpy().tolist() == [1, 0, 1, 0, 3, 2]


@pytest.mark.parametrize("what", ["append", "length", "is_active", "deactivate", "activate"])
def test_indices_of_nodes_of_fields_with_an_offset(what):
    x = ti.field(ti.i32)
    ti.root.dense(ti.i, 4).dynamic(ti.j, 8).place(x, offset=(2, 0))

    @ti.kernel
    def use():
        if ti.static(what == "append"):
            ti.append(x.parent(), [5], 1)
        elif ti.static(what == "length"):
            x[2, 0] = ti.length(x.parent(), [5])
        elif ti.static(what == "is_active"):
            x[2, 0] = ti.is_active(x.parent(), [5, 0])
        elif ti.static(what == "deactivate"):
            ti.deactivate(x.parent(), [5])
        else:
            ti.activate(x.parent(), [5, 0])

    with pytest.raises(ti.QuadrantsTypeError, match="the indices of a `dynamic` node count from 0, and those of its fields from "
                                                    "their offset: pass the field instead of the node"):
        use()
