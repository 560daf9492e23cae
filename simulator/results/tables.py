"""Tables of a run as frames: what pages and plots select."""

from typing import Any

import pandas as pd


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a frame by column, with None for each missing value."""
    rows = frame.to_dict("records")
    return [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]
