"""Data sets: what is known of each, where it belongs, and its table."""

from simulator.datasets.errors import DatasetError
from simulator.datasets.loader import load

__all__ = ["DatasetError", "load"]
