"""Floating-car data of a run: where every vehicle is at regular moments, and the formats it is written in."""

from simulator.traffic.fcd.sampler import Sampler
from simulator.traffic.fcd.samples import Samples
from simulator.traffic.fcd.writing import FILES, write_samples

__all__ = ["FILES", "Sampler", "Samples", "write_samples"]
