"""The kinds of every role: section classes, which register themselves, and users' own classes and objects by name.

A section class is a kind of the role of its base class, under each name in the literal of its key. What builds it is in
`simulator.experiment.assembly`, in the module of the role. Nothing of a user's own is imported while a scenario is
read; `load` imports, and is called only with permission.
"""

import importlib
from collections.abc import Iterable, Mapping
from datetime import date, time
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenarios.section import Section

_SECTIONS: dict[str, dict[str, "type[Section]"]] = {}


def register(section: "type[Section]", names: Iterable[str]) -> None:
    """Add a section class to its role, under the names of its kinds."""
    _SECTIONS.setdefault(section.role, {}).update(dict.fromkeys(names, section))


def sections_of(role: str) -> "Mapping[str, type[Section]]":
    """Return the section classes of a role by kind: mechanism, roads, cells, engine, deployment, attack and so on."""
    return _SECTIONS[role]


def names_of(role: str, capability: str | None = None) -> tuple[str, ...]:
    """Return the names of a role's kinds, or of those that have a capability."""
    return tuple(name for name in _SECTIONS[role] if capability is None or is_capable(role, name, capability))


def is_built_in(role: str, name: object) -> bool:
    """Return whether a role has a built-in kind of this name; a user's own is none."""
    return isinstance(name, str) and name in _SECTIONS[role]


def is_capable(role: str, name: object, capability: str) -> bool:
    """Return whether a kind has a capability; a user's own has none."""
    if not isinstance(name, str) or name not in _SECTIONS[role]:
        return False
    capabilities = _SECTIONS[role][name].capabilities
    return capability in (capabilities.get(name, ()) if isinstance(capabilities, Mapping) else capabilities)


def title(role: str, name: str, default: str = "") -> str:
    """Return the name of a kind in reports; `default` for a user's own."""
    if name not in _SECTIONS[role]:
        return default
    written = _SECTIONS[role][name].title
    return written[name] if isinstance(written, Mapping) else written


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
    """Return whether a name stands for a class or an object given in Python, which needs no permission."""
    return name in _objects


def is_own_kind(role: str, name: object) -> bool:
    """Return whether a name stands for a user's kind: given in Python, dotted, or of an installed package."""
    if not isinstance(name, str) or is_built_in(role, name):
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
