"""Plain messages for the validation errors of a scenario."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scenarios.mechanisms import PLUG_IN_PATTERN
from scenarios.section import NAME_PATTERN, PARTY_PATTERN, SERVER_PATTERN, number

_PATTERNS = {
    NAME_PATTERN: "must be of letters, digits, '.', '_' and '-' alone, at least one",
    SERVER_PATTERN: 'must name a server: "server:1" and so on, or "mixer"',
    PARTY_PATTERN: 'must name a party: "server:1" and so on, "mixer", "network", or "vehicles:100" and so on',
    PLUG_IN_PATTERN: "a plug-in is named as package.module:Class",
}

_PLAIN = {
    "missing": "is required",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be a text in quotes",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}

_WITH_CONTEXT: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda context: f"must be above {number(context['gt'])}",
    "greater_than_equal": lambda context: f"must be at least {number(context['ge'])}",
    "less_than": lambda context: f"must be below {number(context['lt'])}",
    "less_than_equal": lambda context: f"must be at most {number(context['le'])}",
    "too_short": lambda context: f"must have at least {context['min_length']} item",
    "string_pattern_mismatch": lambda context: _PATTERNS[context["pattern"]],
    "rule": lambda context: str(context["rule"]),
}


def words_for(kind: str, message: str, context: Mapping[str, Any], received: Any) -> str:
    """Return a plain message for one validation error.

    Parameters
    ----------
    kind
        Type of the error, as the validator names it.
    message
        The validator's own message, for a type that has no message here.
    context
        Bounds and choices that belong to the type.
    received
        The value refused.

    Returns
    -------
    str
        The rule, to be placed after a key path.
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _WITH_CONTEXT:
        return _WITH_CONTEXT[kind](context)
    if kind == "literal_error":
        expected: str = context["expected"]
        choices = expected.split("'")[1::2]
        listed = expected.replace("'", '"')
        return f"must be {listed}{suggestion(received, choices)}"
    return message[:1].lower() + message[1:]


def choice_words(context: Mapping[str, Any], received: Any) -> str:
    """Return the message that lists the valid values of the key that selects the kind of a section."""
    choices = str(context["choices"]).split(", ")
    listed = ", ".join(f'"{choice}"' for choice in choices)
    or_else = f", or {context['or_else']}" if "or_else" in context else ""
    return f"must be one of {listed}{or_else}{suggestion(received, choices)}"


def suggestion(received: Any, known: Sequence[str]) -> str:
    """Return a question that names the known text closest to the one received, or "" if none is close."""
    near = difflib.get_close_matches(received, known, n=1) if isinstance(received, str) else []
    return f" (did you mean {near[0]}?)" if near else ""
