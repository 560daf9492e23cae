"""`crowdveil plan`: its options, and what it prints."""

from typing import Annotated

import typer


def plan(
    *,
    cells: Annotated[int, typer.Option(help="Cells V.")],
    population: Annotated[int, typer.Option(help="Devices asked, N.")],
    occupancy: Annotated[
        int | None, typer.Option(help="Devices expected in a cell; N/(V + 1), spread evenly, if not given.")
    ] = None,
    view: Annotated[
        str,
        typer.Option(
            help="Who looks: report, report_round_1…3, linked_reports, released, released_differences, "
            "released_counts, shuffled, shuffled_round_1…3."
        ),
    ] = "linked_reports",
    epsilon: Annotated[float | None, typer.Option(help="ε the view must keep.")] = None,
    delta: Annotated[float, typer.Option(help="δ beside it; with --error, where ε is compared.")] = 0.0,
    error: Annotated[float | None, typer.Option(help="Instead: the RMSE of a cell, in vehicles.")] = None,
    queries: Annotated[int, typer.Option(help="Queries seen together, T.")] = 1,
    crowd: Annotated[
        int | None, typer.Option(help="Devices in the cell, for released views; the occupancy if not given.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="Published differences below it are suppressed.")] = None,
    simulated: Annotated[int, typer.Option(help="Cells of the simulation the interval of an error is for.")] = 1000,
    mechanism: Annotated[list[str] | None, typer.Option(help="Only these; all if not given.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plans as JSON.")] = False,
) -> None:
    """Find each mechanism's parameters that meet a privacy or an error, or say why none do."""
    from mechanisms import planning  # noqa: PLC0415  # imports wait until needed: `--help` answers at once

    target = planning.Target(
        cells=cells,
        population=population,
        occupancy=occupancy,
        view=view,
        epsilon=epsilon,
        delta=delta,
        error=error,
        queries=queries,
        crowd=crowd,
        k=k,
        simulated=simulated,
    )
    plans = planning.plan(target, mechanism or ())
    if json:
        from json import dumps  # noqa: PLC0415

        typer.echo(dumps(plans.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        from simulator.planning.text import print_planning  # noqa: PLC0415

        print_planning(plans)
