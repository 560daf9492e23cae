"""One vocabulary of charts, which the page's script draws as SVG and matplotlib on axes."""

from simulator.charts.spec import Axis, Chart, Series
from simulator.charts.styles import Style

__all__ = ["Axis", "Chart", "Series", "Style"]
