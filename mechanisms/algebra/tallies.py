"""What is published of everybody's answers: counts, their expectation and their covariance."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.algebra.protocol import Answers, Protocol
from mechanisms.parameter import ParameterError

ASKED = "N"


@dataclass(frozen=True, slots=True)
class Count:
    """How many devices answered within a set.

    Parameters
    ----------
    label : str
        ``C2[1]`` for output 1 in round two, ``C[0,1]`` for 0 then 1, ``N`` for the devices asked.
    answers : frozenset of answers
        The answers over all rounds that it counts.
    """

    label: str
    answers: frozenset[Answers]


@dataclass(frozen=True, eq=False)
class Tallies:
    """The counts that an estimator may use, made by `by_round` or `linked`.

    Every one is a sum over devices, so for n_k devices of kind k its expectation is Σ n_k·P_k(answers), and
    the covariance of two is Σ n_k·(P_k(A ∩ B) − P_k(A)·P_k(B)): one multinomial a kind, the joint law of its
    answers making the covariance across rounds.

    Parameters
    ----------
    protocol : Protocol
    counts : tuple of Count
        With distinct labels.
    """

    protocol: Protocol
    counts: tuple[Count, ...]

    def __post_init__(self) -> None:
        """Refuse two counts of one name, or none at all."""
        if not self.counts or len(set(self.labels)) != len(self.counts):
            raise ParameterError("counts", "must be at least one, with distinct labels", list(self.labels))

    @classmethod
    def by_round(cls, protocol: Protocol, *, silent: Collection[str] = (), asked: bool = False) -> "Tallies":
        """Count every output of every round, rounds apart: what servers publish that do not link reports.

        Parameters
        ----------
        protocol : Protocol
        silent : collection of str
            Outputs that nobody can count, such as not answering.
        asked : bool
            Whether the number of devices asked, N, is known beside them. A round without silent outputs tells
            it anyway.
        """
        counts = [
            Count(f"C{r + 1}[{output}]", frozenset(a for a in protocol.answers if a[r] == output))
            for r, outputs in enumerate(protocol.outputs)
            for output in outputs
            if output not in silent
        ]
        return cls(protocol, (*counts, *_asked(protocol, asked=asked)))

    @classmethod
    def linked(cls, protocol: Protocol, *, asked: bool = False) -> "Tallies":
        """Count every combination of answers: what a server can that links a device's reports."""
        counts = [Count(f"C[{','.join(answers)}]", frozenset([answers])) for answers in protocol.answers]
        return cls(protocol, (*counts, *_asked(protocol, asked=asked)))

    def __repr__(self) -> str:
        """Protocol and labels."""
        return f"Tallies({self.protocol.name!r}, {', '.join(self.labels)})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the counts."""
        return tuple(count.label for count in self.counts)

    def only(self, *labels: str) -> "Tallies":
        """Return the tallies with these counts alone, in this order; N is there for the asking."""
        known = {count.label: count for count in (*self.counts, *_asked(self.protocol, asked=True))}
        for label in labels:
            if label not in known:
                raise ParameterError("labels", f"must be among {list(known)}", label)
        return Tallies(self.protocol, tuple(known[label] for label in labels))

    def per_device(self, kind: str) -> tuple[Fraction, ...]:
        """Return what one device of a kind adds to each count in expectation, (counts,): a column of the map M."""
        return tuple(self.protocol.probability(kind, count.answers) for count in self.counts)

    def expected(self, population: Mapping[str, int]) -> dict[str, Fraction]:
        """Return the expected counts, M·n, by label.

        Parameters
        ----------
        population : mapping of kind to int
            Devices of each kind.
        """
        devices = self.protocol.check_population(population)
        columns = {kind: self.per_device(kind) for kind in devices}
        return {
            label: sum((n * columns[kind][i] for kind, n in devices.items()), Fraction(0))
            for i, label in enumerate(self.labels)
        }

    def covariance(self, population: Mapping[str, int]) -> tuple[tuple[Fraction, ...], ...]:
        """Return the covariance of the counts, (counts, counts), exactly."""
        devices = {kind: n for kind, n in self.protocol.check_population(population).items() if n}
        columns = {kind: self.per_device(kind) for kind in devices}

        def entry(i: int, j: int) -> Fraction:
            both = self.counts[i].answers & self.counts[j].answers
            each = {kind: self.protocol.probability(kind, both) - c[i] * c[j] for kind, c in columns.items()}
            return sum((n * each[kind] for kind, n in devices.items()), Fraction(0))

        places = range(len(self.counts))
        return tuple(tuple(entry(i, j) for j in places) for i in places)


def _asked(protocol: Protocol, *, asked: bool) -> tuple[Count, ...]:
    """Return the count of everybody, which has no variance, if it is known."""
    return (Count(ASKED, frozenset(protocol.answers)),) if asked else ()
