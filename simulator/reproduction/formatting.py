"""Formatting of reproduced values for display."""

import math

from simulator.reproduction.entry import Paper, Reproduction, Row, Value

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NOTHING = "–"


def shown(value: Value) -> str:
    """Return a value as text: four significant digits of a float, every digit of an integer.

    Parameters
    ----------
    value
        A value of a row; None is written as a dash.

    Returns
    -------
    text
        For example ``1,234``, ``24.39``, ``6.83 × 10⁻¹⁰``, ``∞``, ``yes``.
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return _real(value)


def _real(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0:
        return "0"
    if not 1e-3 <= size < 1e7:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa.replace('-', '−')} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    decimals = max(0, 3 - math.floor(math.log10(size)))
    text = f"{value:,.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def verdict(row: Row) -> str:
    """Return in words whether a row agrees."""
    if row.agrees is None:
        return "not published"
    return "agrees" if row.agrees else "differs"


def counts(done: Reproduction) -> tuple[int, int, int]:
    """Return the numbers of rows that agree, differ, and have no published value to compare with."""
    verdicts = [row.agrees for row in done.rows]
    return verdicts.count(True), verdicts.count(False), verdicts.count(None)


def tally(done: Reproduction, paper: Paper = "SP") -> str:
    """Return a sentence that states how many of an entry's rows agree.

    Parameters
    ----------
    done
        The result of the entry.
    paper
        The paper it belongs to: crowdveil's own tables compare theory with simulation, without published values.

    Returns
    -------
    text
        For example ``22 of 24 published values agree; 3 more have none to agree with``.
    """
    if done.skipped is not None:
        return "skipped"
    agree, differ, new = counts(done)
    published = agree + differ
    more = f"{new} more {'has' if new == 1 else 'have'} none to agree with"
    if not published:
        return f"nothing published as a number; {new} {'value' if new == 1 else 'values'} computed"
    whose = "expected" if paper == "crowdveil" else "published"
    words = f"{agree} of {published} {whose} {'value agrees' if published == 1 else 'values agree'}"
    return f"{words}; {more}" if new else words
