"""Families of mechanisms that can be planned, one module per group."""

from mechanisms.parameter import ParameterError
from mechanisms.planning.families import binary_randomizers, frequency_oracles, multi_round_alp, releases, sampling
from mechanisms.planning.search import Family

FAMILIES: tuple[Family, ...] = (
    *sampling.FAMILIES,
    *binary_randomizers.FAMILIES,
    *frequency_oracles.FAMILIES,
    *multi_round_alp.FAMILIES,
    *releases.FAMILIES,
)
"""All families, in the order of a plan."""


def family_names() -> tuple[str, ...]:
    """Return the names of all families, in order."""
    return tuple(family.name for family in FAMILIES)


def families_named(names: tuple[str, ...] = ()) -> tuple[Family, ...]:
    """Return the families of these names; all if no name is given.

    A name that is no family's selects all families of that kind.

    Raises
    ------
    ParameterError
        If a name is neither a family nor a kind.
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
