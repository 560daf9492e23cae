"""HTML elements, with all user text escaped."""

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Safe(str):
    """HTML that was made here; any other string is escaped before it is shown."""

    __slots__ = ()


def text(value: object) -> Safe:
    """
    Escape a value unless it is HTML made here.

    Parameters
    ----------
    value
        Anything with a string form.

    Returns
    -------
    html
        Safe to place in an element or a quoted attribute.
    """
    return value if isinstance(value, Safe) else Safe(escape(str(value)))


def element(tag: str, *children: object, **attributes: object) -> Safe:
    """
    Make an element.

    Parameters
    ----------
    tag
        Its name.
    *children
        Its content; strings are escaped.
    **attributes
        Its attributes; ``class_`` is class, underscores become hyphens, None is left out.

    Returns
    -------
    html
        The element.
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Safe(f"<{tag}{named}>{''.join(text(child) for child in children)}</{tag}>")


def data(value: float | None, shown: str) -> Safe:
    """
    Show a number, with its full value kept beside it for machines.

    Parameters
    ----------
    value
        The number.
    shown
        How it is shown.

    Returns
    -------
    html
        A ``data`` element, or the words alone where there is no number.
    """
    if value is None or math.isnan(value):
        return text(shown)
    return element("data", shown, value=repr(float(value)))


def table(
    caption: str, heads: Sequence[object], rows: Iterable[Sequence[object]], *, class_: str | None = None
) -> Safe:
    """
    Make a table whose first column names its rows.

    Parameters
    ----------
    caption
        What it shows.
    heads
        The column heads.
    rows
        The cells.
    class_
        A style.

    Returns
    -------
    html
        The table, in a box that scrolls sideways on a narrow screen.
    """
    head = element("tr", *(element("th", name, scope="col") for name in heads))
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", value) for value in row[1:])) for row in rows
    ]
    whole = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body), class_=class_
    )
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def definitions(pairs: Iterable[tuple[object, object]], *, class_: str | None = None) -> Safe:
    """
    Make a list of terms and what they are.

    Parameters
    ----------
    pairs
        The terms and their meanings.
    class_
        A style.

    Returns
    -------
    html
        A ``dl``.
    """
    items = (element("div", element("dt", term), element("dd", meaning)) for term, meaning in pairs)
    return element("dl", *items, class_=class_)


def figure(name: str, caption: object, *, described: str, class_: str = "plot") -> Safe:
    """
    Make the place where the page's script draws a figure.

    Parameters
    ----------
    name
        The figure's key in the embedded data.
    caption
        What stands under it.
    described
        What a reader who cannot see it hears.
    class_
        A style.

    Returns
    -------
    html
        A ``figure``.
    """
    canvas = element("div", class_=class_, data_figure=name, role="img", aria_label=described)
    return element("figure", canvas, element("figcaption", caption))


def same_scale(group: str) -> Safe:
    """
    Make the box that gives a group of figures one vertical scale, or each its own.

    Parameters
    ----------
    group
        The group's name, as its figures carry it.

    Returns
    -------
    html
        A labelled checkbox, ticked.
    """
    box = Safe(f'<input type="checkbox" checked data-same="{text(group)}">')
    return element("p", element("label", box, " the same vertical scale for every mechanism"), class_="controls")


def details(summary: object, *children: object) -> Safe:
    """
    Make a part that opens when asked.

    Parameters
    ----------
    summary
        Its title.
    *children
        Its content.

    Returns
    -------
    html
        A ``details`` element.
    """
    return element("details", element("summary", summary), *children)


def embedded(value: object) -> Safe:
    """
    Write a value as JSON that no browser can mistake for markup.

    Parameters
    ----------
    value
        Dicts, lists, strings and finite numbers.

    Returns
    -------
    json
        JSON without ``<``, ``>`` or ``&``.
    """
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    return Safe(plain)


def finite(values: Iterable[Any]) -> list[float | None]:
    """
    Prepare numbers for JSON.

    Parameters
    ----------
    values
        Numbers, or None.

    Returns
    -------
    prepared
        The same, with None for what is not finite.
    """
    return [float(value) if value is not None and math.isfinite(value) else None for value in values]
