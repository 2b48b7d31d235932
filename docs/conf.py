"""Configuration of the documentation site: Sphinx with MyST (Markdown) and the theme furo.

Formulas are rendered to MathML when the site is built, and the theme brings its own style sheets, so a page
asks no other machine for anything.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).parents[1]

project = "planner"
author = "The planner developers"
copyright = author  # noqa: A001 - the name that Sphinx reads
_version = re.search(r'__version__ = "(.*)"', (ROOT / "planner" / "version.py").read_text(encoding="utf-8"))
version = release = _version.group(1) if _version else ""

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["requirements.txt", "notebooks"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # annotations name types of other packages
highlight_language = "none"

html_theme = "furo"
html_title = f"planner {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    # furo's default, system fonts only
    "light_css_variables": {"font-stack": "system-ui, sans-serif"},
    "dark_css_variables": {"font-stack": "system-ui, sans-serif"},
}


def _write_inline(self: Any, node: nodes.math) -> None:
    """Write a formula in a line as MathML."""
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _write_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula as MathML, in a box that scrolls where the page is narrow."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(tex2mathml(node.astext(), as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_write_inline, None), (_write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
