"""Tabular protocols: the probability of each answer in each round, by kind of device, in exact fractions.

`Protocol` is the table. `Tallies` computes the expectation and the covariance of the published counts. `BinaryQuery` is
a table of the kinds "no" and "yes" in floats, for fleets.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from mechanisms.compiled import Floats, Mask
from mechanisms.parameter import ParameterError, check_integer

Number: TypeAlias = int | float | Fraction | str


def exact(field: str, value: object) -> Fraction:
    """Return a number as the fraction that was written.

    The rank of a matrix, and whether a variance is 0, depend on equalities that rounding would break. A float is
    taken as the shortest decimal that represents it, so 0.45 is 9/20; a third is ``Fraction(1, 3)`` or ``"1/3"``.

    Raises
    ------
    ParameterError
        If the value is not a finite number.
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
Real: TypeAlias = float | Fraction
Law: TypeAlias = Mapping[Answers, Fraction]
ROUNDING = 1e-9
"""Greatest rounding error of a sum of probabilities that were computed in floats: a claim must not depend on it."""


@dataclass(frozen=True, slots=True)
class Face:
    """One outcome of the categorical draw that a device makes before it uses its truth.

    Parameters
    ----------
    probability : Fraction, int, float or str
    answers : mapping of kind to answers
        The answers of a device of each kind for this outcome: an output for each round, or a str in a one-round
        protocol.
    """

    probability: Number
    answers: Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, eq=False)
