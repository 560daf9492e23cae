"""Settings of the documentation site: `sphinx-build -W --keep-going docs site` builds it."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any, get_origin

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from site_pages import sources_digest

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

project = _PROJECT["name"]
author = _PROJECT["authors"][0]["name"]
copyright = author  # noqa: A001 - Sphinx has the name
release = _PROJECT["version"]

extensions = [
    "myst_nb",
    "numpydoc",
    "site_explorer",
    "site_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "reference/api/verification_table.md"]
templates_path = ["_templates"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
# A change of the sources executes every page again.
nb_execution_cache_path = str(Path(__file__).with_name("_build") / "jupyter_cache" / sources_digest())
nb_execution_raise_on_error = True
nb_execution_timeout = 600

autosummary_generate = ["reference/api.md"]
autodoc_default_options = {"no-value": True}  # the tables of the papers are long
autodoc_typehints = "none"  # the docstrings state types in words
autodoc_member_order = "bysource"
default_role = "code"
numpydoc_show_class_members = False  # autodoc writes them, with their docstrings

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "show_nav_level": 1,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "logo": {"text": project},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": ["page-toc"],
}
html_copy_source = False


def _plain(_app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Escape |x| and (*shape, N) of docstrings outside code: there they are formulas, which have no markup."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]*`)", line)
        lines[number] = "".join(re.sub(r"[|*]", r"\\\g<0>", part) if part[:1] != "`" else part for part in parts)


def _without_aliases(
    _app: Sphinx, _what: str, _name: str, member: object, _skip: object, _options: object
) -> bool | None:
    """Leave out aliases of types, which have no signature."""
    return True if get_origin(member) is not None else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what docstrings need, before numpydoc reads them."""
    app.connect("autodoc-process-docstring", _plain, priority=100)
    app.connect("autodoc-skip-member", _without_aliases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
