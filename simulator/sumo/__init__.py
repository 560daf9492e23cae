"""SUMO as an engine: it runs in a separate process, and its vehicles are queried while it runs."""
