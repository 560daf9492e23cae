"""Tabular protocols: the probability of each answer in each round, by kind of device, in exact fractions.

`Protocol` holds the table. `tallies` and its companions give the expectation and the covariance of the published
counts.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mechanisms.parameter import ParameterError, check_integer

Number: TypeAlias = int | float | Fraction | str


def exact(field: str, value: object) -> Fraction:
    """Return a number as the fraction it was written as.

    Rank decisions, and whether a variance is 0, hang on equalities that rounding would break. A float is
    taken as the shortest decimal that prints it, so 0.45 is 9/20; a third is ``Fraction(1, 3)`` or ``"1/3"``.

    Raises
    ------
    ParameterError
        If it is no finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | str):
        raise ParameterError(field, "must be a number, or a fraction such as '1/3'", value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ParameterError(field, "must be finite", value)
        return Fraction(repr(float(value)))
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(field, "must be a number, or a fraction such as '1/3'", value) from None


def exact_probability(field: str, value: object, *, above_zero: bool = False) -> Fraction:
    """Return `value` as a fraction in [0, 1], or in (0, 1] with `above_zero`."""
    number = exact(field, value)
    if above_zero and not 0 < number <= 1:
        raise ParameterError(field, "must be a probability above 0", value)
    if not 0 <= number <= 1:
        raise ParameterError(field, "must be a probability, 0 to 1", value)
    return number


Answers: TypeAlias = tuple[str, ...]
Law: TypeAlias = Mapping[Answers, Fraction]


@dataclass(frozen=True, slots=True)
class Face:
    """A face of the die that is thrown before the truth is looked at.

    Parameters
    ----------
    probability : Fraction, int, float or str
    answers : mapping of kind to answers
        What a device of each kind then answers: an output for each round, or a str in a one-round protocol.
    """

    probability: Number
    answers: Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, eq=False)
