"""Sphinx settings for `make docs`, which builds site/ from these pages and the docstrings, without a network."""

from __future__ import annotations

from typing import Any

import auxmod

project, version, release = "auxmod", auxmod.__version__, auxmod.__version__
author = "The auxmod developers"
copyright = f"{author}, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_heading_anchors = 3
html_theme, html_title = "furo", "auxmod"
html_copy_source, html_show_sourcelink = False, False
default_role = "code"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True


def setup(app: Any) -> None:
    """Escape bars in docstrings: there they mean an absolute value, but in reStructuredText a substitution."""

    def escape_bars(*event: Any) -> None:
        lines: list[str] = event[-1]
        lines[:] = [line.replace("|", r"\|") for line in lines]

    app.connect("autodoc-process-docstring", escape_bars)
