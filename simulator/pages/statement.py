"""The privacy statement: one page that says what is collected, who learns what, how wrong it is, and what can fail."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mechanisms.parameter import ParameterError
from mechanisms.privacy.claim import Claim, ConstantDelta, ListedDelta
from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.pages.document import asset, written
from simulator.pages.privacy_sections import coalition_words, deployment_words
from simulator.results.formatting import duration, inner_case, number, percent, related
from simulator.results.names import OwnerNames
from simulator.results.record import DeploymentRecord, MechanismDeployment
from simulator.results.run import RunResult
from simulator.results.statements import short_limit
from simulator.results.tables import RECEIVED, records, relative_errors


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
class Recipient:
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
    asked
        The ε that a plan was made for, which is stated with its δ where the ε at δ = 0 is greater; None for none.
    members
        Number of parties; 0 for the readers of what is published.
    linkable
        How far it can link the answers of one person: ``no``, ``in one query``, ``over all queries``.
    trusted
        Whether the design trusts it with what it receives: it learns this by design, not by an attack.
    crowded
        The claim where a certain number of others is there as well, in addition to `claim`; None for none.
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
    crowded: Claim | None = None
    asked: float | None = None

    @property
    def states_asked(self) -> bool:
        """Whether the ε asked for is stated with its δ: the ε at δ = 0 is greater, and δ depends on ε."""
        varies = self.claim.limit.code in {"always", "except"}
        return varies and self.asked is not None and self.claim.epsilon > self.asked

    @property
    def loss(self) -> tuple[float, float]:
        """The ε and δ of the claim; an infinite ε and a δ of 1 where nothing is proved or everything is revealed."""
        if self.asked is not None and self.states_asked:
            return self.asked, self.claim.delta(self.asked)
        code, epsilon, delta = self.claim.limit
        limits = {"always": (epsilon, 0.0), "except": (epsilon, delta), "constant": (0.0, delta)}
        return limits.get(code, (math.inf, 1.0))


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
        The unit of privacy after "one driver": ``one day``, ``the 6 queries of a run``. All answers in it count
        together.
    contributions, observed
        Answers of one person in the unit: the most that the claims assume, and the most that one gave in a run; None
        where not recorded.
    people, called
        Number of persons whose data are collected, and the nouns for one data owner and for several.
    cells, bytes_up
        Number of cells, and the bytes that a device sends in a query; None where not known.
    model
        Where the data are hidden: ``local``, on the device; ``central``, by a server that receives every cell; or
        ``distributed``, by servers of which none receives a cell.
    implementation, deployment
        What hides the data, and which parties receive the answers, as in ``shares among 3 servers``.
    errors
        The error of what is published, of a mean cell first: which cells (``a mean cell``, ``a mean cell at night``),
        their mean number of vehicles, the root mean square error and the root mean square error of an estimate of 0.
    recipients
        Who learns what: the readers of what is published first, then single parties, then coalitions.
    assumptions
        Pairs: an assumption, and what is so if it is wrong; besides those about coalitions and devices.
    risks
        Residual risks as sentences, besides those that follow from `recipients` and `people`.
    purpose, retention, review_date, legal_basis
        As they are given.
    """

    title: str
    made_from: str
    unit: str
    contributions: int
    people: int
    cells: int
    model: str
    implementation: str
    deployment: str
    errors: Sequence[tuple[str, float, float, float]]
    recipients: Sequence[Recipient]
    assumptions: Sequence[tuple[str, str]] = ()
    risks: Sequence[str] = ()
    observed: int | None = None
    bytes_up: float | None = None
    called: OwnerNames = OwnerNames()  # noqa: RUF009
    purpose: str = ""
    retention: str = ""
    review_date: str = ""
    legal_basis: str = ""

    def __post_init__(self) -> None:
        """Refuse a statement without a unit of privacy."""
        if not self.unit.strip():
            raise ParameterError("unit", "must name the unit of privacy, such as one day", self.unit)

    @property
    def stated(self) -> Recipient:
        """The observer whose loss is stated for the whole: who learns most alone without being trusted with it."""
        alone = [one for one in self.recipients if one.members < 2 and not one.trusted]
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
    text = written("statement.md.j2", it=statement, best_success=best_success, short_limit=short_limit, related=related)
    match path.suffix:
        case ".html":
            lines, style = [*filter(None, text.splitlines())], asset("statement.css")
            text = written("statement.html.j2", title=statement.title, lines=lines, style=style)
        case ".json":
            text = json.dumps(_columns(statement), indent=2, ensure_ascii=False)
        case suffix if suffix != ".md":
            raise InputError([f"{path}: a statement must end in .html, .md or .json"])
    export_file(path, lambda staged: staged.write_bytes(f"{text}\n".encode()), overwrite=overwrite)


