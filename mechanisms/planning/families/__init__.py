"""Families of mechanisms a plan chooses among, one group a file."""

from mechanisms.parameter import ParameterError
from mechanisms.planning.families import budgets, coins, moves, releases, sampling
from mechanisms.planning.family import Family

FAMILIES: tuple[Family, ...] = (
    *sampling.FAMILIES,
    *coins.FAMILIES,
    *budgets.FAMILIES,
    *moves.FAMILIES,
    *releases.FAMILIES,
)
"""Every family, in the order of a plan."""


def family_names() -> tuple[str, ...]:
    """Return the names, in order."""
    return tuple(family.name for family in FAMILIES)


def families_named(names: tuple[str, ...] = ()) -> tuple[Family, ...]:
    """Return the families of these names, or of a kind where no family has the name; all where none is given.

    Raises
    ------
    ParameterError
        If there is none of a name.
    """
    if not names:
        return FAMILIES
    chosen: set[str] = set()
    for name in names:
        found = [family.name for family in FAMILIES if family.name == name]
        found = found or [family.name for family in FAMILIES if family.kind == name]
        if not found:
            raise ParameterError("mechanism", f"must be one of {', '.join(family_names())}", name)
        chosen.update(found)
    return tuple(family for family in FAMILIES if family.name in chosen)
