"""Contract of attacks: `AttackContract`, and `check_attack` that runs it."""

import pickle
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import binom

from mechanisms.inference.likelihood import guess_success, report_law
from mechanisms.inference.markov import Chain
from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local import KRandomizedResponse, LocalMechanism, NoPrivacy, NotEstimableError, SamplingPrivacy
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, Trusted
from simulator.aggregation.transcript import RecordedMessages
from simulator.arrays import FloatArray
from simulator.attacks.guesses import CellAttack, Guesses, Prior, broken_answers
from simulator.attacks.guessing_games import score_cells
from simulator.attacks.observation import Observation
from simulator.attacks.records import CampaignRecord, StoredTranscripts
from simulator.attacks.world import Member, Observer
from simulator.kits.contract import Contract, reported
from simulator.kits.findings import ConformanceReport, Findings, global_random_states, words_of
from simulator.sensing.query import QueryRecord
from simulator.streams import Streams

CELLS, DEVICES, LOST = 6, 2_000, 0.1
QUERIES, STAYS = 4, 0.8
"""Queries of a case over time, and the probability that a device stays where it is; else its place is drawn anew."""
SHARES: FloatArray = np.array([0.5, *range(1, CELLS + 1)]) / np.sum([0.5, *range(1, CELLS + 1)])
"""The prior: few devices outside, and a cell that is clearly the most likely one."""


@dataclass(frozen=True)
class Case:
    """One synthetic campaign, and a coalition that attacks it.

    Parameters
    ----------
    name
        In words.
    deployment, mechanism
        Real ones.
    coalition
        Names of parties.
    rounds
        The rounds whose reports the coalition reads and links to devices; empty if it links none.
    queries
        Number of queries.
    """

    name: str
    deployment: Deployment
    mechanism: LocalMechanism
    coalition: tuple[str, ...]
    rounds: tuple[int, ...] = ()
    queries: int = 1


_SAMPLING, _RESPONSE = SamplingPrivacy(cells=CELLS, sampling=0.4), KRandomizedResponse(cells=CELLS, epsilon=1.5)
CASES = (
    Case("no privacy", Trusted(), NoPrivacy(cells=CELLS), ("server:1",), (1,)),
    Case("k-ary, pseudonyms", Trusted(handles="query"), _RESPONSE, ("server:1",), (1,)),
    Case("both servers", PerRound(), _SAMPLING, ("server:1", "server:2"), (1, 2)),
    Case("server of round one", PerRound(), _SAMPLING, ("server:1",), (1,)),
    Case("server of round two", PerRound(), _SAMPLING, ("server:2",), (2,)),
    Case("mixer and server", ShuffledReports(), _RESPONSE, ("server:1", "mixer"), (1,)),
    Case("server behind a mixer", ShuffledReports(), _RESPONSE, ("server:1",)),
    Case("two of three shares", SecretShared(servers=3), _SAMPLING, ("server:1", "server:2")),
    Case("published counts", Trusted(), _RESPONSE, ()),
    Case("a week under device numbers", Trusted(), _RESPONSE, ("server:1",), (1,), QUERIES),
    Case("a week of pseudonyms", Trusted(handles="query"), _RESPONSE, ("server:1",), (1,), QUERIES),
    Case("a week of published counts", Trusted(), _RESPONSE, (), (), QUERIES),
)


class AttackContract(Contract):
    """What an attack must satisfy, on small synthetic campaigns with real mechanisms and servers.

    The prior is the law by which the devices' cells are drawn and change. So the number of right guesses of any attack
    about a query is at most binomial with the success of the best guess (`mechanisms.inference`), and the check
    `success` is exact.

    Attributes
    ----------
    cases
        The campaigns and coalitions.
    """

    cases: tuple[Case, ...] = CASES

    test_answers = reported("answers", "Expect no error, and `Guesses` about observed queries, in whole numbers.")
    test_cells = reported("cells", "Expect no cell outside 0…V.")
    test_handles = reported("handles", "Expect only handles that are in the observation, and no device named twice.")
    test_theory = reported("theory", "Expect a success in 0…1 or NaN, and probabilities of guesses in 0…1.")
    test_repeatable = reported("repeatable", "Expect the same answer to the same observation and random numbers.")
    test_global_random = reported("global_random", "Expect no draw from NumPy's or Python's global random numbers.")
    test_nothing_written_on = reported("nothing_written_on", "Expect an unmodified observation and prior.")
    test_success = reported("success", "Expect no more right guesses than the best guess has; more read the truth.")
    test_empty = reported("empty", "Expect no error where no report reached the coalition.")

    @abstractmethod
    def make(self) -> CellAttack:
        """Return the attack."""

    def report(self) -> ConformanceReport:
        """Run all checks; the figures of `success` are the shares of right guesses."""
        attack: Any = self.make()
        findings = {name: Findings() for name in self.checks()}
        for number, case in enumerate(self.cases):
            _check_case(attack, case, findings, seed=(self.seed, number), level=self.level / len(self.cases))
        return self.report_of(words_of(attack), findings, cells=CELLS)


