"""Reproduction of the founding papers' tables and figures: computed values beside the published ones."""
