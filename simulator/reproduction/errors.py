"""Errors of reproductions that a user can correct."""


class ReproductionError(ValueError):
    """The user's request cannot be carried out: no such entry, or the output cannot be written."""


class DataError(Exception):
    """A data set is missing or malformed; the message names the file."""
