"""A protocol as a table: what each kind of device answers in each round, with what probability."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mechanisms.algebra.exact import Number, exact_probability
from mechanisms.parameter import ParameterError, check_integer

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
