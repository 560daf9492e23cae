"""Sentences and table rows about the gains of coalitions."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from simulator.reporting.deployments_section import campaign_words
from simulator.reporting.formatting import number, percent, real, whole
from simulator.reporting.markup import data
from simulator.reporting.run_reader import FinishedRun

Row = Mapping[str, Any]

KINDS = {
    "round_one": "guesses the cell from round one alone; and, second, who was sampled",
    "round_two": "guesses the cell from round two alone",
    "link_rounds": "guesses the cell from all reports of a query that the coalition can read and tie together",
    "shares": "adds up the shares that the coalition holds, and guesses the cell from the sum",
    "known_others": "from published differences, where everyone else is known: is the vehicle there, at even odds?",
    "longitudinal": "guesses the cell of a vehicle that stays, from several queries",
    "poisoning": "corrupted vehicles send what makes a cell look fuller",
    "drop_out": "guesses the cell from what is published after devices were kept from answering",
}
GUESS_KINDS = ("round_one", "round_two", "link_rounds", "shares")


def guessed(row: Row) -> bool:
    """Return whether a finding is a coalition's guess of a cell from what it received in one query."""
    known = all(real(row.get(name)) is not None for name in ("gain", "colluding", "prior"))
    metric = row.get("metric")
    return known and row["attack"] in GUESS_KINDS and not (isinstance(metric, str) and metric)


def gains(row: Row) -> bool:
    """Return whether a gain is significant: its 95 % interval lies above 0."""
    return (real(row.get("gain_low")) or 0.0) > 0.0


def coalition_sentences(run: FinishedRun, rows: Sequence[Row]) -> dict[str, str]:
    """
    Return sentences that state which coalitions had a significant gain and which had none.

    Parameters
    ----------
    run
        The finished run.
    rows
        Findings that are guesses of a cell.

    Returns
    -------
    sentences
        By campaign.
    """
    sentences = {}
    for campaign in dict.fromkeys(str(row["campaign"]) for row in rows):
        own = [row for row in rows if row["campaign"] == campaign]
        parts = []
        for coalition in sorted({str(row["coalition"]) for row in own}, key=lambda name: (name.count(","), name)):
            found = [row for row in own if row["coalition"] == coalition]
            better = sorted(gain for row in found if gains(row) and (gain := real(row["gain"])) is not None)
            if not better:
                parts.append(f"{coalition} gained nothing that can be told from chance")
                continue
            low, high = _points(better[0]), _points(better[-1])
            points = f"{low} points" if low == high else f"{low} to {high} points, by mechanism"
            parts.append(f"{coalition} gained {points}")
        sentences[campaign] = f"{campaign_words(run, campaign)}. {'; '.join(parts)}."
    return sentences


def _points(share: float) -> str:
    return number(100 * share)


def attack_lines(attacks: pd.DataFrame) -> list[str]:
    """
    Summarize each kind of attack in one or two lines for a terminal.

    Parameters
    ----------
    attacks
        The frame of `attacks.parquet`.

    Returns
    -------
    lines
        In the order of the kinds.
    """
    rows = [{str(key): value for key, value in row.items()} for row in attacks.to_dict("records")]
    kinds = [*KINDS, *sorted({str(row["attack"]) for row in rows} - set(KINDS))]
    lines = []
    for kind in kinds:
        own = [row for row in rows if row["attack"] == kind]
        for metric in dict.fromkeys(_metric(row) for row in own):
            measured = [row for row in own if _metric(row) == metric]
            name = ", ".join(word.replace("_", " ") for word in (kind, metric) if word)
            told = _rates(measured) or _largest(measured)
            lines += [f"{name}: {told}"] if told else []
    return lines


def _metric(row: Row) -> str:
    """Return the quantity measured or guessed other than the cell; the number of queries is not such a quantity."""
    metric = row.get("metric")
    return metric if isinstance(metric, str) and metric != "queries" else ""


def _rates(rows: Sequence[Row]) -> str:
    rates = [row for row in rows if real(row.get("success")) is not None]
    better = [row for row in rates if gains(row)]
    idle = len(rates) - len(better)
    words = [f"{idle} of {len(rates)} gained nothing that can be told from chance"] if idle else []
    if better:
        best = max(better, key=lambda row: real(row["gain"]) or 0.0)
        rate, prior = percent(real(best["success"])), percent(real(best["prior"]))
        words.append(f"the best: {rate} right, {prior} without looking ({_who(best)})")
    return "; ".join(words)


def _largest(rows: Sequence[Row]) -> str:
    values = [row for row in rows if real(row.get("value")) is not None]
    if not values:
        return ""
    most = max(values, key=lambda row: row["value"])
    return f"at most {number(real(most['value']))} {most.get('unit') or ''} ({_who(most)})"


def _who(row: Row) -> str:
    return ", ".join(
        str(row[name]) for name in ("coalition", "campaign", "mechanism") if isinstance(row.get(name), str)
    )


def query_rows(run: FinishedRun, rows: Sequence[Row]) -> list[list[object]]:
    """Return the rows of a table of longitudinal findings."""
    return [
        [
            f"{row['name']}, {row['campaign']}, {run.label(str(row['mechanism']))}",
            data(real(row["value"]), whole(real(row["value"]))),
            data(real(row["trials"]), whole(real(row["trials"]))),
            *(data(real(row[name]), percent(real(row[name]))) for name in ("prior", "success", "theory")),
        ]
        for row in rows
    ]


def poisoning_rows(run: FinishedRun, rows: Sequence[Row]) -> list[list[object]]:
    """Return the rows of a table of poisoning findings, with well-formed and crafted reports side by side."""
    found: dict[tuple[str, str, str, int], dict[str, Row]] = {}
    for row in rows:
        key = (str(row["campaign"]), str(row["mechanism"]), str(row["name"]), int(row["colluding"]))
        found.setdefault(key, {})[str(row["metric"])] = row
    body: list[list[object]] = []
    for (campaign, mechanism, _, vehicles), by_metric in found.items():
        asked = run.mean_asked.get((campaign, mechanism))
        share = vehicles / asked if asked else None
        cells: list[object] = [f"{campaign}, {run.label(mechanism)}", data(float(vehicles), whole(vehicles))]
        cells.append(data(share, percent(share)))
        for metric in ("inflation", "crafted_inflation"):
            row = by_metric.get(metric, {})
            cells += [data(real(row.get(name)), number(real(row.get(name)))) for name in ("value", "theory")]
        body.append(cells)
    return body
