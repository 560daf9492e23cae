"""A game that has no meaning for a mechanism or a campaign."""


class NotPlayableError(Exception):
    """Why an attack cannot be tried, as a sentence without its full stop."""
