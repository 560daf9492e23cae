"""Permissions: whether a scenario file may import classes and read files outside its folder."""

import os
from dataclasses import dataclass

from pydantic import AfterValidator, ValidationInfo

from scenarios.errors import Fault, ScenarioError
from scenarios.section import rule

ALLOW_VARIABLE = "CROWDVEIL_ALLOW_PLUGINS"
UNTRUSTED_VARIABLE = "CROWDVEIL_UNTRUSTED"
PLUGIN_REFUSAL = (
    "a class that a scenario names is imported only with permission: --allow-plugins "
    f"(Python: allow_plugins=True; environment: {ALLOW_VARIABLE}=1)"
)


@dataclass(frozen=True)
class Permissions:
    """Permissions of a scenario.

    Attributes
    ----------
    allow_plugins
        Import the classes that the scenario names as ``package.module:Class``.
    untrusted
        Refuse plug-ins, files outside the scenario's folder and ``CROWDVEIL_DATA``, and engine ``sumo``.
    """

    allow_plugins: bool = False
    untrusted: bool = False

    @classmethod
    def of(cls, source: str, *, allow_plugins: bool = False, untrusted: bool = False) -> "Permissions":
        """Return the permissions given, combined with those of the environment variables.

        Parameters
        ----------
        source
            Name of the scenario, for the error message.
        allow_plugins, untrusted
            As given by the user; ``CROWDVEIL_ALLOW_PLUGINS=1`` and ``CROWDVEIL_UNTRUSTED=1`` have the same effect.

        Raises
        ------
        ScenarioError
            If `allow_plugins` is given together with `untrusted` or its environment variable.
        """
        untrusted = untrusted or os.environ.get(UNTRUSTED_VARIABLE, "0") not in {"", "0"}
        if allow_plugins and untrusted:
            words = f"--allow-plugins and --untrusted (or {UNTRUSTED_VARIABLE}=1) contradict each other: give one"
            raise ScenarioError(source, [Fault("", words)])
        allow_plugins = allow_plugins or os.environ.get(ALLOW_VARIABLE) == "1"
        return cls(allow_plugins and not untrusted, untrusted)


def trusted_only(words: str) -> AfterValidator:
    """Return a validator that refuses a value if the scenario is untrusted; `words` end the message."""

    def check(value: str, info: ValidationInfo) -> str:
        if permissions_of(info).untrusted:
            raise rule(f"is refused with --untrusted ({UNTRUSTED_VARIABLE}=1): {words}")
        return value

    return AfterValidator(check)


def permissions_of(info: ValidationInfo) -> Permissions:
    """Return the permissions of the scenario that is being validated."""
    permissions: Permissions = (info.context or {}).get("permissions", Permissions())
    return permissions
