"""The charts of a page: numbered, and embedded as data that the page's script draws as SVG."""

from typing import Any, NamedTuple

from simulator.charts.spec import Chart, data


class Drawn(NamedTuple):
    """A chart on the page: its key in the embedded data, its caption, and its text alternative."""

    key: str
    caption: str
    described: str


class Page:
    """
    Data embedded in the page for its script.

    Attributes
    ----------
    data
        `charts` by key, and whatever else the script reads.
    """

    def __init__(self, **others: object) -> None:
        self.charts: dict[str, dict[str, Any]] = {}
        self.data: dict[str, object] = {"charts": self.charts, **others}

    def add(self, prefix: str, chart: Chart) -> Drawn:
        """Add a chart under the next number of a prefix, and return what the template needs to place it."""
        key = f"{prefix}-{sum(name.startswith(f'{prefix}-') for name in self.charts)}"
        self.charts[key] = data(chart)
        return Drawn(key, chart.title, chart.about)
