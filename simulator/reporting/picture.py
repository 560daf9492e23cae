"""The head of the report, and its picture: truth, estimate and error."""

from collections.abc import Mapping
from typing import Any

from simulator.reporting import figures
from simulator.reporting.city_map import cell_outlines, query_numbers
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.markup import Safe, definitions, details, element, figure, same_scale
from simulator.reporting.numerals import whole
from simulator.reporting.published import published_label, statistics
from simulator.reporting.verdict import accuracy, price, question

Figures = dict[str, Any]
SHOWN_WARNINGS = 4
"""Warnings that leave room for the answer on the first screen."""


def header(run: FinishedRun) -> Safe:
    """
    Write the head of the page: what was asked, what was found, how large it was.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        The page's ``header``.
    """
    facts = run.run
    cells = len(run.cells)
    asked = sorted({round(value) for value in run.mean_asked.values()})
    each = "–".join(whole(value) for value in dict.fromkeys((asked[0], asked[-1]))) if asked else "–"
    keys = [
        (f"{run.called.many} in the run", whole(facts.get("vehicles"))),
        ("cell" if cells == 1 else "cells", whole(cells)),
        ("query" if facts.get("queries") == 1 else "queries", whole(facts.get("queries"))),
        ("devices asked per query", each),
        ("mechanisms compared", whole(len(run.facts))),
        ("answers made", whole(facts.get("device_answers"))),
    ]
    verdict = element("div", *(element("p", sentence) for sentence in accuracy(run)), class_="verdict")
    prices = element("ul", *(element("li", sentence) for sentence in price(run)))
    return element(
        "header",
        element("p", "crowdveil · report of a run", class_="kicker"),
        element("h1", facts.get("scenario", "")),
        element("p", facts["description"], class_="described") if facts.get("description") else "",
        _warnings(facts),
        element("p", question(run), class_="question"),
        element("h2", "How good is the picture?"),
        verdict,
        element("h2", f"What does it cost {run.called.who_pays}?"),
        prices,
        definitions(keys, class_="keys"),
    )


def _warnings(facts: Mapping[str, Any]) -> Safe:
    """List what may mislead the reader, where the page opens; of many, all but the first few under a fold."""
    items = [element("li", warning) for warning in facts.get("warnings") or []]
    if not items:
        return Safe("")
    shown, more = items[:SHOWN_WARNINGS], items[SHOWN_WARNINGS:]
    folded = details(f"{len(more)} more", element("ul", *more)) if more else ""
    heading = "1 warning" if len(items) == 1 else f"{len(items)} warnings"
    return element("div", element("h3", heading), element("ul", *shown), folded, class_="warnings", id="warnings")


def map_section(run: FinishedRun, page: Figures) -> Safe:
    """
    Show truth, estimate and error, as a map or, of a single cell, over time.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; gains what the section draws.

    Returns
    -------
    html
        The section.
    """
    if len(run.cells) == 1:
        return _series_section(run, page)
    page["city"] = cell_outlines(run.cells)
    page["campaigns"] = query_numbers(run)
    every = [campaign for campaign in page["campaigns"] if len(campaign["queries"]) < campaign["all_queries"]]
    thinned = [
        f"Of {campaign['name']}’s {campaign['all_queries']} queries {len(campaign['queries'])}, evenly "
        "spaced, can be shown here; the tables count all."
        for campaign in every
    ]
    panels = [
        element(
            "figure",
            element("figcaption", element("strong", title), " ", element("span", words, data_words=panel)),
            element("div", class_="canvas", data_panel=panel),
            element("div", class_="scale", data_scale=panel, aria_hidden="true"),
        )
        for panel, title, words in (
            ("truth", "Truth", run.called.of(next(iter(statistics(run.scores).values())).of_truth)),
            ("estimate", "Estimate", "what the aggregator worked out"),
            ("error", "Error", "estimate minus truth"),
        )
    ]
    return element(
        "section",
        element("h2", "The city: truth, estimate and error"),
        element("div", class_="controls", id="controls"),
        element("p", class_="status", id="status", role="status"),
        element("div", *panels, class_="panels", id="panels"),
        element("p", class_="status", id="clipped"),
        element("div", id="hover", class_="hover", hidden="hidden"),
        *(element("p", sentence, class_="note") for sentence in thinned),
        element(
            "details",
            element("summary", "The same numbers as a table"),
            element(
                "div",
                class_="scroll tall",
                id="values",
                tabindex="0",
                role="region",
                aria_label="Numbers by cell",
            ),
            id="values-box",
        ),
        id="map",
    )


def _series_section(run: FinishedRun, page: Figures) -> Safe:
    name = str(run.cells["name"].iloc[0])
    campaigns = list(dict.fromkeys(run.estimates["campaign"]))
    drawn = []
    for campaign in campaigns:
        group = []
        own = run.estimates["campaign"] == campaign
        for mechanism in dict.fromkeys(run.estimates.loc[own, "mechanism"]):
            key = f"series-{len(page['figures'])}"
            page["figures"][key] = figures.series(run, str(campaign), str(mechanism))
            group.append(page["figures"][key])
            where = f", campaign {campaign}" if len(campaigns) > 1 else ""
            label = published_label(run, str(campaign), str(mechanism)) + where
            words = f"{label}: truth, estimate and 95 % interval by query."
            drawn.append(figure(key, label, described=words))
        figures.share_scales(group)
    return element(
        "section",
        element("h2", "The watched cell: truth, estimate and interval over time"),
        element("p", f"There is one cell, {name or 'unnamed'}, so time takes the place of a map."),
        same_scale("series"),
        *drawn,
        id="map",
    )
