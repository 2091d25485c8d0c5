"""Kernels of a text: their source must be in a file."""

import importlib.util


def load(path, source):
    """The module of a file with this text."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
