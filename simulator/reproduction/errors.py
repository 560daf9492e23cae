"""Error of a reproduction that a user can correct."""


class ReproductionError(ValueError):
    """What a user asked for cannot be done: no such entry, or no place to write."""
