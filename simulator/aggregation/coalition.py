"""Coalition: the parties that pool what they stored."""

from collections.abc import Iterable
from dataclasses import dataclass

from mechanisms.parameter import ParameterError

MIXER, NETWORK = "mixer", "network"
WORDS = '"server:1", "server:2", …, "mixer", "network" or "vehicles:N"'


@dataclass(frozen=True)
class Coalition:
    """A set of parties; made by `of`.

    Parameters
    ----------
    servers
        Their numbers, from 1.
    mixer, network
        Whether the mixer, or an eavesdropper on the network, is one of them.
    vehicles
        How many corrupted vehicles are.
    """

    servers: frozenset[int] = frozenset()
    mixer: bool = False
    network: bool = False
    vehicles: int = 0

    @classmethod
    def of(cls, parties: Iterable[str]) -> "Coalition":
        """Read names of parties.

        Parameters
        ----------
        parties
            "server:R", "mixer", "network", "vehicles:N"; at least one.

        Raises
        ------
        ParameterError
            If there are none, one is no party, or one is named twice.
        """
        names = [parties] if isinstance(parties, str) else list(parties)
        if not names:
            raise ParameterError("coalition", "must have a member", names)
        if len(set(names)) < len(names):
            raise ParameterError("coalition", "must name each party once", names)
        numbers: dict[str, list[int]] = {"server": [], "vehicles": []}
        for name in names:
            if name in {MIXER, NETWORK}:
                continue
            kind, _, number = name.partition(":")
            if kind not in numbers or not (number.isascii() and number.isdigit()) or int(number) < 1:
                raise ParameterError("coalition", f"must be made of {WORDS}", name)
            numbers[kind].append(int(number))
        if len(numbers["vehicles"]) > 1 or len(set(numbers["server"])) < len(numbers["server"]):
            raise ParameterError("coalition", "must name each party once", names)
        return cls(frozenset(numbers["server"]), MIXER in names, NETWORK in names, sum(numbers["vehicles"]))

    def check_within(self, parties: Iterable[str]) -> "Coalition":
        """Return the coalition if each of its servers and its mixer is one of a deployment's parties.

        Raises
        ------
        ParameterError
            Naming the parties there are.
        """
        there = list(parties)
        members = [f"server:{server}" for server in sorted(self.servers)] + [MIXER] * self.mixer
        for member in members:
            if member not in there:
                raise ParameterError("coalition", f"must be of parties there are ({', '.join(there)})", member)
        return self
