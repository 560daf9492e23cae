"""Colours, symbols and dashes; a mechanism has the same ones in every chart."""

from collections.abc import Iterable
from typing import NamedTuple


class Style(NamedTuple):
    """A colour, a plotted symbol, the same symbol as a character, and a dash, that belong together.

    What is hollow has open symbols and bars.
    """

    colour: str
    symbol: str = "circle"
    sign: str = "●"
    dash: str = "solid"
    hollow: bool = False


STYLES = (
    Style("#0072B2", "circle", "●", "solid"),
    Style("#D55E00", "diamond", "◆", "dash"),
    Style("#009E73", "square", "■", "dot"),
    Style("#CC79A7", "triangle", "▲", "dashdot"),
    Style("#6E5A00", "x", "✕", "longdash"),
    Style("#56B4E9", "cross", "✚", "longdashdot"),
    Style("#000000", "star", "★", "solid"),
)
"""Each colour is distinct from its neighbours' for every kind of colour vision."""
BASELINE = Style("#7b8794")
"""Of the estimates without privacy."""
PLAIN = Style("#3d4852")
"""Of what no mechanism made: theory, the truth, a guess without observation."""
PUBLISHED = Style("#3d4852", dash="dash", hollow=True)
"""Of numbers that a paper published."""

_USUAL = (
    ("sampling",),
    ("randomized", "response"),
    ("k-ary", "k_randomized"),
    ("optimised unary", "oue"),
    ("symmetric unary", "sue"),
    ("optimised local", "olh"),
    ("subset",),
)
"""How the labels of mechanisms begin that have the style of this place on every page that shows them."""


def numbered_style(place: int) -> Style:
    """Return the style of the series at a place, from 0; after the last style they repeat, hollow."""
    style = STYLES[place % len(STYLES)]
    return style if place < len(STYLES) else style._replace(hollow=True, dash="dot")


def styles_of(labels: Iterable[str]) -> dict[str, Style]:
    """
    Choose a style for each mechanism on a page.

    Parameters
    ----------
    labels
        Their names or titles.

    Returns
    -------
    styles
        By label. A well-known mechanism has the same style on every page; another, or a second one of the same name,
        has the first style that is left.
    """
    places: dict[str, int] = {}
    labels = list(dict.fromkeys(labels))
    for label in labels:
        usual = next((place for place, begins in enumerate(_USUAL) if label.lower().startswith(begins)), None)
        if usual is not None and usual not in places.values():
            places[label] = usual
    free = iter(place for place in range(len(labels) + len(STYLES)) if place not in places.values())
    return {label: numbered_style(places[label] if label in places else next(free)) for label in labels}
