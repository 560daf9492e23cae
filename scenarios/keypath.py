"""Key paths: how a place in a scenario file is written in faults and overrides."""

from collections.abc import Sequence
from typing import Any


def write_path(at: Sequence[str | int], raw: Any) -> str:
    """Write a place as a key path.

    Parameters
    ----------
    at
        Keys and list indices from the root.
    raw
        The file as parsed, which the names of list items are looked up in.

    Returns
    -------
    str
        Keys joined by dots; an item of a list by its own name where it has one that no other item has.
    """
    text = ""
    here = raw
    for step in at:
        if isinstance(step, int):
            inside = isinstance(here, list) and step < len(here)
            name = _own_name(here, step) if inside else None
            text += f"[{step}]" if name is None else f".{name}"
            here = here[step] if inside else None
        else:
            text += f".{step}" if text else step
            here = here.get(step) if isinstance(here, dict) else None
    return text


def _own_name(items: list[Any], index: int) -> str | None:
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    name = names[index]
    return name if isinstance(name, str) and name and names.count(name) == 1 else None


def item_names(items: list[Any], section: str) -> list[str | None]:
    """Return what the items of a list are called, default names included; ``None`` for one without a name."""
    return [_name(item, section) for item in items]


def _name(item: Any, section: str) -> str | None:
    if not isinstance(item, dict):
        return None
    name = item.get("name")
    if name is None and section in {"mechanisms", "refinements", "attacks"}:
        name = str(item.get("kind")).rpartition(":")[2]
    if name is None and section == "campaigns":
        name = "campaign"
    return name if isinstance(name, str) else None
