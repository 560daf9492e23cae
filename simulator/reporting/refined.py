"""The part of the report that says of refined estimates what they were made of, and how biased they are."""

from collections.abc import Mapping
from typing import Any

from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.markup import Safe, element
from simulator.reporting.numerals import number, real


def refined_part(run: FinishedRun) -> Safe:
    """
    Say what every refined estimate is.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        A heading and a list; empty where nothing was refined.
    """
    records = run.run.get("refinements") or []
    if not records:
        return Safe("")
    items = [
        element("li", element("strong", run.label(str(record["name"]))), " ", _words(record)) for record in records
    ]
    return Safe(
        element("h3", "Refined estimates")
        + element(
            "p",
            "Made from a mechanism’s estimates afterwards, and shown beside them. They are biased: a smaller error "
            "over all cells may be a larger one where it matters.",
        )
        + element("ul", *items)
    )


def _words(record: Mapping[str, Any]) -> str:
    several = len(record.get("measured") or []) > 1
    sentences = [f"Made of {record['made_of']}.", f"In general it is {record['bias']}."]
    if (record.get("keeps") or {}).get("never_worse") == "in each cell":
        sentences.append("In no cell is it further off than the unrefined estimate.")
    for measured in record.get("measured") or []:
        prefix = f"Campaign {measured['campaign']}: in" if several else "In"
        sentences.append(f"{prefix} this run it was off on average by {_biases(measured)}.")
        if "drift_rmse" in measured:
            drift, spread = (number(real(measured[name])) for name in ("drift_rmse", "spread_rmse"))
            sentences.append(
                f"In theory {drift} vehicles (root mean square) of its error come from counts that changed between the "
                f"queries, {spread} from coins."
            )
    sentences.append(f"Its interval is {record['interval']}. {record['claims']}")
    return " ".join(sentences)


def _biases(measured: Mapping[str, Any]) -> str:
    busy, other, before_busy, before_other = (
        _signed(real(measured.get(name)))
        for name in ("bias_busy", "bias_other", "unrefined_bias_busy", "unrefined_bias_other")
    )
    return (
        f"{busy} vehicles in the busiest tenth of the cells and {other} in the others "
        f"(unrefined {before_busy} and {before_other})"
    )


def _signed(value: float | None) -> str:
    return number(value) if value is None or value <= 0 else f"+{number(value)}"
