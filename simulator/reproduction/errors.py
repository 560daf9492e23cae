"""Error of a data set that an entry reads."""


class DataError(Exception):
    """A data set is missing or malformed; the message names the file."""
