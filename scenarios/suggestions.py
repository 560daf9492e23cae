"""Suggestion of the name that was probably meant, in the message about a name that does not exist."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def suggestion(received: object, known: Iterable[str] | Mapping[str, str]) -> str:
    """Return a question that names the known text closest to the one received, or "" if none is close.

    Case is ignored. A mapping has the text to suggest for each name that may have been meant.
    """
    meant = known if isinstance(known, Mapping) else {name: name for name in known}
    folded = {name.casefold(): name for name in meant}
    near = get_close_matches(received.casefold(), folded, n=1) if isinstance(received, str) else []
    return f" (did you mean {meant[folded[near[0]]]}?)" if near else ""