def check_attack(make: Callable[[], CellAttack] | CellAttack, **settings: Any) -> ConformanceReport:
    """Run all checks on a user's own attack.

    Parameters
    ----------
    make
        A class or function that makes the attack, called without arguments; or an attack.
    **settings
        Attributes of `AttackContract`, such as `seed`.

    Returns
    -------
    ConformanceReport
        The result of each check. A sound attack fails with probability below 10⁻⁶. An attack that is no better than the
        prior passes.

    Examples
    --------
    >>> from simulator.attacks.reconstruction import RoundAttack
    >>> check_attack(RoundAttack).passed
    True
    """
    made: Any = make if isinstance(make, type) or not hasattr(make, "guess") else lambda: make
    return AttackContract.of(made, **settings).report()


def _check_case(
    attack: Any, case: Case, findings: Mapping[str, Findings], *, seed: tuple[int, int], level: float
) -> None:
    """Run every check on one campaign."""
    queries, numbers = _campaign(case, rng=np.random.default_rng([*seed, 0])), range(1, case.queries + 1)
    observation, prior, states = _observe(case, queries).observe(numbers), _prior(case), global_random_states()
    before = _content(observation, prior)
    answer = _ask(attack, case, observation, prior, findings["answers"], seed=seed)
    modified = _content(observation, prior) != before
    findings["nothing_written_on"].expect(not modified, f"{case.name}: the observation or the prior was modified")
    drawn = global_random_states() != states
    findings["global_random"].expect(not drawn, f"{case.name}: global random numbers were drawn; use rng")
    if answer is None:
        return
    observer = _observe(case, queries)
    if _record_broken(answer, observer.observe(numbers), case, findings):
        return
    again = _ask(attack, case, observer.observe(numbers), _prior(case), findings["repeatable"], seed=seed)
    same = again is not None and _plain(again) == _plain(answer)
    findings["repeatable"].expect(same, f"{case.name}: the same observation and rng gave another answer")
    _check_success(case, queries, answer, findings["success"], level=level)
    nobody = [query.among(np.empty(0, dtype=np.int64)) for query in queries]
    nothing = _observe(case, nobody).observe(numbers)
    if (empty := _ask(attack, case, nothing, _prior(case), findings["empty"], seed=seed)) is not None:
        _record_broken(empty, nothing, case, findings)


def _record_broken(answer: Any, observation: Observation, case: Case, findings: Mapping[str, Findings]) -> bool:
    """Record each rule that an answer breaks, and return whether it breaks any."""
    broken = list(broken_answers(answer, observation))
    for what, rule in broken:
        findings["answers" if what == "form" else what].fault(f"{case.name}: {rule}")
    return bool(broken)


def _prior(case: Case) -> Prior:
    """Return the prior, which is the same in every query, with the law by which devices move."""
    moves = csr_array(STAYS * np.eye(CELLS + 1) + (1.0 - STAYS) * SHARES)
    by_query = {number: SHARES.copy() for number in range(1, case.queries + 1)}
    return Prior(by_query, moves={number: moves.copy() for number in range(2, case.queries + 1)})


