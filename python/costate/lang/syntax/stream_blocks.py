"""`with ti.stream_parallel():` and its like: what stands in it, in its order, which is one of those that they allow."""

from __future__ import annotations

import ast
from typing import Any

_NAMES = ("stream_parallel", "graph_parallel", "graph_parallel_context", "parallel", "parallel_context")


def _is_block(node: ast.With) -> bool:
    call = node.items[0].context_expr
    if len(node.items) != 1 or node.items[0].optional_vars is not None or not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _NAMES and not call.args and not call.keywords


class _Splice(ast.NodeTransformer):
    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        return node.body if _is_block(node) else node


def spliced(function: Any) -> Any:
    """The syntax tree of a function, with the statements of such blocks in their place."""
    return _Splice().visit(function)