class Protocol:
    """Kinds of devices, rounds, outputs, and for each kind the joint law of its answers over all rounds.

    Made by `from_faces` or `from_laws`. Devices answer independently of each other, and a device's law hangs
    on its own kind only, not on how many others there are. Which face gives which kind's answer (the coupling
    of kinds) does not matter: nothing below is about one device under two truths at once.

    Parameters
    ----------
    name : str
    outputs : tuple of tuple of str
        The outputs of each round, in the order tallies list them.
    laws : mapping of kind to {answers: Fraction}
        Only answers of positive probability, and they sum to exactly 1.
    """

    name: str
    outputs: tuple[tuple[str, ...], ...]
    laws: Mapping[str, Law]

    def __post_init__(self) -> None:
        """Check that every law is a distribution over the outputs."""
        if not self.laws:
            raise ParameterError("laws", "must hold at least one kind of device", self.laws)
        if not self.outputs:
            raise ParameterError("outputs", "must hold at least one round", self.outputs)
        for kind, law in self.laws.items():
            for answers, probability in law.items():
                if len(answers) != self.rounds or any(a not in o for a, o in zip(answers, self.outputs, strict=True)):
                    raise ParameterError(f"laws[{kind!r}]", f"must answer with outputs of {self.outputs}", answers)
                if not 0 < probability <= 1:
                    raise ParameterError(f"laws[{kind!r}]", "must hold positive probabilities", probability)
            if (total := sum(law.values())) != 1:
                rule = "must sum to exactly 1 (write a third as '1/3')"
                raise ParameterError(f"laws[{kind!r}]", rule, str(total))

    @classmethod
    def from_faces(
        cls, name: str, faces: Iterable[Face], *, outputs: Sequence[Sequence[str]] | None = None
    ) -> "Protocol":
        """Add up the faces that give a kind the same answers.

        Parameters
        ----------
        name : str
        faces : iterable of Face
            Every face says what every kind answers; their probabilities sum to exactly 1.
        outputs : sequence of sequence of str, optional
            Of each round; in order of appearance by default.

        Raises
        ------
        ParameterError
            If a probability is none, they do not sum to 1, or a face leaves out a kind or a round.
        """
        faces = tuple(faces)
        kinds = list(dict.fromkeys(kind for face in faces for kind in face.answers))
        laws: dict[str, dict[Answers, Number]] = {kind: {} for kind in kinds}
        for face in faces:
            if set(face.answers) != set(kinds):
                raise ParameterError("faces", f"must each say what every kind answers, {kinds}", sorted(face.answers))
            probability = exact_probability("faces", face.probability)
            for kind, given in face.answers.items():
                answers = _answers(given)
                laws[kind][answers] = Fraction(laws[kind].get(answers, 0)) + probability
        return cls.from_laws(name, laws, outputs=outputs)

    @classmethod
    def from_laws(
        cls,
        name: str,
        laws: Mapping[str, Mapping[str, Number] | Mapping[Answers, Number]],
        *,
        outputs: Sequence[Sequence[str]] | None = None,
    ) -> "Protocol":
        """Take each kind's joint law as it is: {answers: probability}, a str for the answer of a single round."""
        exact_laws: dict[str, Law] = {}
        for kind, law in laws.items():
            pairs = {_answers(given): exact_probability(f"laws[{kind!r}]", p) for given, p in law.items()}
            exact_laws[kind] = {answers: p for answers, p in pairs.items() if p}
        seen = [answers for law in exact_laws.values() for answers in law]
        if outputs is None:
            if len({len(answers) for answers in seen}) > 1:
                raise ParameterError("laws", "must answer the same number of rounds", sorted(map(len, seen)))
            outputs = [list(dict.fromkeys(column)) for column in zip(*seen, strict=True)]
        return cls(name, tuple(tuple(round_) for round_ in outputs), exact_laws)

    def __repr__(self) -> str:
        """Name and sizes."""
        outputs = " × ".join(str(len(round_)) for round_ in self.outputs)
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        return f"Protocol({self.name!r}, {len(self.kinds)} kinds, {rounds} of {outputs} outputs)"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of devices."""
        return tuple(self.laws)

    @property
    def rounds(self) -> int:
        """Answers a device gives."""
        return len(self.outputs)

    @property
    def answers(self) -> tuple[Answers, ...]:
        """What a device of some kind can answer over all rounds."""
        return tuple(dict.fromkeys(answers for law in self.laws.values() for answers in law))

    def law(self, kind: str) -> Law:
        """Return the joint law of a kind."""
        return self.laws[self.check_kind("kind", kind)]

    def round_law(self, kind: str, round: int) -> dict[str, Fraction]:  # noqa: A002 - the paper's word
        """Return the law of a kind's answer in one round, from 1: every output of it, 0 included."""
        check_integer("round", round, at_least=1, at_most=self.rounds)
        law = dict.fromkeys(self.outputs[round - 1], Fraction(0))
        for answers, probability in self.law(kind).items():
            law[answers[round - 1]] += probability
        return law

    def probability(self, kind: str, event: Collection[Answers]) -> Fraction:
        """Return the probability that a device of this kind answers within the event."""
        return sum((p for answers, p in self.law(kind).items() if answers in event), Fraction(0))

    def check_kind(self, field: str, kind: str) -> str:
        """Return the kind if the protocol has it."""
        if kind not in self.laws:
            raise ParameterError(field, f"must be one of {list(self.laws)}", kind)
        return kind

    def check_population(self, population: Mapping[str, int]) -> dict[str, int]:
        """Return the number of devices of every kind; a kind left out has none."""
        for kind in population:
            self.check_kind("population", kind)
        return {kind: check_integer(f"population[{kind!r}]", population.get(kind, 0), at_least=0) for kind in self.laws}


def _answers(given: str | Sequence[str]) -> Answers:
    """Return answers as a tuple, one output a round."""
    return (given,) if isinstance(given, str) else tuple(given)


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
