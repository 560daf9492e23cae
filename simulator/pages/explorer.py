"""The page to play with: two designs side by side, whose numbers a local server or closed forms in the page compute."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from mechanisms import local
from mechanisms.declared import MECHANISMS, Parameter
from simulator.files.extras import own_version
from simulator.pages.document import Document, asset, render

SHOWN = {"probability", "number", "integer", "choice"}
"""Types of parameters that the page can set; the others keep their defaults."""
BEGIN = {"a.kind": "sampling_privacy", "b.kind": "k_randomized_response", "b.aggregation": "trusted"}
"""Start values where no scenario or run gives them."""


def _field(own: Parameter, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter of a mechanism as the page's script reads it, like the fields in explorer.json."""
    label = texts["labels"].get(own.name, own.name.replace("_", " ").capitalize())
    field = {"name": own.name, "label": label, "about": own.about.replace("`", "").partition("\n")[0], "unit": ""}
    if own.type == "choice":
        return {**field, "choices": own.choices, "value": own.default}
    whole, optional, budget = own.type == "integer", own.default is None, own.type == "number"
    value = own.default if isinstance(own.default, float) else texts["starts"].get(own.name, 0.3)
    least = 1e-6 if own.above_zero else own.least or 0.0
    most = own.most or (1e7 if whole else 1.0)
    ends = {"from": 0.01, "to": 20.0} if budget else {"from": least, "to": most}
    field |= {"least": least, "most": most, "value": texts["starts"].get(own.name) if optional else value, **ends}
    return {**field, "log": whole or budget, "whole": whole, "optional": optional}


def explorer_page(
    numbers: Literal["server", "page"],
    *,
    title: str = "Explore a design",
    source: str = "",
    start: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    help_page: str = "",
) -> str:
    """Return the page as one file, which loads nothing from elsewhere.

    Parameters
    ----------
    numbers
        Who computes them: a "server" that answers POST requests to ``numbers`` beside the page, or the "page".
    title, source
        The heading, and where the start values are from.
    start
        Start values by their names in the address, such as ``cells`` and ``a.kind``; the others have defaults.
    notes
        What of the scenario the page leaves out.
    help_page
        Address of a page that explains it, beside it; empty for none.
    """
    texts = json.loads(asset("explorer.json"))
    kinds = [
        {"kind": each.kind, "title": each.title, "about": each.about, "rounds": getattr(local, each.class_name).rounds}
        | {"parameters": [_field(own, texts) for own in each.parameters if own.type in SHOWN]}
        for each in MECHANISMS
    ]
    data = {name: texts[name] for name in ("city", "design", "scenario")}
    data |= {"kinds": kinds, "numbers": numbers, "start": urlencode({**BEGIN, **(start or {})})}
    return render(
        Document(
            title=title,
            kicker="explorer",
            heading=title,
            header="",
            sections=(),
            made_of=own_version(),
            values={"source": source, "notes": notes, "help": help_page, "about": texts["about"][numbers]},
            data=data,
            style=asset("explorer.css"),
            template="explorer",
            scripts=("closed_forms.js", "explorer.js"),
            asks_server=numbers == "server",
        )
    )
