"""SUMO: networks, and the vehicles of route files."""