def _columns(statement: Statement) -> Any:
    """Return a statement as JSON takes it, after the columns of registry.opendp.org; what is infinite is null."""
    epsilon, delta = statement.stated.loss
    columns: dict[str, Any] = {"tier": 3, "flavour": "approximate DP" if delta else "pure DP", "delta": delta}
    columns |= {"privacy_loss": epsilon, "level": f"one {statement.called.one}, {statement.unit}"}
    columns |= {"accounting": statement.stated.claim.basis, **asdict(statement)}
    columns["success"] = [best_success(one.claim)[0] for one in statement.recipients]
    return json.loads(json.dumps(columns, default=str), parse_constant=lambda _: None)


def statement_of_run(run: RunResult, mechanism: str = "", campaign: str = "", **given: Any) -> Statement:
    """
    Return the statement of one mechanism in one campaign of a run, over all its queries together.

    Parameters
    ----------
    run
        The finished run.
    mechanism, campaign
        Their names; if empty, the first mechanism other than no privacy, and the first campaign that counts with it.
    **given
        Fields of a statement that no run knows, by name: `purpose`, `retention`, `review_date`, `legal_basis`.

    Raises
    ------
    InputError
        If no such campaign counts with the mechanism.
    """
    record, every = run.record, [(one, own) for one in run.record.deployments for own in one.mechanisms]
    fitting = [pair for pair in every if mechanism in {"", pair[1].mechanism} and campaign in {"", pair[0].campaign}]
    if not fitting:
        names = ", ".join(f"{own.mechanism} in {one.campaign}" for one, own in every) or "none in this run"
        got = f"{mechanism or 'any'} in {campaign or 'any'}"
        raise InputError([f"--mechanism, --campaign: must be of a count whose parties are known ({names}); got {got}"])
    deployment, own = min(fitting, key=lambda pair: pair[1].mechanism not in record.private)
    campaign, name = deployment.campaign, own.mechanism

    def of(table: pd.DataFrame) -> pd.DataFrame:
        return table[(table["campaign"] == campaign) & (table["mechanism"] == name)]

    label, estimates, counted = record.published_label(campaign, name), of(run.leading.estimates), of(run.rounds)
    times = [query.time_s for query in record.traffic_at_queries if query.campaign == campaign]
    few, truth, rmse = relative_errors(estimates).iloc[0], estimates["truth"], of(run.leading.scores)["rmse"].iloc[0]
    false = records(of(run.findings).query("attack == 'poisoning'").nlargest(1, "value"))
    moved = [f"{one['colluding']:.0f} false devices move a cell by {number(one['value'])} vehicles." for one in false]
    lost = 1.0 - counted["counted"].sum() / max(1, counted["asked"].sum())
    moved += [f"{percent(lost)} of the answers asked for were not counted."] if lost > 0.0 else []
    recipients = [*_recipients(run, deployment, own)]
    label += ", noise of each server" if recipients[0].claim.servers else ""
    central, shared = any(one.trusted for one in recipients), bool(deployment.needed) or name not in record.private
    return Statement(
        title=f"{record.scenario}, {label}",
        made_from=f"run {record.scenario}, campaign {campaign}, seed {record.seed}, by crowdveil {record.version}",
        unit=f"the {len(times)} queries of the campaign, within {duration(max(times) - min(times))}"
        if len(times) > 1
        else "the one query of the campaign",
        contributions=len(times),
        people=round(record.vehicles * record.participation),
        cells=estimates["cell"].nunique(),
        model="central" if central else "distributed" if shared else "local",
        implementation=label,
        deployment=deployment_words(deployment),
        errors=[
            ("a mean cell", truth.mean(), rmse, truth.pow(2).mean() ** 0.5),
            ("the emptiest cells", few["occupancy"], few["rmse"], few["rms_occupancy"]),
        ],
        recipients=recipients,
        risks=[*moved, *own.cost.notes],
        bytes_up=of(run.costs)["bytes_up"].iloc[0],
        called=record.owners,
        **given,
    )


