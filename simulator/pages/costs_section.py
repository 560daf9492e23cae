"""Costs of a query to a device: the report's section, and the line of the terminal summary."""

from collections.abc import Callable

from simulator.pages.document import PageSection
from simulator.results.costs import ENERGY
from simulator.results.formatting import parameter, whole
from simulator.results.run import RunResult


def costs_section(run: RunResult) -> PageSection:
    """
    Tabulate what a query costs a device, and the time until its estimate, by mechanism.

    Parameters
    ----------
    run
        The finished run.
    """
    values = {
        "rows": run.costs.assign(microjoules=1e6 * run.costs["connected_joules"]).to_dict("records"),
        "several": run.costs["campaign"].nunique() > 1,
        "energy": ENERGY,
    }
    return PageSection("costs", "Costs", template="costs", values=values)


def cost_lines(run: RunResult) -> list[str]:
    """Return what a query costs a device, from the cheapest mechanism to the dearest; nothing where it is not known."""
    costs = run.costs.dropna()
    if costs.empty:
        return []

    def span(column: str, shown: Callable[[float], str] = parameter) -> str:
        return " to ".join(dict.fromkeys(shown(end) for end in (costs[column].min(), costs[column].max())))

    up, down = (f"{span(f'messages_{way}')} {way} ({span(f'bytes_{way}', whole)} bytes)" for way in ("up", "down"))
    energy = f"energy {span('joules')} J if its LTE modem wakes up to answer"
    wait = f"{span('estimate_median_s')} s after the first question (median; 95 %: {span('estimate_95_s')} s)"
    return [f"Messages of a device in a query: {up} and {down}; {energy}. The estimate comes {wait}."]
