"""Suggestion of the name that was probably meant, in the message about a name that does not exist."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType


def suggestion(received: object, valid: Iterable[str], *, instead: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a question that names the known text closest to the one received, or "" if none is close.

    Case and the dashes of options are ignored. `instead` has the text to suggest in place of a known one.
    """
    folded = {name.casefold().lstrip("-"): name for name in valid}
    near = get_close_matches(received.casefold().lstrip("-"), folded, n=1) if isinstance(received, str) else []
    name = folded[near[0]] if near else ""
    return f" (did you mean {instead.get(name, name)}?)" if near else ""
