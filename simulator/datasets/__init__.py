"""Data sets: their manifest, their files, and loaders that return tables."""

from simulator.datasets.loader import load

__all__ = ["load"]
