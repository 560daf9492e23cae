"""``[aggregation]``: who adds up the reports."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from scenarios.faults import Breach
from scenarios.section import Known, Section, without_default

FEWEST_SHARES = 2
MOST_SHARES = 255

_CANNOT_PAIR = {
    "per_round": "its servers would have to compare who answered in which round, and so link the answers",
    "shuffled": "its server has nothing that tells one report from another",
}


class Aggregation(Section):
    """Who adds up the reports."""

    kind: Literal["trusted", "per_round", "shuffled", "secret_shared"] = "trusted"
    """One server that sees every report; one a round; one behind a mixer that takes the names off; or several that
    hold shares of each report."""
    servers: Annotated[int, Field(ge=1, le=MOST_SHARES)] | None = Field(default=None, json_schema_extra=without_default)
    """Servers among which reports are shared, 2 or more (``secret_shared`` alone); left out, 2."""
    paired: bool = False
    """Whether only devices heard in every round are counted (``secret_shared`` and ``trusted``)."""
    robust: bool = False
    """Whether devices prove that what they share is a report; where servers read reports it changes nothing."""
    handles: Literal["device", "query"] = Field(default="device", json_schema_extra=without_default)
    """What reports are filed under: the device's number, or a one-time pseudonym, new in each query.

    Left out, the device's number; paired shares are filed under pseudonyms."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fill in the number of servers and the handles, which hang on the kind."""
        shared = given.get("kind") == "secret_shared"
        servers = {"servers": FEWEST_SHARES} if shared and given.get("servers") is None else {}
        handles = "query" if shared and given.get("paired") is True else "device"
        return {"handles": handles, **given, **servers}

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for servers, pairing and handles that the kind cannot have."""
        if not known.has("kind"):
            return
        kind = known["kind"]
        if known.has("servers"):
            yield from _servers(kind, known["servers"])
        if known.get("paired") and kind in _CANNOT_PAIR:
            yield Breach(("paired",), f'must be false where kind = "{kind}": {_CANNOT_PAIR[kind]}', value=True)
        if known.get("paired") and kind == "secret_shared" and known.get("handles") == "device":
            words = 'must be "query" where shares are paired: they are filed under one-time pseudonyms'
            yield Breach(("handles",), words, "device")
        if known.get("handles") == "query" and kind == "shuffled":
            words = 'must be left out where kind = "shuffled": its mixer knows devices, and its server has no handles'
            yield Breach(("handles",), words, "query")


def _servers(kind: str, servers: int) -> Iterator[Breach]:
    if kind == "secret_shared":
        if servers < FEWEST_SHARES:
            words = f'must be at least {FEWEST_SHARES} where kind = "{kind}": a single server would hold whole reports'
            yield Breach(("servers",), words, servers)
    elif kind == "per_round":
        yield Breach(("servers",), 'goes with kind = "secret_shared": per_round has a server for each round', servers)
    elif servers != 1:
        yield Breach(("servers",), f'goes with kind = "secret_shared": {kind} has one server', servers)
