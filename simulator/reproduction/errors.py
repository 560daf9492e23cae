"""Error of a reproduction that a user can correct."""


class ReproductionError(ValueError):
    """The user's request cannot be carried out: no such entry, or the output cannot be written."""
