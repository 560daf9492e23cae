"""Demand: origins, destinations and departure times of vehicles, randomly drawn or read from files."""
