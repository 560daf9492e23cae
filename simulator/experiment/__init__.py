"""Experiments: build the components of a scenario, run it, and store the result."""
