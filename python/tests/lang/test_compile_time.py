"""What is known while a kernel is compiled: in loops and branches of run time it cannot change."""

import pytest

import costate as ti

S = ti.types.struct(a=ti.f32, v=ti.math.vec2)


def test_it_changes_in_unrolled_loops():
    @ti.kernel
    def k() -> ti.i32:
        found, all_of_them, twice, doubled = None, (), (), []
        for i in ti.static(range(4)):
            all_of_them = all_of_them + (i,)
            twice += (i, i)
            doubled.append(2 * i)
            if ti.static(i == 2):
                found = "two"
        total = len(twice) - 8
        if ti.static(found == "two"):
            total = 100
        for i in ti.static(all_of_them):
            total += i + doubled[i]
        return total

    assert k() == 100 + 6 + 12


def test_lists_that_an_iteration_makes():
    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        total = 0
        for i in range(n):
            pair = [i, i + 1]
            pair.append(5)
            total += pair[1] + pair[2]
        return total

    assert k(3) == 1 + 2 + 3 + 15


LOST = {
    "t = (1, 2)\n    if n > 0:\n        t = (3, 4)\n    return t[0]": "`t` is known while the kernel is compiled",
    "t = None\n    if n > 0:\n        t = 3\n    return 0": "`t` is known",
    "t = ()\n    for i in range(n):\n        t += (1,)\n    return len(t)": "`t` is known",
    "s = 'a'\n    while n > 0:\n        s = 'b'\n        n -= 1\n    return 0": "`s` is known",
    "t = []\n    for i in range(n):\n        t.append(i)\n    return len(t)": "`append` changes a list of Python",
    "t = {}\n    if n > 0:\n        t.update({'a': 1})\n    return 0": "`update` changes a dict of Python",
    "for i in range(n):\n        KNOWN.append(1)\n    return 0": "`append` changes a list of Python",
}


@pytest.mark.parametrize("body", LOST)
def test_changes_that_would_be_lost(body, tmp_path):
    file = tmp_path / "lost.py"
    file.write_text(f"import costate as ti\nKNOWN = []\n\n@ti.kernel\ndef k(n: ti.i32) -> ti.i32:\n    {body}\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ti.CompilationError, match=LOST[body]):
        names["k"](2)
    assert names["KNOWN"] == []


def test_structs_become_others_in_branches():
    @ti.func
    def changed(s, n):
        if n > 0:
            s = S(a=5.0, v=[1, 2])
        return s.a + s.v[1]

    @ti.kernel
    def k(p: S, n: ti.i32) -> ti.f32:
        r = changed(p, n) + p.a
        if n > 0:
            p = S(a=9.0, v=[1, 1])
        if n > 1:
            p.a += 1
        return 100 * r + p.a

    start = S(a=1.0, v=[0, 0])
    assert [k(start, n) for n in (0, 1, 2)] == [201, 809, 810]


@pytest.mark.parametrize("body", ["i = 5\n    for i in range(3):\n        pass\n    return i",
                                  "for i in range(3):\n        for i, j in ti.ndrange(2, 2):\n            pass\n    return 0",
                                  "for n in range(3):\n        pass\n    return n"])
def test_loop_variables_are_new(body, tmp_path):
    file = tmp_path / "loop.py"
    file.write_text(f"import costate as ti\n\n@ti.kernel\ndef k(n: ti.i32) -> ti.i32:\n    {body}\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ti.QuadrantsSyntaxError, match="already declared in the outer scope"):
        names["k"](2)


def test_loops_one_after_the_other_and_without_a_name():
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        for _ in range(2):
            for i in range(3):
                s += i
            for i in range(2):
                for _ in range(2):
                    s += 10
            i = 100
            s += i
        return s

    assert k() == 2 * (3 + 40 + 100)