def _campaign(case: Case, *, rng: np.random.Generator) -> list[QueryRecord]:
    """Return the queries: devices move from one to the next as the prior says, and some reports are lost."""
    mechanism, deployment, queries = case.mechanism, case.deployment, list[QueryRecord]()
    # Numbers far from 0…n − 1: a position that is taken for a handle is unknown.
    numbers = rng.permutation(10 * DEVICES)[:DEVICES] + 100 * DEVICES
    memory, truth = mechanism.enrol(DEVICES, rng=rng), np.zeros(DEVICES, dtype=np.int32)
    rounds = range(1, mechanism.rounds + 1)
    for number in range(1, case.queries + 1):
        drawn = rng.choice(CELLS + 1, size=DEVICES, p=SHARES).astype(np.int32)
        truth = np.where(rng.random(DEVICES) < (STAYS if queries else 0.0), truth, drawn)
        coins = mechanism.toss(memory, rng=rng)
        reports = [mechanism.answer(round_, truth, coins) for round_ in rounds]
        received = rng.random((mechanism.rounds, DEVICES)) >= LOST
        aggregator = deployment.aggregator(mechanism, devices=DEVICES, rng=rng)
        for round_, sent, arrives in zip(rounds, reports, received, strict=True):
            aggregator.receive(round_, sent, arrives)
        for round_, arrives in zip(rounds, received, strict=True):
            aggregator.close_round(round_, asked=DEVICES, answered=int(arrives.sum()))
        arrived_s = {party: np.full(received.shape, np.inf) for party in deployment.parties(mechanism)}
        for round_ in rounds:
            for party in {"network", *(party for path in deployment.route(round_) for party in path)}:
                arrived_s[party][round_ - 1] = np.where(received[round_ - 1], 1.0, np.inf)
        recorded = RecordedMessages.draw(number, numbers, reports, received, arrived_s, rng=rng)
        occupancy = np.bincount(truth, minlength=CELLS + 1).astype(np.int64)
        sums = aggregator.counts, aggregator.asked, aggregator.counted
        queries.append(QueryRecord(recorded, truth, occupancy, *sums, time_s=3600.0 * number))
    return queries


def _observe(case: Case, queries: Sequence[QueryRecord]) -> Observer:
    """Return the coalition, which observes some queries."""
    record = CampaignRecord(case.deployment, case.mechanism, queries)
    stored = StoredTranscripts({"synthetic": record}, name="mechanism", streams=Streams(0))
    return Observer(stored, tuple(Member(party) for party in case.coalition))


def _ask(
    attack: Any, case: Case, observation: Observation, prior: Prior, findings: Findings, *, seed: tuple[int, int]
) -> Any:
    """Return the attack's answer; None if it raised an error, which is a fault, or cannot attack the mechanism."""
    try:
        answer = attack.guess(observation, prior, rng=np.random.default_rng([*seed, 1]))
    except (NoLikelihoodError, NotEstimableError) as reason:
        findings.note(f"{case.name}: not checked: {reason}")
    except Exception as error:  # noqa: BLE001 - a user's attack may raise anything
        findings.fault(f"{case.name}: raises {type(error).__name__}: {error}")
    else:
        findings.expect(answer is not None, f"{case.name}: returns None; the answer must be a list")
        return answer
    return None


def _check_success(
    case: Case, queries: Sequence[QueryRecord], answer: list[Guesses], findings: Findings, *, level: float
) -> None:
    """Expect no more right guesses about a query than the best guess has with probability `level`.

    Devices are independent, so an observer learns a device's cell only from the device's own linked reports. Lost
    reports make the best guess worse. Without linked reports it is the prior's: the most likely cell is so much more
    likely that no list of reports changes which it is.
    """
    prior, observer = _prior(case), _observe(case, queries)
    best = guess_success(case.mechanism, case.rounds, SHARES) if case.rounds else None
    at_best = [SHARES.max() if best is None else best] * case.queries
    followed = case.queries > 1 and case.rounds and case.deployment.handles == "device"
    if followed and (law := report_law(case.mechanism).outcomes()) is not None:
        paths = Chain(SHARES, [*(prior.moves or {}).values()]).success([law.masses] * case.queries)
        at_best = at_best if paths is None else paths[0].steps.tolist()
    for query, most in zip(queries, at_best, strict=True):
        about = [guess for guess in answer if guess.query == query.number]
        hits = score_cells(query, about, prior, observer, rng=np.random.default_rng(0)).hits
        surprise = float(binom.sf(hits - 1, DEVICES, min(most, 1.0)))
        name, right = f"{case.name}, query {query.number}" if case.queries > 1 else case.name, f"{hits / DEVICES:.1%}"
        shown = f"{right} of {DEVICES:,} guesses are right, and the best possible guess has {most:.1%}"
        findings.expect(surprise >= level / case.queries, f"{name}: {shown}")
        findings.figures[f"{name}: right"] = f"{right}, at best {most:.1%}, by the prior {SHARES.max():.1%}"


def _content(observation: Observation, prior: Prior) -> bytes:
    """Return all that an attack could modify as bytes; not what the mechanism and matrices have computed and keep."""
    moves = [(matrix.data, matrix.indices, matrix.indptr) for matrix in (prior.moves or {}).values()]
    seen = (observation.seen, observation.released, observation.own, observation.asked, observation.moments)
    return pickle.dumps((seen, prior.by_query, moves))


def _plain(answer: list[Guesses]) -> bytes:
    """Return an answer as bytes, to be compared."""
    return pickle.dumps([(of.query, of.handle_kind, of.handles, of.cells, of.theory) for of in answer])
