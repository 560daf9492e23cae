"""Values of JSON that can be keys of a graph."""

from __future__ import annotations

from typing import Any


def tupled(value: Any) -> Any:
    """Turn lists, which JSON has, into tuples, which can be keys, all the way down; other values are let be."""
    return tuple(tupled(part) for part in value) if isinstance(value, list) else value
