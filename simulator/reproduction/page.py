"""The page: what was published beside what was computed, in one HTML file that opens offline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from simulator.reporting.document import build_document, write_document
from simulator.reporting.markup import Safe, element, figure, table
from simulator.reproduction.data import without_folder
from simulator.reproduction.entry import CITATIONS, Entry, Reproduction, Row
from simulator.reproduction.figures import plot
from simulator.reproduction.shown import counts, shown, tally, verdict

Done: TypeAlias = Sequence[tuple[Entry, Reproduction]]

STYLE = """
.rows tbody th { min-width: 210px; font-weight: 500; }
.rows td, .rows th { text-align: left; }
.rows :is(td, th):nth-child(2), .rows :is(td, th):nth-child(3) { text-align: right; min-width: 92px; }
.rows td:nth-child(4) { white-space: nowrap; }
.rows td:last-child { min-width: 300px; color: var(--soft); }
.index td, .index th { text-align: left; }
.index td:nth-child(n+4), .index th:nth-child(n+4) { text-align: right; }
.index a { color: var(--accent); }
.badge.agrees { color: #0b5c45; background: #e6f4ef; }
.badge.differs { color: #8a2b06; background: #fdeee6; border-width: 2px; }
.badge.new { color: #4a4a4a; background: #eeeeee; border-style: dashed; }
.cited { color: var(--soft); margin-bottom: .4rem; }
.tally { font-weight: 600; }
.findings { border-left: 3px solid #e0a96d; padding-left: 16px; margin: 1rem 0 1.4rem; }
.findings h3 { margin-top: 0; }
.panel h3 { margin: 1.4rem 0 .2rem; }
section.entry { border-top: 1px solid var(--line); margin-top: 44px; padding-top: 30px; }
nav .name { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; font-size: .8rem; }
"""


def build_page(done: Done, *, seed: int) -> str:
    """Build the page of one or several entries.

    Parameters
    ----------
    done
        Entries with what came of them, in the order shown.
    seed
        Of everything that was drawn.

    Returns
    -------
    html
        One page with its style, scripts and data inside; it loads nothing.
    """
    page: dict[str, Any] = {"figures": {}}
    sections = [_section(entry, reproduction, page, alone=len(done) == 1) for entry, reproduction in done]
    names = (element("a", entry.name, href=f"#{entry.name}", class_="name") for entry, _ in done)
    title = done[0][0].title if len(done) == 1 else "The founding papers’ tables and figures, computed anew"
    body = (
        _header(title, done, seed)
        + (element("nav", *names, aria_label="Entries") if len(done) > 1 else "")
        + '<noscript><p class="note">The plots need JavaScript; the tables do not.</p></noscript>'
        + element("main", _index(done) if len(done) > 1 else "", *sections)
        + element("footer", element("p", f"Made by crowdveil, seed {seed}; it loads nothing from any network."))
    )
    return build_document(f"{title} · crowdveil", body, page, style=STYLE)


def write_page(done: Done, path: Path, *, seed: int) -> Path:
    """Build the page and write it whole or not at all, making its folder where there is none.

    Raises
    ------
    OSError
        If it cannot be written there.
    """
    return write_document(build_page(done, seed=seed), path)


def _header(title: str, done: Done, seed: int) -> Safe:
    # What crowdveil's own tables compare is theory with simulation: no paper published it.
    papers = [counts(reproduction) for entry, reproduction in done if entry.paper != "crowdveil"]
    sums = [sum(numbers) for numbers in zip((0, 0, 0), *papers, strict=True)]
    skipped = [entry.name for entry, reproduction in done if reproduction.skipped is not None]
    said = ""
    if sums[0] + sums[1]:
        said = f"Of {sums[0] + sums[1]} published values and conclusions {sums[0]} agree with what is computed here"
        differ = f" and {sums[1]} {'does' if sums[1] == 1 else 'do'} not; the notes say what was found instead"
        said += f"{differ if sums[1] else ''}. "
    if sums[2]:
        value = "value is" if sums[2] == 1 else "values are"
        said += f"{sums[2]} {'further ' if said else ''}{value} computed where the papers print none."
    left = f"Skipped for want of their data: {', '.join(skipped)}." if skipped else ""
    return element(
        "header",
        element("p", f"crowdveil · reproduction, seed {seed}", class_="kicker"),
        element("h1", title),
        element("p", said, class_="described") if said else "",
        element("p", left, class_="note") if left else "",
        element(
            "p",
            "In the drawings, what a paper published is dark and hollow; what is computed here is filled and coloured.",
            class_="note",
        ),
    )


def _index(done: Done) -> Safe:
    rows = []
    for entry, reproduction in done:
        link = element("a", entry.name, href=f"#{entry.name}")
        agree, differ, new = counts(reproduction)
        numbers = ("skipped", "", "") if reproduction.skipped is not None else (agree, differ, new)
        rows.append((link, entry.paper, entry.title, *numbers))
    heads = ("entry", "paper", "what it shows", "agree", "differ", "not published")
    return element(
        "section", element("h2", "Index"), table("Rows of each entry", heads, rows, class_="index"), id="index"
    )


def _section(entry: Entry, done: Reproduction, page: dict[str, Any], *, alone: bool) -> Safe:
    head = (
        element("h2", "Published beside computed" if alone else entry.title),
        element("p", f"{entry.name} · {CITATIONS[entry.paper]}", class_="cited"),
    )
    if done.skipped is not None:
        reason = element("p", element("strong", "Skipped. "), without_folder(done.skipped))
        return element("section", *head, element("div", reason, class_="warnings"), id=entry.name, class_="entry")
    findings: object = ""
    if done.findings:
        items = element("ul", *(element("li", _tied(sentence)) for sentence in done.findings))
        findings = element("div", element("h3", "What was found"), items, class_="findings")
    panels = []
    for number, drawing in enumerate(done.drawings, start=1):
        key = f"{entry.name}-{number}"
        page["figures"][key] = plot(drawing)
        described = f"{drawing.title}. {drawing.y_title} against {drawing.x_title}; the table below holds the numbers."
        panel = figure(key, "", described=described)
        panels.append(element("div", element("h3", drawing.title), panel, class_="panel"))
    return element(
        "section",
        *head,
        element("p", f"{tally(done, entry.paper)}.".capitalize(), class_="tally"),
        findings,
        *panels,
        _table(done.rows),
        id=entry.name,
        class_="entry",
    )


def _table(rows: Sequence[Row]) -> Safe:
    styles = {True: "badge agrees", False: "badge differs", None: "badge new"}
    body = [
        (
            row.key,
            shown(row.published),
            shown(row.computed),
            element("span", verdict(row), class_=styles[row.agrees]),
            _tied(row.note),
        )
        for row in rows
    ]
    return table("Every value", ("what", "published", "computed", "", "note"), body, class_="rows")


def _tied(words: str) -> str:
    """Tie a number to its % sign: no line ends between them."""
    return words.replace(" %", "\u00a0%")
