"""One self-contained HTML file: a template with its data and plotly.js packed inside. It never uses the network.

Everything that comes from a file is escaped: Jinja2 escapes the text, the data is base64, and the page's own script
writes text, never HTML.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auxmod import __version__
from auxmod.errors import UserError, require
from auxmod.files import check_free, write_named


def render(template: str, data: Mapping[str, Any], **values: Any) -> str:
    """Fill a template with ``values``, and with ``data`` for the page's script."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UserError("A page needs Jinja2 and Plotly: install them with pip install 'auxmod[report]'.") from None
    loader = FileSystemLoader(Path(__file__).with_name("templates"))
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    inside = {"plotly": _packed(get_plotlyjs()), "data": _packed(text)}
    return made.get_template(template).render(version=__version__, **inside, **values)


def _packed(text: str) -> str:
    """Compress text, which every browser can unpack: plotly.js shrinks to a third, the data to a tenth."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def check(out: Path, force: bool) -> None:
    """Refuse an output file that cannot or should not be written, before anything is read or measured."""
    require(out.suffix in (".html", ".htm"), f"--out is {out}, but must end in .html.")
    check_free(out, force)


def write(page: str, out: Path) -> int:
    """Write a page and return its size in bytes."""
    content = page.encode()
    write_named(out, content)
    return len(content)
