"""What a scenario calls its data owners."""

from typing import Annotated

from pydantic import Field

Word = Annotated[str, Field(min_length=1, max_length=40)]

Called = Annotated[tuple[Word, Word], Field(strict=False)]
"""One of them and several, as ["patient", "patients"]."""

VEHICLES: tuple[str, str] = ("vehicle", "vehicles")
