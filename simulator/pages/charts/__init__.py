"""One vocabulary of charts, which the page's script draws as SVG and matplotlib on axes."""

from simulator.pages.charts.spec import Axis, Chart, Series
from simulator.pages.charts.styles import Style

__all__ = ["Axis", "Chart", "Series", "Style"]