class Protocol:
    """A protocol as a table: for each kind of device, the joint distribution of its answers over all rounds.

    Made by `from_faces` or `from_laws`. Devices answer independently of each other. A device's distribution depends
    only on its own kind, not on the number of other devices. Which outcome of the draw gives which kind's answer (the
    coupling of kinds) does not matter, because no result depends on one device under two truths at once.

    Parameters
    ----------
    name : str
    outputs : tuple of tuple of str
        The outputs of each round, in the order of the tallies.
    given : mapping of kind to {answers: Fraction or float}
        Only answers of positive probability. Fractions sum to exactly 1, floats up to rounding errors.
    """

    name: str
    outputs: tuple[tuple[str, ...], ...]
    given: Mapping[str, Mapping[Answers, Real]]

    def __post_init__(self) -> None:
        """Check that the answers of every kind have a probability distribution over the outputs."""
        if not self.given:
            raise ParameterError("laws", "must hold at least one kind of device", self.given)
        if not self.outputs:
            raise ParameterError("outputs", "must hold at least one round", self.outputs)
        for kind, law in self.given.items():
            rounding = 0.0 if _is_exact(law) else ROUNDING
            for answers, probability in law.items():
                if len(answers) != self.rounds or any(a not in o for a, o in zip(answers, self.outputs, strict=True)):
                    raise ParameterError(f"laws[{kind!r}]", f"must answer with outputs of {self.outputs}", answers)
                if not 0 < probability <= 1 + rounding:
                    raise ParameterError(f"laws[{kind!r}]", "must hold positive probabilities", probability)
            if not 1 - rounding <= total(*law.values()) <= 1 + rounding:
                rule = "must sum to exactly 1 (write a third as '1/3')"
                raise ParameterError(f"laws[{kind!r}]", rule, str(sum(Fraction(p) for p in law.values())))

    @cached_property
    def laws(self) -> Mapping[str, Law]:
        """The joint distribution of each kind's answers, exact; floats are divided by their sum, so that it is 1."""
        return {kind: _exact_law(law) for kind, law in self.given.items()}

    @classmethod
    def from_faces(
        cls, name: str, faces: Iterable[Face], *, outputs: Sequence[Sequence[str]] | None = None
    ) -> "Protocol":
        """Return the protocol of a categorical draw; outcomes that give a kind the same answers are added up.

        Parameters
        ----------
        name : str
        faces : iterable of Face
            The outcomes of the draw. Each has the answers of every kind; their probabilities sum to exactly 1.
        outputs : sequence of sequence of str, optional
            The outputs of each round; in order of appearance by default.

        Raises
        ------
        ParameterError
            If a probability is invalid, the probabilities do not sum to 1, or a face lacks a kind or a round.
        """
        faces = tuple(faces)
        kinds = list(dict.fromkeys(kind for face in faces for kind in face.answers))
        laws: dict[str, dict[Answers, Number]] = {kind: {} for kind in kinds}
        for face in faces:
            if set(face.answers) != set(kinds):
                raise ParameterError(
                    "faces", f"must each have the answers of every kind, {kinds}", sorted(face.answers)
                )
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
        """Return the protocol of given joint distributions, {answers: probability} for each kind.

        In a one-round protocol, the answer may be a str.
        """
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
        """Return the name and the sizes."""
        outputs = " × ".join(str(len(round_)) for round_ in self.outputs)
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        return f"Protocol({self.name!r}, {len(self.kinds)} kinds, {rounds} of {outputs} outputs)"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of devices."""
        return tuple(self.given)

    @property
    def rounds(self) -> int:
        """Number of answers that a device gives."""
        return len(self.outputs)

    @property
    def answers(self) -> tuple[Answers, ...]:
        """All answers over all rounds that a device of some kind can give."""
        return tuple(dict.fromkeys(answers for law in self.given.values() for answers in law))

    def law(self, kind: str) -> Law:
        """Return the joint distribution of a kind's answers over all rounds."""
        return self.laws[self.check_kind("kind", kind)]

    def mass(self, kind: str, answers: Answers) -> float:
        """Return the probability of these answers from a device of a kind, as it was given if that was in floats."""
        return float(self.given[kind].get(answers, 0))

    def round_law(self, kind: str, round: int) -> dict[str, Fraction]:  # noqa: A002 - the paper's word
        """Return the distribution of a kind's answer in one round, from 1, with every output, also of probability 0."""
        check_integer("round", round, at_least=1, at_most=self.rounds)
        law = dict.fromkeys(self.outputs[round - 1], Fraction(0))
        for answers, probability in self.law(kind).items():
            law[answers[round - 1]] += probability
        return law

    def probability(self, kind: str, event: Collection[Answers]) -> Fraction:
        """Return the probability that the answers of a device of this kind are in the event."""
        return sum((p for answers, p in self.law(kind).items() if answers in event), Fraction(0))

    def check_kind(self, field: str, kind: str) -> str:
        """Return the kind; raise `ParameterError` if the protocol does not have it."""
        if kind not in self.given:
            raise ParameterError(field, f"must be one of {list(self.given)}", kind)
        return kind

    def check_population(self, population: Mapping[str, int]) -> dict[str, int]:
        """Return the number of devices of every kind, 0 for a kind that is not given."""
        for kind in population:
            self.check_kind("population", kind)
        return {
            kind: check_integer(f"population[{kind!r}]", population.get(kind, 0), at_least=0) for kind in self.given
        }


def total(*shares: Real) -> Real:
    """Return the sum of the shares, exact or correctly rounded."""
    return sum(shares) if all(isinstance(share, Fraction) for share in shares) else math.fsum(shares)


def _is_exact(law: Mapping[Answers, Real]) -> bool:
    return all(isinstance(probability, Fraction) for probability in law.values())


def _exact_law(law: Mapping[Answers, Real]) -> Law:
    """Return a distribution in fractions, as it is if it has fractions only."""
    parts = {answers: Fraction(probability) for answers, probability in law.items()}
    whole = Fraction(1) if _is_exact(law) else sum(parts.values(), Fraction(0))
    return {answers: part / whole for answers, part in parts.items()}


def _answers(given: str | Sequence[str]) -> Answers:
    """Return answers as a tuple, one output per round."""
    return (given,) if isinstance(given, str) else tuple(given)


ASKED = "N"


