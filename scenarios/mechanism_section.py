"""What every ``[[mechanisms]]`` section has in common."""

from typing import Any

from pydantic import Field

from scenarios.section import Name, Section, without_default


class MechanismSection(Section):
    """A mechanism: its kind, its name in results, and what it is made with."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What the mechanism is made with: every key given or defaulted, but its name and kind."""
        return self.model_dump(exclude={"name", "kind"}, exclude_none=True)


class NamedByKind(MechanismSection):
    """A mechanism that goes by its kind where it is given no name."""

    kind: str
    name: Name = Field(default="", json_schema_extra=without_default)
    """Its name in key paths and results, no two alike; left out, the kind."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Name it after its kind where it has no name."""
        return {"name": str(given.get("kind")), **given}
