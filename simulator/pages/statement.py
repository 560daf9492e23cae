"""The privacy statement: one page that says what is collected, who learns what, how wrong it is, and what can fail."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mechanisms.parameter import ParameterError
from mechanisms.privacy.claim import Claim, ListedDelta
from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.pages.document import written
from simulator.results.statements import short_limit


def best_success(claim: Claim) -> tuple[float, bool]:
    """
    Return how often the best observer is right which of two places a device is in, if both are equally likely.

    Parameters
    ----------
    claim
        With δ at ε = 0, which is the distance of the two laws of what is observed; else the least bound that follows
        from each (ε, δ), since ``e^ε`` limits the odds both ways.

    Returns
    -------
    success, exact
        ``(1 + δ(0)) / 2``, and whether an observer reaches it; else it is an upper bound.
    """
    least, known = claim.delta(0.0), not isinstance(claim.curve, ListedDelta) or 0.0 in dict(claim.points)
    for epsilon, delta in () if claim.kind == "unknown" else (*claim.points, (claim.epsilon, 0.0)):
        inverse = math.exp(-epsilon)
        least = min(least, (1.0 - inverse + 2.0 * delta * inverse) / (1.0 + inverse))
    return (1.0 + least) / 2.0, least == 0.0 or (known and claim.delta_kind == "exact")


@dataclass(frozen=True)
class Observer:
    """A party, several that collude, or the readers of what is published, and what they learn about one person.

    Attributes
    ----------
    who
        Its name, as the first words of a sentence: ``Both operators together``.
    receives
        What it receives, in a sentence.
    claim
        The claim about what it sees, over all answers of one person in the statement's unit, with δ listed at ε = 0 and
        at the ε to state (`Claim.listed`; in the claims of a run it is).
    members
        Number of parties; 0 for the readers of what is published.
    linkable
        How far it can link the answers of one person: ``no``, ``in one query``, ``over all queries``.
    trusted
        Whether the design trusts it with what it receives: it learns this by design, not by an attack.
    guess, prior
        How often an attack of a run, or a computation, names the right cell in one query, and how often the best guess
        without the system does; None where neither is known.
    """

    who: str
    receives: str
    claim: Claim
    members: int
    linkable: str = "no"
    trusted: bool = False
    guess: float | None = None
    prior: float | None = None

    @property
    def loss(self) -> tuple[float, float]:
        """The ε and δ of the claim; an infinite ε and a δ of 1 where nothing is proved or everything is revealed."""
        code, epsilon, delta = self.claim.limit
        limits = {"always": (epsilon, 0.0), "except": (epsilon, delta), "constant": (0.0, delta)}
        return limits.get(code, (math.inf, 1.0))


class CellError(NamedTuple):
    """The error of the published estimate in cells of one kind.

    Attributes
    ----------
    cells
        Which cells: ``a mean cell``, ``a mean cell at night``.
    occupancy
        Mean number of vehicles in it.
    error
        Root mean square error, vehicles.
    of_zero
        Root mean square error of an estimate of 0 everywhere, vehicles; an estimate with no less is no better than 0.
    """

    cells: str
    occupancy: float
    error: float
    of_zero: float


@dataclass(frozen=True)
class Statement:
    """What a privacy statement says; a field that is empty stays a labelled blank on the page.

    Attributes
    ----------
    title
        What it is about.
    made_from
        The run or the plan that the figures are from.
    unit
        The unit of privacy after "one driver": ``one day``, ``the 6 queries of this run``. All answers in it count
        together.
    contributions, observed
        Answers of one person in the unit: the most that the claims assume, and the most that one gave in a run; None
        where not recorded.
    people, called
        Number of persons whose data are collected, and the nouns for one and for several.
    purpose, input, output, flow
        For what, from what, what is made of it, and on which way.
    assumptions
        Pairs: an assumption, and what is so if it is wrong.
    collected
        What leaves the car in a query, with its bytes.
    published
        What is published.
    errors
        The error of what is published, of a mean cell first.
    observers
        Who learns what: the readers of what is published first, then single parties, then coalitions.
    model, mechanism
        Where the data are hidden (``local``, ``central``, ``distributed``), and by what.
    risks
        Residual risks as sentences, besides those that follow from `observers` and `people`.
    retention, review_date, legal_basis
        As they are given.
    """

    title: str
    made_from: str
    unit: str
    contributions: int
    people: int
    input: str
    output: str
    flow: str
    collected: str
    published: str
    errors: Sequence[CellError]
    observers: Sequence[Observer]
    model: str
    mechanism: str
    assumptions: Sequence[tuple[str, str]] = ()
    risks: Sequence[str] = ()
    observed: int | None = None
    called: tuple[str, str] = ("driver", "drivers")
    purpose: str = ""
    retention: str = ""
    review_date: str = ""
    legal_basis: str = ""

    def __post_init__(self) -> None:
        """Refuse a statement without a unit of privacy."""
        if not self.unit.strip():
            raise ParameterError("unit", "must name the unit of privacy, such as one day", self.unit)

    @property
    def stated(self) -> Observer:
        """The observer whose loss is stated for the whole: who learns most alone without being trusted with it."""
        alone = [one for one in self.observers if one.members < 2 and not one.trusted]
        return max(alone, key=lambda one: best_success(one.claim))


def write_statement(statement: Statement, path: Path, *, overwrite: bool = False) -> None:
    """
    Write a statement: a page that prints on one A4, Markdown, or JSON with the columns of a registry of deployments.

    Parameters
    ----------
    statement
        The statement.
    path
        The file; its suffix, ``.html``, ``.md`` or ``.json``, says which.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the file has another suffix, exists and may not be replaced, or cannot be written.
    """
    text = written("statement.md.j2", it=statement, best_success=best_success, short_limit=short_limit)
    match path.suffix:
        case ".json":
            text = json.dumps(_columns(statement), indent=2, ensure_ascii=False)
        case ".html":
            text = written("statement.html.j2", title=statement.title, lines=[*filter(None, text.splitlines())])
        case suffix if suffix != ".md":
            raise InputError([f"out (--out): must end in .html, .md or .json; got {path}"])
    export_file(path, lambda staged: staged.write_bytes(f"{text}\n".encode()), overwrite=overwrite)


def _columns(statement: Statement) -> Any:
    """Return a statement as JSON takes it, beside the columns of registry.opendp.org; what is infinite is null."""
    epsilon, delta = statement.stated.loss
    registry = {
        "tier": 3,  # mechanism, composition and what is not protected are stated
        "flavour": "approximate DP" if delta else "pure DP",
        "privacy_loss": {"epsilon": epsilon, "level": f"one {statement.called[0]}, {statement.unit}"},
        "delta": delta,
        "model": statement.model,
        "accounting": statement.stated.claim.basis,
        "implementation": f"{statement.mechanism}, {statement.made_from}",
    }
    successes = [best_success(one.claim)[0] for one in statement.observers]
    facts = {"registry": registry, "success": successes, **asdict(statement)}
    return json.loads(json.dumps(facts, default=str), parse_constant=lambda _: None)