def _recipients(run: RunResult, deployment: DeploymentRecord, own: MechanismDeployment) -> Iterator[Recipient]:
    """Yield the readers of what a campaign publishes of a mechanism, then its parties and coalitions."""
    campaign, name, queries = deployment.campaign, own.mechanism, run.record.queries_of(deployment.campaign)
    release, within = run.record.release_of(campaign, name), {campaign, campaign if campaign in run.budgeted else None}
    stated = [one for one in run.privacy if one.mechanism == name and one.campaign in within]
    stated = [one for one in stated if one.queries == queries and one.adjacency == "move"]
    unknown = Claim.unknown("The run states no claim about this view.").about(queries=queries)
    nothing = Claim.exact(0.0, ConstantDelta(0.0), "It receives no answer.").about(queries=queries)

    def weakest(view: str | None, colluding: int, release: str | None = None) -> Claim:
        """Return the claim of most success about a view, of servers with a part of the noise if there is noise."""
        noisy = [one for one in stated if one.view == "released_counts" and one.colluding == colluding]
        same = [one for one in stated if one.view == view and one.colluding in {None, colluding}]
        return max([*noisy, *(one for one in same if one.release == release)], key=best_success, default=unknown)

    view = "released_differences" if release and run.record.rounds_of(name) > 1 else "released_counts"
    words, mean = release.words if release else None, run.estimates.groupby("campaign")["truth"].mean()[campaign]
    published, linked = weakest(view, 0, words), weakest("linked_reports", -1)
    among = [one for one in stated if (one.view, one.release) == (view, words) and 1 < (one.crowd or 0) <= mean]
    crowded = min(among, key=best_success, default=None)
    trusted = name not in run.record.private and published.servers is None
    published = min(published, linked, key=best_success)
    yield Recipient("Anyone who reads what is published", "every estimate", published, 0, crowded=crowded)
    tried = run.findings.query("mechanism == @name and campaign == @campaign and metric in ('', 'queries')")
    tried = tried[tried["attack"].isin([*RECEIVED, "longitudinal"])].sort_values("success")
    guessed = {frozenset(row["coalition"].split(", ")): (row["success"], row["prior"]) for row in records(tried)}
    for seen in own.learns:
        followed = deployment.handles == "device" or "network" in seen.coalition
        linkable = "over all queries" if followed else "in one query" if deployment.handles else "no"
        claim = weakest(seen.view, sum("server:" in party for party in seen.coalition))
        if seen.view is None:
            claim = nothing
        elif linkable == "in one query" and claim.epsilon:
            claim = claim.as_bound("It cannot follow a device from query to query: at most what linked answers reveal.")
        who, what = coalition_words(seen.coalition, deployment), inner_case(seen.words.rstrip("."))
        guess, prior = guessed.get(frozenset(seen.coalition), (None, None))
        by_design = trusted and seen.view is not None
        yield Recipient(who, what, claim, len(seen.coalition), linkable, by_design, guess, prior)
