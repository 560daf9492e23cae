"""Values as bytes that hold no code: their arrays, the rest as JSON, and a digest of both."""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

Classes = Mapping[str, type]
"""The classes that a value may be made of, by name: dataclasses and named tuples, whose fields are their arguments."""

_SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple, "frozenset": frozenset}
_DIGEST_NBYTES = hashlib.sha256().digest_size


def to_bytes(value: object, *, name: str, classes: Classes) -> bytes:
    """Return a value as bytes.

    Parameters
    ----------
    value
        Made of None, truth values, numbers, texts, arrays without objects, lists, tuples, frozen sets, mappings with
        texts as keys, and `classes`.
    name
        Name of the value, a part of the digest: bytes that are kept under another name are refused.
    classes
        The classes that it may be made of.

    Raises
    ------
    TypeError
        If it is made of anything else.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    form = json.dumps(_form_of(value, arrays, classes)).encode()
    stream = io.BytesIO()
    numbered = {str(number): array for number, array in enumerate(arrays)}
    np.savez(stream, allow_pickle=False, form=np.frombuffer(form, dtype=np.uint8), **numbered)
    content = stream.getvalue()
    return _digest(name, content) + content


def from_bytes(content: bytes, *, name: str, classes: Classes) -> Any:
    """Return the value that `to_bytes` wrote; of the same name and classes.

    Raises
    ------
    ValueError
        If the bytes are not as they were written.
    """
    digest, held = content[:_DIGEST_NBYTES], content[_DIGEST_NBYTES:]
    if digest != _digest(name, held):
        raise ValueError(f"{name}: the content does not have its digest")
    with np.load(io.BytesIO(held), allow_pickle=False) as stored:
        arrays = dict(stored)
    return _value_of(json.loads(arrays["form"].tobytes()), arrays, classes)


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _form_of(value: Any, arrays: list[np.ndarray[Any, Any]], classes: Classes) -> Any:
    """Return a value as JSON has it: what is not plain is an object of one key, which tells how to make it."""
    kind = type(value)
    if value is None or kind in {bool, int, float, str}:
        return value
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        number = next((number for number, array in enumerate(arrays) if array is value), len(arrays))
        if number == len(arrays):
            arrays.append(np.asarray(value))
        return {"array" if kind is np.ndarray else "number": number}
    if kind.__name__ in _SEQUENCES and kind is _SEQUENCES[kind.__name__]:
        return {kind.__name__: [_form_of(each, arrays, classes) for each in value]}
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {"mapping": {key: _form_of(each, arrays, classes) for key, each in value.items()}}
    if classes.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} is none of {', '.join(classes)}")
    # A class's own __getstate__ says what of it is kept.
    named = getattr(value, "_asdict", None)
    state = named() if named else value.__getstate__()
    names = state if named else [field.name for field in fields(value)]
    return {"made": [kind.__name__, {name: _form_of(state[name], arrays, classes) for name in names}]}


def _value_of(form: Any, arrays: Mapping[str, np.ndarray[Any, Any]], classes: Classes) -> Any:
    """Return the value from which `_form_of` made the form."""
    if not isinstance(form, dict):
        return form
    ((tag, held),) = form.items()
    if tag in {"array", "number"}:
        return arrays[str(held)] if tag == "array" else arrays[str(held)][()]
    if tag in _SEQUENCES:
        return _SEQUENCES[tag](_value_of(each, arrays, classes) for each in held)
    named = {name: _value_of(each, arrays, classes) for name, each in (held if tag == "mapping" else held[1]).items()}
    return named if tag == "mapping" else classes[held[0]](**named)
