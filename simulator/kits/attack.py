"""Contract of attacks: `AttackContract`, and `check_attack` that runs it."""

import pickle
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from mechanisms.inference.likelihood import guess_success
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
    """

    name: str
    deployment: Deployment
    mechanism: LocalMechanism
    coalition: tuple[str, ...]
    rounds: tuple[int, ...] = ()


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
)


class AttackContract(Contract):
    """What an attack must satisfy, on small synthetic campaigns with real mechanisms and servers.

    The prior is the distribution from which the devices' cells are drawn. So the number of right guesses of any attack
    is at most binomial with the success of the best guess (`mechanisms.inference`), and the check `success` is exact.

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
    query = _query(case, _prior().of(1), rng=np.random.default_rng([*seed, 0]))
    observation, prior, states = _observe(case, query).observe([1]), _prior(), global_random_states()
    before = _content(observation, prior)
    answer = _ask(attack, case, observation, prior, findings["answers"], seed=seed)
    modified = _content(observation, prior) != before
    findings["nothing_written_on"].expect(not modified, f"{case.name}: the observation or the prior was modified")
    drawn = global_random_states() != states
    findings["global_random"].expect(not drawn, f"{case.name}: global random numbers were drawn; use rng")
    if answer is None:
        return
    observer = _observe(case, query)
    if _record_broken(answer, observer.observe([1]), case, findings):
        return
    again = _ask(attack, case, observer.observe([1]), _prior(), findings["repeatable"], seed=seed)
    same = again is not None and _plain(again) == _plain(answer)
    findings["repeatable"].expect(same, f"{case.name}: the same observation and rng gave another answer")
    _check_success(case, query, answer, observer, findings["success"], level=level)
    nothing = _observe(case, query.among(np.empty(0, dtype=np.int64))).observe([1])
    if (empty := _ask(attack, case, nothing, _prior(), findings["empty"], seed=seed)) is not None:
        _record_broken(empty, nothing, case, findings)


def _record_broken(answer: Any, observation: Observation, case: Case, findings: Mapping[str, Findings]) -> bool:
    """Record each rule that an answer breaks, and return whether it breaks any."""
    broken = list(broken_answers(answer, observation))
    for what, rule in broken:
        findings["answers" if what == "form" else what].fault(f"{case.name}: {rule}")
    return bool(broken)


def _prior() -> Prior:
    """Return the prior: few devices outside, and a cell that is clearly the most likely one."""
    shares = np.array([0.5, *range(1, CELLS + 1)])
    return Prior({1: shares / shares.sum()})


def _query(case: Case, prior: FloatArray, *, rng: np.random.Generator) -> QueryRecord:
    """Return a query: its devices' cells are drawn from the prior, and some reports are lost."""
    mechanism, deployment = case.mechanism, case.deployment
    truth = rng.choice(CELLS + 1, size=DEVICES, p=prior).astype(np.int32)
    coins = mechanism.toss(mechanism.enrol(DEVICES, rng=rng), rng=rng)
    rounds = range(1, mechanism.rounds + 1)
    reports = [mechanism.answer(round_, truth, coins) for round_ in rounds]
    received = rng.random((mechanism.rounds, DEVICES)) >= LOST
    aggregator = deployment.aggregator(mechanism, devices=DEVICES, rng=rng)
    for round_, sent, arrives in zip(rounds, reports, received, strict=True):
        aggregator.receive(round_, sent, arrives)
    for round_, arrives in zip(rounds, received, strict=True):
        aggregator.close_round(round_, asked=DEVICES, answered=int(arrives.sum()))
    arrived_s = {party: np.full(received.shape, np.inf) for party in deployment.parties(mechanism)}
    for round_ in rounds:
        on_the_way = {"network", *(party for path in deployment.route(round_) for party in path)}
        for party in on_the_way:
            arrived_s[party][round_ - 1] = np.where(received[round_ - 1], 1.0, np.inf)
    # Numbers far from 0…n − 1: a position that is taken for a handle is unknown.
    numbers = rng.permutation(10 * DEVICES)[:DEVICES] + 100 * DEVICES
    recorded = RecordedMessages.draw(1, numbers, reports, received, arrived_s, rng=rng)
    occupancy = np.bincount(truth, minlength=CELLS + 1).astype(np.int64)
    return QueryRecord(recorded, truth, occupancy, aggregator.counts, aggregator.asked, aggregator.counted)


def _observe(case: Case, query: QueryRecord) -> Observer:
    """Return the coalition, which observes one query."""
    record = CampaignRecord(case.deployment, case.mechanism, (query,))
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
    case: Case, query: QueryRecord, answer: list[Guesses], observer: Observer, findings: Findings, *, level: float
) -> None:
    """Expect no more right guesses than the best guess has with probability `level`.

    Devices are independent, so an observer learns a device's cell only from the device's own linked reports. Lost
    reports make the best guess worse. Without linked reports it is the prior's: the most likely cell is so much more
    likely that no list of reports changes which it is.
    """
    q, prior = _prior().of(1), _prior()
    best = guess_success(case.mechanism, case.rounds, q) if case.rounds else None
    best = float(q.max()) if best is None else best
    hits = score_cells(query, answer, prior, observer, rng=np.random.default_rng(0)).hits
    surprise = float(binom.sf(hits - 1, DEVICES, min(best, 1.0)))
    shown = f"{hits / DEVICES:.1%} of {DEVICES:,} guesses are right, and the best possible guess has {best:.1%}"
    findings.expect(surprise >= level, f"{case.name}: {shown}")
    findings.figures[f"{case.name}: right"] = f"{hits / DEVICES:.1%}, at best {best:.1%}, by the prior {q.max():.1%}"


def _content(observation: Observation, prior: Prior) -> bytes:
    """Return all that an attack could modify as bytes; not the mechanism, which keeps what it has computed."""
    return pickle.dumps((observation.seen, observation.released, observation.own, observation.asked, prior))


def _plain(answer: list[Guesses]) -> list[tuple[object, ...]]:
    """Return an answer as plain values, to be compared."""
    return [
        (of.query, of.handle_kind, np.asarray(of.handles).tolist(), np.asarray(of.cells).tolist(), repr(of.theory))
        for of in answer
    ]
