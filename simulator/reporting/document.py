"""Document: one HTML file that opens offline and asks nothing of any network."""

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

from simulator.files.atomic_write import write_file
from simulator.reporting.markup import Safe, embedded, text


def build_document(title: str, body: str, page: dict[str, Any], *, style: str = "") -> str:
    """
    Put a page's parts together with the style and scripts of every page.

    Parameters
    ----------
    title
        Shown on the browser's tab; escaped here.
    body
        HTML made here: header, main, footer.
    page
        Read by the page's script; `figures` holds what its plots draw.
    style
        CSS for this page, after every page's.

    Returns
    -------
    html
        One page with its style, scripts and data inside. A content security
        policy lets it load nothing, and run no script but its own.
    """
    from plotly.offline import get_plotlyjs  # noqa: PLC0415  slow to import

    scripts = [get_plotlyjs(), _asset("report.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(script) for script in scripts)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{text(title)}</title>"
        f"<style>{_asset('report.css')}{style}</style>"
    )
    whole = (
        body
        + f'<script type="application/json" id="page-data">{embedded(page)}</script>'
        + "".join(f"<script>{script}</script>" for script in scripts)
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{Safe(whole)}</body></html>\n'


def write_document(html: str, path: Path) -> Path:
    """
    Write a file whole or not at all.

    Parameters
    ----------
    html
        Its content.
    path
        Where; directories above it are made.

    Returns
    -------
    path
        The file written.
    """
    write_file(path, lambda staged: staged.write_text(html, encoding="utf-8", newline="\n"), overwrite=True)
    return path


def _asset(name: str) -> str:
    return resources.files("simulator.reporting").joinpath("page", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
