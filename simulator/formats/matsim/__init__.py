"""MATSim: networks, and the events of runs."""
