"""Formatting of numbers for display, and the console on which tables of them are printed."""

import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np

from mechanisms.privacy.rounding import NEGLIGIBLE, round_up, rounded_up

if TYPE_CHECKING:
    from rich.console import Console

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MISSING = "–"
LARGE = 1e12
"""Numbers of at least this size are written with a power of ten, whatever they count."""
LEAST_CHANCE = 1e-9
"""Probabilities below this are only said to be less."""
LEAST_WIDTH = 160
"""Columns of a console that is no terminal."""
_NUMBERS = (int, float, np.number, np.bool_)
"""Types of numbers in a frame; to ask whether a value supports `float` takes fifty times as long."""


def real(value: object) -> float | None:
    """
    Convert an entry of a frame to a number.

    Parameters
    ----------
    value
        The entry: a number, or a marker for a missing one.

    Returns
    -------
    number
        The number, or None.
    """
    return float(value) if isinstance(value, _NUMBERS) and not math.isnan(float(value)) else None


def number(value: float | None, *, up: bool = False) -> str:
    """
    Format a measured quantity with about three significant digits.

    Parameters
    ----------
    value
        The quantity; None and NaN are written as a dash.
    up
        Whether to round up, as a claim must be, and not to the nearest.

    Returns
    -------
    text
        For example ``1,234``, ``11.1``, ``0.45``, ``3.1 × 10⁻⁷``, ``∞``.
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0:
        return "0"
    if not 1e-3 <= size < 1e9:
        return _scientific_up(value) if up else scientific(value)
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.0995 else 4
    text = f"{round_up(value, decimals) if up else value:,.{decimals}f}"
    return text.replace("-", "−")


def signed(value: float | None) -> str:
    """Format a quantity as `number` does, with a plus sign where it is above 0."""
    return number(value) if value is None or value <= 0 else f"+{number(value)}"


def scientific(value: float, decimals: int = 1) -> str:
    """Format a number as a mantissa times a power of ten; one that is not finite as `number` does."""
    if not math.isfinite(value):
        return number(value)
    mantissa, exponent = f"{value:.{decimals}e}".split("e")
    return f"{mantissa.replace('-', '−')} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def at_least(value: float | None) -> str:
    """Format a bound from below as `number` does, but rounded down."""
    return number(value) if value is None or value <= 0 else number(-value, up=True).removeprefix("−")


def _scientific_up(value: float) -> str:
    """Return a number rounded up: with one decimal if it has no more, else with two."""
    place = -math.floor(math.log10(abs(value)))
    one = round_up(value, place + 1)
    return scientific(one) if math.isclose(one, value) else scientific(round_up(value, place + 2), 2)


def claimed(value: float | None) -> str:
    """
    Format a claimed ε or δ, rounded up.

    Parameters
    ----------
    value
        The number; None and NaN are written as a dash.

    Returns
    -------
    text
        For example ``4``, ``4.00`` for 3.9923, ``1.4 × 10⁻⁵``; ``< 10⁻²⁵`` near what sums of
        probabilities leave out, 10⁻³⁰ each.
    """
    if value is not None and 0 < value < NEGLIGIBLE:
        return "< 10⁻²⁵"
    if value is None or not math.isfinite(value) or value == 0 or not 1e-3 <= value <= 999:
        return number(value, up=True)
    return rounded_up(value)


def parameter(value: float | None) -> str:
    """
    Format a chosen or computed number that is no claim, without trailing zeros.

    Parameters
    ----------
    value
        The number; None and NaN are written as a dash.

    Returns
    -------
    text
        For example ``0.5``, ``1``, ``0.0032``, ``1.4 × 10⁻⁵``.
    """
    if value is None or not math.isfinite(value) or value == 0 or not 1e-3 <= abs(value) < 1000:
        return number(value)
    return f"{value:.3g}".replace("-", "−")


def related(letter: str, sign: str, value: float | None) -> str:
    """
    Format a claimed ε or δ with its symbol, or a bound above it.

    Parameters
    ----------
    letter
        The symbol.
    sign
        ``=`` or ``≤``.
    value
        Its value.

    Returns
    -------
    text
        For example ``δ = 0.45``, ``δ < 10⁻²⁵``.
    """
    written = claimed(value)
    return f"{letter} {written}" if written.startswith("<") else f"{letter} {sign} {written}"


def counted(count: float | None, noun: str) -> str:
    """
    Format a count with its noun, which must have a regular plural.

    Parameters
    ----------
    count
        The count.
    noun
        The noun in the singular.

    Returns
    -------
    text
        For example ``1 cell``, ``84 cells``.
    """
    return f"{whole(count)} {noun if count == 1 else noun + 's'}"


def whole(value: float | None) -> str:
    """
    Format a count with thousands separators.

    Parameters
    ----------
    value
        The count; None and NaN are written as a dash.

    Returns
    -------
    text
        For example ``20,000``.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return number(value) if abs(value) >= LARGE else f"{round(value):,}".replace("-", "−")


