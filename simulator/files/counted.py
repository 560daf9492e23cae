"""Things by their number, in words."""


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun, and with the verb where the noun brings one along.

    Parameters
    ----------
    number
        How many; a float is written with at most ten digits.
    noun
        Of one.
    plural
        Of any other number; ``noun`` with an s if None.

    Returns
    -------
    str
        As in "1 link", "2,950 links" or, with "link leads" and "links lead", "0 links lead".
    """
    shown = f"{number:,.10g}" if isinstance(number, float) else f"{number:,}"
    return f"{shown} {noun if shown == '1' else plural or noun + 's'}"
