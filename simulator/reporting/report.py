"""The report: one HTML page that opens offline and asks nothing of any network."""

import base64
import hashlib
import os
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from simulator.reporting.errors import growth_section, occupancy_section, scores_section
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.markup import Safe, element, embedded, text
from simulator.reporting.picture import header, map_section
from simulator.reporting.records import attacks_section, claims_section, rounds_section, scenario_section

FILE_NAME = "report.html"
_LINKS = (
    ("map", "City"),
    ("occupancy", "Error by occupancy"),
    ("scores", "Error by mechanism"),
    ("growth", "Growth and cost"),
    ("claims", "Who learns what"),
    ("attacks", "Attacks"),
    ("rounds", "Answers"),
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
    from plotly.offline import get_plotlyjs  # noqa: PLC0415  slow to import

    run = FinishedRun(Path(directory))
    page: dict[str, Any] = {
        "figures": {},
        "mechanisms": [{"name": facts.name, "label": facts.label} for facts in run.facts.values()],
        # The map opens with what people come to see: the first mechanism that protects anything.
        "first": next((facts.name for facts in run.facts.values() if facts.kind != "no_privacy"), None),
    }
    sections = [
        map_section(run, page),
        occupancy_section(run, page),
        scores_section(run),
        growth_section(run, page),
        claims_section(run),
        attacks_section(run),
        rounds_section(run),
        scenario_section(run),
    ]
    shown = [(name, words) for name, words in _LINKS if any(f'id="{name}"' in section for section in sections)]
    links = element("nav", *(element("a", words, href=f"#{name}") for name, words in shown), aria_label="Sections")
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
        f"<title>{text(run.run.get('scenario', ''))} · crowdveil report</title>"
        f"<style>{_asset('report.css')}</style>"
    )
    body = (
        header(run)
        + links
        + '<noscript><p class="note">The maps and plots need JavaScript; the tables do not.</p></noscript>'
        + element("main", *sections)
        + element(
            "footer",
            element("p", "Made by crowdveil from the run’s own files; it loads nothing from any network."),
        )
        + f'<script type="application/json" id="page-data">{embedded(page)}</script>'
        + "".join(f"<script>{script}</script>" for script in scripts)
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{Safe(body)}</body></html>\n'


def write_report(directory: str | os.PathLike[str]) -> Path:
    """
    Build the report and put it into the run directory, whole or not at all.

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
    html = build_report(directory)
    path = Path(directory) / FILE_NAME
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".report-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(html)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _asset(name: str) -> str:
    return resources.files("simulator.reporting").joinpath("page", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
