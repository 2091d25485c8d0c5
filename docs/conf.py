"""How Sphinx makes the documentation site; `./dev docs` runs it."""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

sys.path.insert(0, str(Path(__file__).parent))

project = "Costate"
copyright = "the authors of Costate"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_design", "sphinx_copybutton", "gallery_pages", "reference"]
exclude_patterns = []

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "imported-members": True}
autodoc_typehints = "signature"
autodoc_type_aliases = {"Kernel": "costate.Kernel"}  # of several with the name
add_module_names = False
copybutton_selector = "div:not(.highlight-output) > div.highlight pre"
lexers["mlir"] = TextLexer()

html_theme = "furo"
html_title = "Costate"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