def label_of(round_: int, output: str) -> str:
    """Return the label of the count of an output in a round, from 1."""
    return f"C{round_}[{output}]"


@dataclass(frozen=True, slots=True)
class Count:
    """The number of devices whose answers are in a set.

    Parameters
    ----------
    label : str
        ``C2[1]`` for output 1 in round two, ``C[0,1]`` for 0 then 1, ``N`` for the devices asked.
    answers : frozenset of answers
        The set of answers over all rounds that are counted.
    """

    label: str
    answers: frozenset[Answers]


@dataclass(frozen=True, eq=False)
class Tallies:
    """The counts that an estimator may use, made by `by_round` or `linked`.

    Every count is a sum over devices. For n_k devices of kind k its expectation is Σ n_k·P_k(answers), and the
    covariance of two counts is Σ n_k·(P_k(A ∩ B) − P_k(A)·P_k(B)). This is one multinomial per kind; the joint
    distribution of the answers determines the covariance across rounds.

    Parameters
    ----------
    protocol : Protocol
    counts : tuple of Count
        With distinct labels.
    """

    protocol: Protocol
    counts: tuple[Count, ...]

    def __post_init__(self) -> None:
        """Raise `ParameterError` if there is no count or two have the same label."""
        if not self.counts or len(set(self.labels)) != len(self.counts):
            raise ParameterError("counts", "must be at least one, with distinct labels", list(self.labels))

    @classmethod
    def by_round(cls, protocol: Protocol, *, silent: Collection[str] = (), asked: bool = False) -> "Tallies":
        """Return the counts of every output of every round, as published by servers that do not link reports.

        Parameters
        ----------
        protocol : Protocol
        silent : collection of str
            Outputs that cannot be counted, such as not answering.
        asked : bool
            Whether the number of devices asked, N, is known too. A round without silent outputs reveals it anyway.
        """
        counts = [
            Count(label_of(r, output), frozenset(a for a in protocol.answers if a[r - 1] == output))
            for r, outputs in enumerate(protocol.outputs, 1)
            for output in outputs
            if output not in silent
        ]
        return cls(protocol, (*counts, *_asked(protocol, asked=asked)))

    @classmethod
    def linked(cls, protocol: Protocol, *, asked: bool = False) -> "Tallies":
        """Return the counts of every combination of answers, as known to a server that links a device's reports."""
        counts = [Count(f"C[{','.join(answers)}]", frozenset([answers])) for answers in protocol.answers]
        return cls(protocol, (*counts, *_asked(protocol, asked=asked)))

    def __repr__(self) -> str:
        """Return the protocol's name and the labels."""
        return f"Tallies({self.protocol.name!r}, {', '.join(self.labels)})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the counts."""
        return tuple(count.label for count in self.counts)

    def only(self, *labels: str) -> "Tallies":
        """Return the tallies with these counts only, in this order; N may always be chosen."""
        known = {count.label: count for count in (*self.counts, *_asked(self.protocol, asked=True))}
        for label in labels:
            if label not in known:
                raise ParameterError("labels", f"must be among {list(known)}", label)
        return Tallies(self.protocol, tuple(known[label] for label in labels))

    def per_device(self, kind: str) -> tuple[Fraction, ...]:
        """Return the expected contribution of one device of a kind to each count, (counts,): a column of the map M."""
        return tuple(self.protocol.probability(kind, count.answers) for count in self.counts)

    def expected(self, population: Mapping[str, int]) -> dict[str, Fraction]:
        """Return the expected counts, M·n, by label.

        Parameters
        ----------
        population : mapping of kind to int
            Number of devices of each kind.
        """
        devices = self.protocol.check_population(population)
        columns = {kind: self.per_device(kind) for kind in devices}
        return {
            label: sum((n * columns[kind][i] for kind, n in devices.items()), Fraction(0))
            for i, label in enumerate(self.labels)
        }

    def covariance(self, population: Mapping[str, int]) -> tuple[tuple[Fraction, ...], ...]:
        """Return the exact covariance of the counts, (counts, counts)."""
        devices = {kind: n for kind, n in self.protocol.check_population(population).items() if n}
        columns = {kind: self.per_device(kind) for kind in devices}

        def entry(i: int, j: int) -> Fraction:
            both = self.counts[i].answers & self.counts[j].answers
            each = {kind: self.protocol.probability(kind, both) - c[i] * c[j] for kind, c in columns.items()}
            return sum((n * each[kind] for kind, n in devices.items()), Fraction(0))

        places = range(len(self.counts))
        return tuple(tuple(entry(i, j) for j in places) for i in places)