def percent(value: float | None, *, up: bool = False) -> str:
    """
    Format a share as a percentage.

    Parameters
    ----------
    value
        The share, between 0 and 1; None and NaN are written as a dash.
    up
        Whether to round up, as a claim must be, and not to the nearest.

    Returns
    -------
    text
        For example ``45 %``, ``95.2 %``, ``0.03 %``; never ``100 %`` or ``0 %`` by rounding alone.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    hundredths = 100 * value
    if 0 < hundredths < 0.01 or abs(hundredths) >= LARGE:
        return f"{number(hundredths, up=up)} %"
    close = [decimals for decimals in (0, 1) if math.isclose(round(hundredths, decimals), hundredths, abs_tol=1e-12)]
    decimals = min(close, default=2 if hundredths < 1 else 1)
    shown = round_up(hundredths, decimals) if up else round(hundredths, decimals)
    return "over 99.9 %" if hundredths < 100 <= shown else f"{shown:.{decimals}f} %"


def of_hundred(share: float, exact: bool = True) -> str:  # noqa: FBT001, FBT002 - a filter of templates
    """
    Format a share as a number of 100 people.

    Parameters
    ----------
    share
        The share, between 0 and 1.
    exact
        Whether it is the share itself, rounded to the nearest, and not a bound, rounded up.

    Returns
    -------
    text
        For example ``about 47``, ``at most 48``; never 0 or 100 by rounding alone.
    """
    count = math.floor(100 * share + 0.5) if exact else math.ceil(100 * share - 1e-9)
    if count == 100 and share < 1:
        return "more than 99" if exact else "up to 100"
    return "less than 1" if count == 0 and share else f"{'about' if exact else 'at most'} {count}"


def chance(value: float | None) -> str:
    """
    Format a claimed probability, rounded up, so that a very small one can still be understood.

    Parameters
    ----------
    value
        The probability.

    Returns
    -------
    text
        For example ``45 %``, ``1 in 52,000``, ``less than 1 in a billion``.
    """
    if value is None or value == 0 or not math.isfinite(value) or value >= 1e-3:
        return percent(value, up=True)
    if value < LEAST_CHANCE:
        return "less than 1 in a billion"
    odds = 1 / value
    return f"1 in {-round_up(-odds, 1 - math.floor(math.log10(odds))):,.0f}"


def duration(seconds: float | None) -> str:
    """
    Format a wall time.

    Parameters
    ----------
    seconds
        The time in seconds.

    Returns
    -------
    text
        For example ``0.42 s`` or ``2 min 5 s``.
    """
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if abs(seconds) >= LARGE:
        return f"{number(seconds)} s"
    if seconds >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    return f"{seconds:.3f} s" if seconds < 0.1 else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def size(count: float | None) -> str:
    """
    Format a number of bytes.

    Parameters
    ----------
    count
        The number of bytes.

    Returns
    -------
    text
        For example ``3.2 MB``.
    """
    if count is None or not math.isfinite(count):
        return MISSING
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB" if abs(value) < LARGE else f"{number(value)} TB"


def listed(words: Sequence[str]) -> str:
    """
    Join words with commas and a final "and".

    Parameters
    ----------
    words
        The words.

    Returns
    -------
    text
        For example ``a, b and c``.
    """
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} and {words[-1]}"


def sentence_case(words: str) -> str:
    """Return a text with its first letter in upper case."""
    return words[:1].upper() + words[1:]


def inner_case(label: str) -> str:
    """Return a label for use inside a sentence: its first letter in lower case, unless it is a proper name."""
    first, _, rest = label.partition(" ")
    proper = any(letter.isupper() for letter in first[1:] + rest[:1])  # THE, Sampling Privacy
    proper |= first.removesuffix("’s") in {"Hadamard", "Laplace", "Warner"}
    return label if proper else label[:1].lower() + label[1:]


def finite(values: Iterable[SupportsFloat | None]) -> list[float | None]:
    """
    Replace non-finite numbers, which JSON cannot represent, with None.

    Parameters
    ----------
    values
        Numbers, or None.

    Returns
    -------
    prepared
        The same values, with None for each that is not finite.
    """
    return [float(value) if value is not None and math.isfinite(value) else None for value in values]


def wide_console() -> "Console":
    """Return the console of standard output, as wide as the terminal or ``COLUMNS``.

    A pipe without ``COLUMNS`` has no width: its tables are wide, since narrow ones are hard to read, and its texts are
    not wrapped.
    """
    from rich.console import Console  # noqa: PLC0415 - for commands only

    console = Console()
    wide = console.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    return console if wide else Console(width=LEAST_WIDTH, soft_wrap=True)
