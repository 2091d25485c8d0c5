"""The names that the documentation lists are those of the package."""

from pathlib import Path

import pytest

import costate as qd

PAGE = Path(__file__).resolve().parents[2] / "docs/guide/features.md"
ELSEWHERE = {"absent", "lang", "volatile_load"}  # no names for users


pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="there is no documentation beside the tests")


def rows(table):
    """The cells of a table, without its head."""
    text = PAGE.read_text().split(f"<!-- table {table} -->")[1].split("<!-- end -->")[0]
    return [line.strip("| ").split(" | ") for line in text.strip().splitlines()[2:]]


def test_the_page_lists_all_names():
    listed = {name for _, names in rows("names") for name in names.strip("`").split()}
    functions = {op.name for op, _, _ in qd._core.functions()}
    axes, errors = set(dir(qd.lang.data.axes)), set(qd.errors.__all__)
    assert set(qd.__all__) - listed - functions - axes - errors - ELSEWHERE == set()
    assert [name for name in listed - {"torch_function"} if not hasattr(qd, name)] == []  # which needs PyTorch


def test_names_that_are_not_here_are_errors():
    for names, _ in rows("absent"):
        for name in names.strip("`").split():
            with pytest.raises(AttributeError, match=name):
                getattr(qd, name)
