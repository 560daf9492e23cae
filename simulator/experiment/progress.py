"""Progress: what a run tells whoever is waiting for it."""

from typing import Protocol


class Progress(Protocol):
    """Hears how far a run is."""

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """Hear that the phase `name` begins; `until_s` is where its simulated time ends, if it has any."""

    def advance_to(self, time_s: float) -> None:
        """Hear that the simulation has come to `time_s`."""


class Silent:
    """A progress that nobody watches."""

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """Hear that the phase `name` begins; `until_s` is where its simulated time ends, if it has any."""

    def advance_to(self, time_s: float) -> None:
        """Hear that the simulation has come to `time_s`."""
