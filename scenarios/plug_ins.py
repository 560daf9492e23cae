"""Names of users' own kinds: classes as ``package.module:Class``, kinds of installed packages, and objects in Python.

Nothing is imported while a scenario is read; `load` imports, and is called only with permission.
"""

import importlib
from collections.abc import Mapping
from datetime import date, time
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from scenarios.kinds import find_kind

GROUP = "crowdveil."
WORDS: Mapping[str, str] = {"deployment": "aggregator"}
"""Word for a role in the name of its group of entry points, if it is not the role's own name."""
OBJECT = "_object"
"""End of the name of an object."""
_PLAIN = (str, int, float, type(None), Mapping, list, tuple, date, time)
_objects: dict[str, Any] = {}


def name_object(value: Any) -> Any:
    """Return the name under which a class or an object stands in a scenario's tables; plain values as they are.

    A class has the name by which it can be imported, ``module:Class``, if it is at the top of its module and no other
    class has that name already. The names of objects end in ``_object``. All are found by these names, without
    permission, until the process ends; a saved scenario finds only what can be imported.
    """
    if isinstance(value, _PLAIN) or hasattr(value, "tolist"):
        return value
    named = value if isinstance(value, type) else type(value)
    base = name = f"{named.__module__}:{named.__name__}{'' if named is value else OBJECT}"
    number = 1
    while _objects.get(name, value) is not value:
        number += 1
        name = f"{base}_{number}"
    _objects[name] = value
    return name


def is_given(name: object) -> bool:
    """Return whether a name is that of a class or an object given in Python, which needs no permission."""
    return name in _objects


def is_own_kind(role: str, name: object) -> bool:
    """Return whether a name is that of a user's kind: given in Python, dotted, or of an installed package."""
    if not isinstance(name, str) or find_kind(role, name) is not None:
        return False
    return ":" in name or bool(_installed(role, name))


def load(role: str, name: str) -> Any:
    """Return the class or object of a user's kind, and import its module if necessary.

    Raises
    ------
    ImportError, AttributeError
        If there is no such module, it has no attribute of that name, or no package provides the kind.
    """
    if name in _objects:
        return _objects[name]
    module, colon, attribute = name.partition(":")
    if colon and attribute.endswith(OBJECT):
        raise ImportError("it was an object given in Python, which no file can name: give it again in Python")
    if colon:
        return getattr(importlib.import_module(module), attribute)
    for point in _installed(role, name):
        return point.load()
    raise ImportError(f"no installed package provides a kind {name!r} of {GROUP}{WORDS.get(role, role)}")


def _installed(role: str, name: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP + WORDS.get(role, role), name=name))
