"""``[fcd]``: floating-car data of a run, written for other tools."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from scenarios.errors import RuleViolation
from scenarios.section import NotNegative, Positive, Section, ValidFields, exceeds, number, rule

EPOCH = "2020-01-01T00:00:00Z"
_NEARLY_WHOLE = 1e-9


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise rule('must be a moment in ISO 8601, as "2020-01-01T00:00:00Z"') from None
    if _unix_s(moment) < 0 or _unix_s(moment) % 1:
        raise rule("must be a whole second from 1970 on")
    return text


def _unix_s(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Fcd(Section):
    """Positions of all vehicles at regular moments. They are the simulator's truth: no mechanism protects them."""

    every_s: Positive
    """Time between two moments, seconds."""
    formats: Annotated[tuple[Literal["sumo", "kepler", "parquet"], ...], Field(strict=False, min_length=1)] = ("sumo",)
    """``sumo``: fcd.xml.gz as SUMO exports; ``kepler``: trips.geojson for kepler.gl; ``parquet``: fcd.parquet."""
    from_s: NotNegative = 0.0
    """First moment, seconds of the run."""
    to_s: Positive | None = None
    """Latest moment, seconds of the run. Default: the end of the run."""
    epoch: Annotated[str, AfterValidator(_moment)] = EPOCH
    """For ``kepler``, which supports dates only: the date and time of second 0 of the run, UTC if without a zone."""

    @property
    def epoch_s(self) -> int:
        """Seconds from 1970 to second 0 of the run."""
        return int(_unix_s(datetime.fromisoformat(self.epoch)))

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for each conflict between moments and formats."""
        if known.has("from_s", "to_s") and known["from_s"] > known["to_s"]:
            yield RuleViolation(("from_s",), f"must be at most to_s = {number(known['to_s'])}", known["from_s"])
        formats = known.get("formats") or ()
        if len(set(formats)) < len(formats):
            yield RuleViolation(("formats",), "must differ", list(formats))
        for key in ("every_s", "from_s"):
            if "kepler" in formats and known.has(key) and abs(known[key] - round(known[key])) > _NEARLY_WHOLE:
                yield RuleViolation((key,), "must be whole seconds: kepler.gl's times are", known[key])


def broken_fcd(fcd: ValidFields, heading: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for each conflict between the moments and the run; paths start at the root."""
    if not (heading.has("duration_s") and fcd.has("every_s", "from_s")):
        return
    duration = heading["duration_s"]
    for key in ("from_s", "to_s"):
        if fcd.has(key) and exceeds(fcd[key], duration):
            yield RuleViolation(("fcd", key), f"must be at most scenario.duration_s = {number(duration)}", fcd[key])
