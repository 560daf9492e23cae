"""How moments are written in files."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator

from scenarios.section import rule

_EXAMPLE = datetime(2013, 11, 28, 17, 42)  # noqa: DTZ001 - written and read back, of no zone


def _time_format(text: str) -> str:
    # What is written and read back is the same only if year, month, day and time of day are all in it, once.
    zone = text.replace("%z", "+0000").replace("%Z", "UTC")
    try:
        back = datetime.strptime(_EXAMPLE.strftime(zone), zone)  # noqa: DTZ007 - as above
    except ValueError:
        back = None
    if back != _EXAMPLE:
        raise rule('must say how a date and a time of day are written, as "%d/%m/%Y %H:%M:%S"')
    return text


TimeFormat = Annotated[str, AfterValidator(_time_format)]
"""How dates with times of day are written, as ``strptime`` has it."""
