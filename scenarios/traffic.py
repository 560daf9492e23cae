"""``[traffic]``: how many vehicles there are, where they go and what moves them."""

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from scenarios.driven_traffic import DrivenTraffic
from scenarios.static_traffic import StaticTraffic
from scenarios.sumo_traffic import SumoTraffic
from scenarios.trace_traffic import TraceTraffic

_DRIVEN = ("fleet", "agents")


def traffic_tag(value: Any) -> str | None:
    """Return which of the traffic sections a table is, by its engine; ``fleet`` where it names none."""
    found = value.get("engine", "fleet") if isinstance(value, dict) else getattr(value, "engine", None)
    if found in _DRIVEN:
        return "<driven>"
    return f"<{found}>" if isinstance(found, str) else None


Traffic = Annotated[
    Annotated[DrivenTraffic, Tag("<driven>")]
    | Annotated[SumoTraffic, Tag("<sumo>")]
    | Annotated[TraceTraffic, Tag("<trace>")]
    | Annotated[StaticTraffic, Tag("<static>")],
    Discriminator(
        traffic_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known engines",
        custom_error_context={"key": "engine", "choices": "fleet, agents, sumo, trace, static"},
    ),
]
