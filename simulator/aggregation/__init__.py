"""Aggregators: what servers store and add up."""
