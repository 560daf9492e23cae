"""HTML elements, with all user text escaped."""

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Safe(str):
    """HTML made by this module; any other string is escaped before it is shown."""

    __slots__ = ()


def text(value: object) -> Safe:
    """
    Escape a value unless it is already `Safe`.

    Parameters
    ----------
    value
        Anything with a string form.

    Returns
    -------
    html
        HTML that is safe inside an element or a quoted attribute.
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
    Make an element that shows a formatted number and keeps its full value as machine-readable data.

    Parameters
    ----------
    value
        The number.
    shown
        The formatted number.

    Returns
    -------
    html
        A ``data`` element, or the text alone where there is no number.
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
        The caption.
    heads
        The column heads.
    rows
        The table cells.
    class_
        A CSS class.

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
    Make a list of terms and their definitions.

    Parameters
    ----------
    pairs
        The terms and their definitions.
    class_
        A CSS class.

    Returns
    -------
    html
        A ``dl``.
    """
    items = (element("div", element("dt", term), element("dd", meaning)) for term, meaning in pairs)
    return element("dl", *items, class_=class_)


def figure(name: str, caption: object, *, described: str, class_: str = "plot") -> Safe:
    """
    Make the element in which the page's script draws a figure.

    Parameters
    ----------
    name
        The figure's key in the embedded data.
    caption
        The text under the figure.
    described
        The text alternative for screen readers.
    class_
        A CSS class.

    Returns
    -------
    html
        A ``figure``.
    """
    canvas = element("div", class_=class_, data_figure=name, role="img", aria_label=described)
    return element("figure", canvas, element("figcaption", caption))


def same_scale(group: str) -> Safe:
    """
    Make the checkbox that switches a group of figures between a common vertical scale and one for each.

    Parameters
    ----------
    group
        The group's name, as stored in its figures.

    Returns
    -------
    html
        A labelled, checked checkbox.
    """
    box = Safe(f'<input type="checkbox" checked data-same="{text(group)}">')
    return element("p", element("label", box, " the same vertical scale for every mechanism"), class_="controls")


def details(summary: object, *children: object) -> Safe:
    """
    Make a collapsible part.

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
    Serialize a value as JSON that no browser can interpret as markup.

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
