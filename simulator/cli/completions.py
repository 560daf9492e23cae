"""Names that the shell completes; each is imported when the shell asks for it."""

from collections.abc import Sequence


def scenario_names() -> Sequence[str]:
    """Return the names of the shipped scenarios."""
    import scenarios  # noqa: PLC0415 - imported only when needed

    return [item.name for item in scenarios.shipped()]


def mechanism_classes() -> Sequence[str]:
    """Return the names of the classes of mechanisms."""
    from scenarios import kinds  # noqa: PLC0415 - imported only when needed

    return list(kinds.mechanism_classes().values())


def view_names() -> Sequence[str]:
    """Return the names of the views to plan for."""
    from mechanisms.planning.target import VIEWS  # noqa: PLC0415 - imported only when needed

    return list(VIEWS)


def family_names() -> Sequence[str]:
    """Return the names of the families of mechanisms that a plan compares."""
    from mechanisms.planning import families  # noqa: PLC0415 - imported only when needed

    return list(families.family_names())


def data_set_names() -> Sequence[str]:
    """Return the names of the data sets' folders."""
    from simulator.datasets.manifest import read_manifest  # noqa: PLC0415 - imported only when needed

    return [data_set.folder for data_set in read_manifest()]


def entry_names() -> Sequence[str]:
    """Return the names of the reproduced tables and figures."""
    from simulator.reproduction.published_results import ENTRIES  # noqa: PLC0415 - imported only when needed

    return [*(entry.name for entry in ENTRIES), "all"]
