"""Writes the explorer with closed forms beside its page of the site."""

from pathlib import Path

from sphinx.application import Sphinx

from simulator.pages.explorer import explorer_page


def write_explorer(app: Sphinx, error: Exception | None) -> None:
    """Write the page, where Sphinx has made HTML without an error."""
    if error is None and app.builder.format == "html":
        page = Path(app.outdir, "start", "explorer.html")
        page.parent.mkdir(parents=True, exist_ok=True)
        words = "The numbers are of closed forms, computed in this page."
        page.write_text(explorer_page("page", source=words, help_page="explore.html"), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Let Sphinx call it at the end of a build."""
    app.connect("build-finished", write_explorer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
