"""The pages of the gallery, from the programs of examples/python and from what they have printed and drawn."""

import re
import sys
from pathlib import Path

import jupytext
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import gallery

logger = logging.getLogger(__name__)
SOURCE = re.compile(r"\]\(\.\./\.\./examples/python/(\w+)\.py\)")


def code(source, output):
    """A cell of code, and what it has printed."""
    block = f"```python\n{source}\n```\n"
    return block + (f"\n```output\n{output.rstrip()}\n```\n" if output.strip() else "")


def page(name):
    made, results = gallery.notebook(name), gallery.kept(name)
    if results.get("code") != gallery.fingerprint(made):
        logger.warning(f"{name}.py is not what drew its pictures: run `./dev gallery {name}`")
    outputs = results.get("printed", []) + [""] * len(made.cells)
    parts = [cell.source + "\n" if cell.cell_type == "markdown" else code(cell.source, output)
             for cell, output in zip(made.cells, outputs)]
    title, _, rest = parts[0].partition("\n")
    facts = (f"It takes {results.get('seconds', '?')} s of processor time, compilation included. Get it as "
             f"{{download}}`a program <../../examples/python/{name}.py>` or {{download}}`a notebook <{name}.ipynb>`.\n")
    return "\n".join([title, "", facts, rest, *parts[1:]])


def make_pages(app):
    for name in gallery.names():
        (gallery.KEPT / f"{name}.md").write_text(page(name))
        jupytext.write(gallery.notebook(name), gallery.KEPT / f"{name}.ipynb")


def link_pages(app, name, source):
    """Who reads the source of a page finds programs; on the site they are pages."""
    here = "" if name.startswith("gallery/") else "../gallery/"
    if name.startswith(("guide/", "gallery/")):
        source[0] = SOURCE.sub(lambda found: f"]({here}{found[1]}.md)" if found[1] in gallery.names() else found[0], source[0])


def setup(app):
    app.connect("builder-inited", make_pages)
    app.connect("source-read", link_pages)
    return {"parallel_read_safe": True}