def _asked(protocol: Protocol, *, asked: bool) -> tuple[Count, ...]:
    """Return the count of all devices, which has no variance, if it is known."""
    return (Count(ASKED, frozenset(protocol.answers)),) if asked else ()


# Names of outputs in texts, where they differ.
SPOKEN = {"0": "No", "1": "Yes"}
# The outputs a device gives in all rounds, by number.
Numbers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BinaryQuery:
    """The joint law, in floats, of a device's answers to the question whether it is in a cell, in all rounds.

    Parameters
    ----------
    protocol : Protocol
        Its kinds are "no" and "yes", and all its rounds have the same outputs.
    """

    protocol: Protocol

    @property
    def rounds(self) -> int:
        """The number of rounds; each asks the question once."""
        return self.protocol.rounds

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs in texts, by number."""
        return tuple(SPOKEN.get(output, output) for output in self.protocol.outputs[0])

    @cached_property
    def _rows(self) -> dict[Numbers, Answers]:
        """The possible answers by the numbers of their outputs, in ascending order."""
        number = {output: i for i, output in enumerate(self.protocol.outputs[0])}
        return dict(sorted((tuple(number[output] for output in answers), answers) for answers in self.protocol.answers))

    @property
    def answers(self) -> tuple[Numbers, ...]:
        """The possible answers, one output's number per round, in ascending order."""
        return tuple(self._rows)

    @cached_property
    def yes(self) -> tuple[float, ...]:
        """The probability of each possible answer from a device in the cell."""
        return self._masses("yes")

    @cached_property
    def no(self) -> tuple[float, ...]:
        """The probability of each possible answer from a device that is not in the cell."""
        return self._masses("no")

    def _masses(self, kind: str) -> tuple[float, ...]:
        masses = np.array([self.protocol.mass(kind, answers) for answers in self._rows.values()])
        return tuple((masses / masses.sum()).tolist())

    @cached_property
    def given(self) -> Mask:
        """Whether an answer has an output in a round, (answers, rounds, outputs) bool."""
        return np.asarray(np.array(self.answers)[:, :, np.newaxis] == np.arange(len(self.outputs)))

    def in_round(self, round_: int) -> tuple[Floats, Floats]:
        """Return the answer distributions in a round, from 1, of a device in the cell and one not: (outputs,) each."""
        given = self.given[:, round_ - 1].astype(np.float64)
        return np.array(self.yes) @ given, np.array(self.no) @ given

    @property
    def only_from_yes(self) -> tuple[Numbers, ...]:
        """The answers that only a device in the cell can give."""
        return tuple(a for a, p, q in zip(self.answers, self.yes, self.no, strict=True) if p > 0.0 and q == 0.0)

    @property
    def only_from_no(self) -> tuple[Numbers, ...]:
        """The answers that only a device not in the cell can give."""
        return tuple(a for a, p, q in zip(self.answers, self.yes, self.no, strict=True) if q > 0.0 and p == 0.0)

    def name(self, answers: Numbers) -> str:
        """Return answers as text: ``(⊥1, ⊥3)``, or ``Yes`` if there is one round."""
        names = [self.outputs[output] for output in answers]
        return names[0] if len(names) == 1 else f"({', '.join(names)})"
