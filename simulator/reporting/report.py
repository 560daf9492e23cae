"""The report: one self-contained HTML page that opens offline."""

import base64
import hashlib
import os
from importlib import resources
from pathlib import Path
from typing import Any

from simulator.files.atomic_write import write_file
from simulator.reporting.attacks_section import attacks_section
from simulator.reporting.constant_error_section import loss_section
from simulator.reporting.deployments_section import deployments_section
from simulator.reporting.details_section import claims_section, rounds_section, scenario_section
from simulator.reporting.errors_section import growth_section, occupancy_section, scores_section
from simulator.reporting.flow_section import flow_check_section
from simulator.reporting.map_section import header, map_section
from simulator.reporting.markup import Safe, element, embedded, text
from simulator.reporting.run_reader import FinishedRun
from simulator.reporting.traffic_section import traffic_section


def build_document(title: str, body: str, page: dict[str, Any], *, style: str = "") -> str:
    """
    Assemble a page from its parts and the style and scripts common to all pages.

    Parameters
    ----------
    title
        Shown on the browser's tab; escaped by this function.
    body
        Trusted HTML: header, main, footer.
    page
        Data for the page's script; `figures` holds the figures to plot.
    style
        CSS for this page, placed after the common CSS.

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
    Write a file atomically: completely or not at all.

    Parameters
    ----------
    html
        Its content.
    path
        The file; missing parent directories are created.

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


FILE_NAME = "report.html"
_LINKS = (
    ("map", "City"),
    ("occupancy", "Error by occupancy"),
    ("scores", "Error by mechanism"),
    ("growth", "Growth and cost"),
    ("loss", "Lost reports"),
    ("deployments", "Who holds what"),
    ("attacks", "Attacks"),
    ("claims", "Who learns what"),
    ("flows", "Published flows"),
    ("rounds", "Answers"),
    ("traffic", "Traffic"),
    ("scenario", "Scenario"),
)


def build_report(directory: str | os.PathLike[str]) -> str:
    """
    Build the report of a finished run.

    Parameters
    ----------
    directory
        The run directory; nothing else is read.

    Returns
    -------
    html
        One page with its style, scripts and data inside. A content security
        policy lets it load nothing, and run no script but its own.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no finished run.
    """
    run = FinishedRun(Path(directory))
    page: dict[str, Any] = {
        "figures": {},
        "mechanisms": [{"name": name, "label": run.label(name)} for name in (*run.facts, *run.refined)],
        # The map first shows the mechanism of most interest: the first other than no privacy.
        "first": next((facts.name for facts in run.facts.values() if facts.kind != "no_privacy"), None),
    }
    sections = [
        map_section(run, page),
        occupancy_section(run, page),
        scores_section(run),
        growth_section(run, page),
        loss_section(run, page),
        deployments_section(run),
        attacks_section(run, page),
        claims_section(run),
        flow_check_section(run, page),
        rounds_section(run),
        traffic_section(run, page),
        scenario_section(run),
    ]
    shown = [(name, words) for name, words in _LINKS if any(f'id="{name}"' in section for section in sections)]
    links = element("nav", *(element("a", words, href=f"#{name}") for name, words in shown), aria_label="Sections")
    body = (
        header(run)
        + links
        + '<noscript><p class="note">The maps and plots need JavaScript; the tables do not.</p></noscript>'
        + element("main", *sections)
        + element(
            "footer",
            element("p", "Made by crowdveil from the run’s own files; it loads nothing from any network."),
        )
    )
    return build_document(f"{run.run.get('scenario', '')} · crowdveil report", body, page)


def write_report(directory: str | os.PathLike[str]) -> Path:
    """
    Build the report and write it atomically into the run directory.

    Parameters
    ----------
    directory
        The run directory.

    Returns
    -------
    path
        The file written.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no finished run.
    """
    return write_document(build_report(directory), Path(directory) / FILE_NAME)
