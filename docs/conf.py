"""Settings of the documentation site: `sphinx-build -W --keep-going docs site` builds it."""

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # of `site_explorer`

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

project = _PROJECT["name"]
author = _PROJECT["authors"][0]["name"]
copyright = author  # noqa: A001 - Sphinx has the name
release = _PROJECT["version"]

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode"]
extensions += ["site_explorer"]  # the page to play with
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"
html_theme = "pydata_sphinx_theme"
html_title = project
html_theme_options = {"show_prev_next": False, "navbar_align": "left"}
html_copy_source = False
