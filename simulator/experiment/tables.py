"""Tables: closed queries as the data frames of a run directory."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from simulator.experiment.rows import rows_of
from simulator.sensing.query import Query

ATTACK_COLUMNS = {
    "name": "str",
    "attack": "str",
    "coalition": "str",
    "colluding": "Int64",
    "servers": "Int64",
    "mechanism": "str",
    "campaign": "str",
    "trials": "Int64",
    "prior": "float64",
    "success": "float64",
    "gain": "float64",
    "gain_low": "float64",
    "gain_high": "float64",
    "theory": "float64",
    "epsilon_lower": "float64",
    "metric": "str",
    "value": "float64",
    "unit": "str",
}


def tabulate_estimates(queries: Sequence[Query]) -> pd.DataFrame:
    """Return one row a query, mechanism and cell: the columns of `estimates.parquet`.

    Of speeds, in m/s, only the cells in which enough vehicles told theirs have a row.
    """
    answered = [(query, answer) for query in queries for answer in query.answers]
    rows = [rows_of(query, answer) for query, answer in answered]
    cells = [len(answer.estimate) for _, answer in answered]

    def each(values: list[object], dtype: str) -> pd.Series:
        return pd.Series(values, dtype=dtype).repeat(cells).reset_index(drop=True)

    return pd.DataFrame(
        {
            "campaign": each([query.campaign for query, _ in answered], "str"),
            "query": each([query.number for query, _ in answered], "int64"),
            "time_s": each([query.time_s for query, _ in answered], "float64"),
            "mechanism": each([answer.mechanism for _, answer in answered], "str"),
            **{
                column: np.concatenate([getattr(row, column) for row in rows])
                for column in ("cell", "truth", "estimate", "std_error", "lower", "upper")
            },
        }
    )


def tabulate_servers(queries: Sequence[Query]) -> pd.DataFrame:
    """Return one row a query, mechanism, round and server: the columns of `servers.parquet`.

    sent = arrived + late + lost; `used` are the messages whose report was counted.
    """
    columns = ("server", "sent", "arrived", "late", "lost", "used")
    rows = [
        {
            "campaign": query.campaign,
            "query": query.number,
            "mechanism": answer.mechanism,
            "round": round_,
            **{column: getattr(server, column) for column in columns},
        }
        for query in queries
        for answer in query.answers
        for round_, account in enumerate(answer.rounds, start=1)
        for server in account.servers
    ]
    return pd.DataFrame(rows, columns=["campaign", "query", "mechanism", "round", *columns])


def tabulate_rounds(queries: Sequence[Query]) -> pd.DataFrame:
    """Return one row a query, mechanism and round: the columns of `rounds.parquet`."""
    return pd.DataFrame(
        [
            {
                "campaign": query.campaign,
                "query": query.number,
                "mechanism": answer.mechanism,
                "round": round_,
                "asked": account.asked,
                "answered": account.answered,
                "counted": account.counted,
                "late": account.late,
                "lost": account.lost,
                "rejected": account.rejected,
                "unpaired": account.unpaired,
                "duplicates": account.duplicates,
                "bytes_up": account.bytes_up,
            }
            for query in queries
            for answer in query.answers
            for round_, account in enumerate(answer.rounds, start=1)
        ]
    )
