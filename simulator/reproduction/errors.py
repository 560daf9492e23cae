"""Errors a user can mend."""


class ReproductionError(ValueError):
    """What a user asked for cannot be done: no such entry, or no place to write."""
