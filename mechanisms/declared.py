"""Every built-in mechanism, declared once: its parameters with their bounds and meaning, its title, what it can do.

Scenario files, the checks of the classes, the page of keys, the planner and messages read these declarations. A
user's own mechanism declares itself the same way, by a class attribute ``declared``, and is then checked, planned and
evaluated like the built-in ones. Nothing here needs numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from mechanisms.parameter import (
    GREATEST,
    LEAST,
    ParameterError,
    check_chance,
    check_choice,
    check_integer,
    check_number,
)

REQUIRED: Final = object()
"""The default of a parameter that has none."""

Scale = Literal["log", "logit"]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a mechanism.

    Parameters
    ----------
    name : str
        Its key in a scenario file and its name in the class.
    about : str
        What it is, in one or two sentences.
    type : {"probability", "number", "integer", "choice", "probabilities", "blanks"}
        "probabilities" is a list of `length`; "blanks" is a probability, or a list of one for each cell.
    default : object
        None if the mechanism computes one; `REQUIRED` if there is none.
    least, most : float
        The bounds of a number or an integer, both allowed.
    above_zero : bool
        Whether a probability may not be 0.
    choices : tuple of str
        The values of a "choice".
    length : int
        The number of "probabilities".
    dial : {"log", "logit"} or None
        If a planner sets this parameter: the scale on which it is searched, "logit" for probabilities. A greater value
        must mean a smaller error and less privacy.
    """

    name: str
    about: str
    type: Literal["probability", "number", "integer", "choice", "probabilities", "blanks"] = "probability"
    default: Any = REQUIRED
    least: float | None = None
    most: float | None = None
    above_zero: bool = False
    choices: tuple[str, ...] = ()
    length: int = 0
    dial: Scale | None = None

    def check(self, value: Any) -> Any:
        """Return a valid value as a float, int, str or tuple of floats; None if it is omitted and has a default.

        A list of blanks is returned as it is: its length depends on the number of cells.

        Raises
        ------
        ParameterError
            If the value has another type or is out of bounds.
        """
        if value is None and self.default is None:
            return None
        match self.type:
            case "probability":
                value = check_chance(self.name, value, above_zero=self.above_zero)
            case "number":
                value = check_number(self.name, value, at_least=self.least, at_most=self.most)
            case "integer":
                least, most = int(self.least or 0), None if self.most is None else int(self.most)
                value = check_integer(self.name, value, at_least=least, at_most=most)
            case "choice":
                check_choice(self.name, value, self.choices)
            case "probabilities":
                if not isinstance(value, Sequence) or len(value) != self.length:
                    raise ParameterError(self.name, f"must be {self.length} probabilities", value)
                value = tuple(check_chance(self.name, share) for share in value)
        return value


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One mechanism.

    Parameters
    ----------
    kind : str
        Its kind in scenario files; empty for a user's own, which is named by its class.
    title : str
        Its name in plain words, in reports and plans.
    about : str
        What a device does, in one sentence.
    class_name : str
        The name of a built-in mechanism's class in `mechanisms.local`.
    parameters : tuple of Parameter
    capabilities : frozenset of str
        "exact": the server has the true counts; "sampled": published differences are counts of sampled devices;
        "divisible": one round with a parameter ``epsilon``, so that a campaign can divide a budget over its queries.
    """

    kind: str = ""
    title: str = ""
    about: str = ""
    class_name: str = ""
    parameters: tuple[Parameter, ...] = ()
    capabilities: frozenset[str] = frozenset()

    def check(self, mechanism: Any) -> None:
        """Check a mechanism's number of cells and each parameter that is an attribute of it; store the checked values.

        Raises
        ------
        ParameterError
            For the first value that is invalid.
        """
        check_integer("cells", mechanism.cells, at_least=1)
        for parameter in self.parameters:
            if hasattr(mechanism, parameter.name):
                value = parameter.check(getattr(mechanism, parameter.name))
                object.__setattr__(mechanism, parameter.name, value)  # dataclasses are frozen

    @property
    def dial(self) -> Parameter | None:
        """The parameter that a planner sets, or None."""
        return next((parameter for parameter in self.parameters if parameter.dial is not None), None)


def budget(name: str, about: str) -> Parameter:
    """Return a parameter ε, in 1e-6…50; a planner sets it if it is named ``epsilon``."""
    dial: Scale | None = "log" if name == "epsilon" else None
    return Parameter(name=name, about=about, type="number", least=LEAST, most=GREATEST, dial=dial)


def probability(name: str, about: str, *, above_zero: bool = False, default: Any = REQUIRED) -> Parameter:
    """Return a parameter that is a probability: 0 (unless `above_zero`), or 1e-20…1."""
    return Parameter(name=name, about=about, above_zero=above_zero, default=default)


def _choice(name: str, about: str, choices: tuple[str, ...], default: str) -> Parameter:
    return Parameter(name=name, about=about, type="choice", choices=choices, default=default)


def _count(name: str, about: str, *, least: int = 1, most: int | None = None, default: Any = None) -> Parameter:
    return Parameter(name=name, about=about, type="integer", least=least, most=most, default=default)


def _stay(about: str) -> Parameter:
    return Parameter(name="stay", about=about, type="probabilities", length=3, default=None)


def _estimated_from(default: str) -> tuple[Parameter, Parameter]:
    """Return the parameters of mechanisms whose reports are Yes, No or nothing."""
    return (
        _choice(
            "estimator",
            "Count to estimate from (Yes, No or silent), or the combination of least variance (``best``).",
            ("yes", "no", "silent", "best"),
            default,
        ),
        probability(
            "yes_share",
            "Share of devices in the cell at which ``best`` has the least variance. Default: 1/(V + 1), devices evenly "
            "spread over the V cells and outside.",
            default=None,
        ),
    )


MOST_BUCKETS = 2**31 - 1
"""The greatest number of buckets of local hashing."""

_OF_ONE_REPORT = budget("epsilon", "ε of one report.")


def _budgeted(kind: str, title: str, about: str, class_name: str, *others: Parameter) -> Declared:
    """Return a mechanism of one round with a required ε; "outside every cell" is one more possible truth."""
    return Declared(
        kind=kind,
        title=title,
        about=about,
        class_name=class_name,
        parameters=(_OF_ONE_REPORT, *others),
        capabilities=frozenset({"divisible"}),
    )


MECHANISMS: Final = (
    Declared(
        kind="no_privacy",
        title="Exact reports",
        about="Every device reports its true cell: the baseline.",
        class_name="NoPrivacy",
        capabilities=frozenset({"exact"}),
    ),
    Declared(
        kind="sampling_privacy",
        title="Sampling Privacy",
        about="Two rounds: all devices answer with blanks, then the sampled devices answer with the truth.",
        class_name="SamplingPrivacy",
        parameters=(
            _choice(
                "form", "One answer among all cells, or a yes/no answer for each cell.", ("multi", "binary"), "multi"
            ),
            probability("sampling", "Probability that a device is sampled.", above_zero=True),
            probability("blank_zero", 'Probability of the blank 0, "in no cell".', default=None),
            Parameter(
                name="blank",
                about="Probability of each cell's blank: one number for all cells, or a list; in ``binary``, the "
                "probability of the blank 1.\n\nIf `blank_zero` and `blank` are both omitted, all blanks are equally "
                "likely.",
                type="blanks",
                default=None,
            ),
            probability(
                "refresh",
                "Probability that an unsampled device draws a new blank in round two (``multi`` alone).",
                default=0.0,
            ),
        ),
        capabilities=frozenset({"sampled"}),
    ),
    Declared(
        kind="randomized_response",
        title="Randomized response",
        about="Randomized response with two coins, for each cell as a yes/no question.",
        class_name="RandomizedResponse",
        parameters=(
            probability("first_coin", "Probability of answering with the truth.", above_zero=True, default=0.8),
            probability(
                "second_coin", 'Probability of "yes" if the first coin does not select the truth.', default=0.2
            ),
        ),
    ),
    Declared(
        kind="warner",
        title="Warner’s randomized response",
        about="A yes/no answer for each cell: the truth with probability `truthful`, else the opposite.",
        class_name="Warner",
        parameters=(probability("truthful", "Probability of a true answer; not 1/2."),),
    ),
    _budgeted(
        "k_randomized_response",
        "k-ary randomized response",
        "Report one of the cells, the true one e^ε times as likely as any other.",
        "KRandomizedResponse",
    ),
    _budgeted(
        "sue",
        "Symmetric unary encoding",
        "A bit for each cell, each flipped with the same probability.",
        "SymmetricUnary",
    ),
    _budgeted(
        "oue",
        "Optimised unary encoding",
        "A bit for each cell, with the two flip probabilities that give the least error.",
        "OptimisedUnary",
    ),
    _budgeted(
        "the",
        "Thresholded histogram encoding",
        "Add Laplace noise to the one-hot vector of the cell, and report which entries exceed a threshold.",
        "ThresholdHistogram",
        Parameter(
            name="threshold",
            about="Threshold of a noisy entry. Default: the best, which is between 1/2 and 1.",
            type="number",
            least=0.0,
            most=1.0,
            default=None,
        ),
    ),
    _budgeted(
        "olh",
        "Optimal local hashing",
        "Hash the cells onto a few buckets, and report a noisy bucket.",
        "LocalHashing",
        _count("buckets", "Number of buckets. Default: the best.", least=2, most=MOST_BUCKETS),
    ),
    _budgeted(
        "subset_selection",
        "Subset selection",
        "Report a set of cells that contains the true one with a higher probability than any other.",
        "SubsetSelection",
        _count("size", "Number of cells in the set, at most V. Default: the best."),
    ),
    _budgeted("hadamard_response", "Hadamard response", "Report an index of a Hadamard code.", "HadamardResponse"),
    Declared(
        kind="longitudinal_unary",
        title="Memoised unary encoding",
        about="A permanent noisy bit for each cell, stored by the device and randomized again in every query.",
        class_name="LongitudinalUnary",
        parameters=(
            budget("epsilon_permanent", "ε of any number of reports about one place."),
            budget("epsilon_first", "ε of one report; below `epsilon_permanent`."),
            _choice("permanent", "How the permanent bits are drawn.", ("optimised", "symmetric"), "optimised"),
        ),
    ),
    Declared(
        kind="distributed_laplace",
        title="Distributed Laplace",
        about="Add each device's share of discrete Laplace noise to its report: for servers that see sums only.",
        class_name="DistributedLaplace",
        parameters=(
            budget("epsilon", "ε of the published sums."),
            _count(
                "devices",
                "Number of devices among which the noise is divided; if fewer are counted, there is less noise and the "
                "run claims less privacy.",
                default=REQUIRED,
            ),
        ),
    ),
    Declared(
        kind="sampling_and_noise",
        title="Sampling and noise",
        about="Report only if sampled (SP eq 1, ALP eq 2).",
        class_name="SamplingAndNoise",
        parameters=(
            probability("sampling", "Probability that a device in the cell is sampled.", above_zero=True),
            probability(
                "sampling_no",
                "Probability that a device not in the cell is sampled. Default: `sampling`, and then nothing can be "
                "estimated.",
                default=None,
            ),
            _choice(
                "says", "Report of a sampled device: Yes (``noise``), or its own value.", ("noise", "value"), "noise"
            ),
        ),
    ),
    Declared(
        kind="sampled_response",
        title="Sampled randomized response",
        about="Report only if sampled, by randomized response (SP eqs 2-5, ALP eqs 3-4).",
        class_name="SampledResponse",
        parameters=(
            probability("sampling", "Probability that a device in the cell is sampled.", above_zero=True),
            probability("first_coin", "Probability that a sampled device answers with the truth.", above_zero=True),
            probability("second_coin", "Probability of Yes if it does not."),
            probability(
                "sampling_no",
                "Probability that a device not in the cell is sampled. Default: `sampling`.",
                default=None,
            ),
            *_estimated_from("yes"),
        ),
    ),
    Declared(
        kind="anonymized_local",
        title="Anonymized Local Privacy",
        about="Answer Yes, No or nothing (ALP eqs 6-7).",
        class_name="AnonymizedLocal",
        parameters=(
            probability("sampling_yes_one", "π_Y1."),
            probability("sampling_yes_two", "π_Y2; with π_Y1 at most 1."),
            probability("sampling_no", "π_No."),
            probability("first_coin", "π_1."),
            probability("second_coin", "π_2."),
            probability("third_coin", "π_3."),
            *_estimated_from("best"),
        ),
    ),
    Declared(
        kind="anonymized_first_attempt",
        title="Anonymized Local Privacy, first attempt",
        about="Two answers over two outputs: the documented failure whose error grows (ALP eqs 28-35).",
        class_name="AnonymizedFirstAttempt",
        parameters=(probability("base", "π_⊥1."), probability("shift_yes", "π_Y."), probability("shift_no", "π_N.")),
    ),
    Declared(
        kind="anonymized_cancelling",
        title="Anonymized Local Privacy, cancelling",
        about="Two answers over three outputs: constant error, no deniability (ALP eqs 36-45).",
        class_name="AnonymizedCancelling",
        parameters=(probability("shift", "π_Y = π_N.", above_zero=True), _stay("π_⊥1, π_⊥2, π_⊥3. Default: equal.")),
    ),
    Declared(
        kind="anonymized_deniable",
        title="Anonymized Local Privacy, deniable",
        about="Three answers over three outputs: deniability, and an error that grows (ALP eqs 46-55).",
        class_name="AnonymizedDeniable",
        parameters=(
            probability("shift", "s, the share of devices that is shifted.", above_zero=True),
            probability("yes_second", "y₁."),
            probability("yes_third", "y₂."),
            probability("no_second", "n₁."),
            probability("no_third", "n₂."),
            probability("onward", "c."),
            probability("onward_yes", "c_Y; 0 in the paper.", default=0.0),
            _stay("π_⊥1, π_⊥2, π_⊥3 of the devices that are not shifted. Default: equal."),
        ),
    ),
)
"""The declarations of the built-in mechanisms, in the order in which they are listed."""


def declaration(kind: str) -> Declared:
    """Return the declaration of a built-in mechanism, by its kind."""
    return next(each for each in MECHANISMS if each.kind == kind)
