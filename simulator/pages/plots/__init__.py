"""Plots of a run on matplotlib axes, and files of all of them for papers."""

from simulator.pages.plots.files import write_figures
from simulator.pages.plots.looks import COLUMN_IN, paper_style
from simulator.pages.plots.run_plots import NothingToDrawError, RunPlots

__all__ = ["COLUMN_IN", "NothingToDrawError", "RunPlots", "paper_style", "write_figures"]
