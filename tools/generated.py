"""Tables of pages that scripts write. Each stands between `<!-- table NAME -->` and `<!-- end -->`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGION = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.S)


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(head, rows):
    return "\n".join([line(head), "|---" * len(head) + "|", *map(line, rows)]) + "\n"


def filled(page, texts):
    """The page with these texts in the regions of their names; those without a text stay as they are."""
    text = (ROOT / page).read_text()
    names = [found[2] for found in REGION.finditer(text)]
    if missing := set(texts) - set(names):
        sys.exit(f"{page} has no place for {', '.join(sorted(missing))}")
    if unknown := set(names) - set(texts):
        sys.exit(f"{page}: nothing makes {', '.join(sorted(unknown))}")
    return REGION.sub(lambda found: found[0] if texts[found[2]] is None else found[1] + texts[found[2]] + found[3], text)


def write(pages, check, command):
    """Writes the pages, of which each has its texts; or says which of them are not as they would be written."""
    stale = [page for page, texts in pages.items() if filled(page, texts) != (ROOT / page).read_text()]
    if check and stale:
        sys.exit(f"{', '.join(stale)}: a table is not what it is made of: run `{command}`")
    for page in stale:
        (ROOT / page).write_text(filled(page, pages[page]))
