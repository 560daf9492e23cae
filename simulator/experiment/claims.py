"""Claims: what every mechanism proves about every view, as a table."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from mechanisms.local import LocalMechanism
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, View

COLUMNS = (
    "mechanism",
    "view",
    "queries",
    "crowd",
    "k",
    "colluding",
    "servers",
    "epsilon",
    "delta",
    "kind",
    "basis",
)


def tabulate_claims(
    mechanisms: Mapping[str, LocalMechanism],
    *,
    epsilons: Sequence[float],
    queries: Sequence[int],
    crowds: Sequence[int],
) -> pd.DataFrame:
    """Ask every mechanism for its claim on every view.

    Parameters
    ----------
    mechanisms
        By name.
    epsilons
        Where δ is reported.
    queries
        Numbers of queries a device answers.
    crowds
        Devices in the cell, for views of released counts.

    Returns
    -------
    pandas.DataFrame
        The columns of `claims.parquet`: per view one row at δ = 0 (ε = inf and kind "infinite" where none is
        finite) and one for each of `epsilons` with its δ. Parameters that a view lacks, and what is unknown, are
        null.
    """
    rows = [
        row
        for name, mechanism in mechanisms.items()
        for repeats in queries
        for view in _views(mechanism, repeats, crowds)
        for row in _rows(name, mechanism, view, epsilons)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = dict.fromkeys(("queries", "crowd", "k", "colluding", "servers"), "Int64")
    return table.astype({**whole, "epsilon": "float64", "delta": "float64"})


def _views(mechanism: LocalMechanism, queries: int, crowds: Sequence[int]) -> Iterator[View]:
    for round_ in range(1, mechanism.rounds + 1):
        yield Report(round_, queries=queries)
    yield LinkedReports(queries=queries)
    if mechanism.rounds > 1:  # one round alone has no differences to publish
        for crowd in crowds:
            yield ReleasedDifferences(crowd, queries=queries)
    for crowd in crowds:
        yield ReleasedCounts(crowd, queries=queries)


def _rows(name: str, mechanism: LocalMechanism, view: View, epsilons: Sequence[float]) -> Iterator[dict[str, object]]:
    claim = mechanism.claim(view)
    place = {
        "mechanism": name,
        "view": view.name,
        **{field: getattr(view, field, None) for field in ("queries", "crowd", "k", "colluding", "servers")},
        "basis": claim.basis,
    }
    if claim.kind == "unknown":
        yield {**place, "epsilon": np.nan, "delta": np.nan, "kind": "unknown"}
        return
    yield {**place, "epsilon": claim.epsilon, "delta": 0.0, "kind": claim.kind}
    for epsilon in epsilons:
        # Where no finite ε exists at δ = 0, δ at a finite ε is still a number with its own standing.
        yield {**place, "epsilon": epsilon, "delta": claim.delta(epsilon), "kind": claim.delta_kind}
