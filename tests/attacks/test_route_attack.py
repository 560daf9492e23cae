"""Routes guessed from linked reports of vehicles that move by a known chain, beside exact theory and null results."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from synthetic_campaigns import SAMPLING, campaign, evaluate_attacks, filed_of
from synthetic_campaigns import attack as section_of

import scenarios
from mechanisms.inference.markov import Chain
from mechanisms.local import KRandomizedResponse, LongitudinalUnary, NoPrivacy, SamplingPrivacy
from simulator import run
from simulator.aggregation.servers import PerRound, SecretShared, Trusted
from simulator.attacks.guesses import Prior
from simulator.attacks.route_games import RouteGame
from simulator.attacks.scores import pool_scores
from simulator.attacks.world import Member, Observer, Truth
from simulator.pages.report import build_report
from simulator.results.statements import loss_sentences

VEHICLES = 4000
FAR = 5.0
"""Standard errors by which a mean over independent vehicles may differ from its expectation, of a few dozen."""


def chain_of(stays, steps, cells=2):
    """The chain of a vehicle that stays with a probability, or else goes to any other place alike."""
    moves = np.full((cells + 1, cells + 1), (1.0 - stays) / cells)
    np.fill_diagonal(moves, stays)
    return Chain(np.full(cells + 1, 1.0 / (cells + 1)), [csr_array(moves)] * (steps - 1))


@dataclasses.dataclass(frozen=True, eq=False)
class Moving(Truth):
    """The truth about vehicles whose chain the coalition knows; without a chain it knows the first step's shares."""

    chain: Chain | None = None
    learned: bool = False

    def prior(self):
        numbers = [query.number for query in self.queries]
        marginals = self.chain.marginals
        return Prior(
            dict(zip(numbers, marginals, strict=True)),
            moves=dict(zip(numbers[1:], self.chain.moves, strict=True)),
            learned=self.learned,
        )


def played(
    mechanism,
    coalition,
    *,
    stays=0.8,
    steps=3,
    deployment=None,
    centres=None,
    seed=1,
    among=None,
    loss=0.0,
    believed=None,
):
    """The findings of a route attack, by metric."""
    chain = chain_of(stays, steps, mechanism.cells)
    paths = chain.draw(VEHICLES, rng=np.random.default_rng(seed))
    moving = {"queries": steps, "move": lambda number, *_: paths[number - 1].astype(np.int32)}
    record = campaign(deployment or Trusted(), mechanism, vehicles=VEHICLES, seed=seed, loss=loss, **moving)
    if among is not None:
        queries = [query.among(np.arange(*rows)) for query, rows in zip(record.queries, among, strict=True)]
        record = dataclasses.replace(record, queries=queries)
    record = dataclasses.replace(record, centres=None if centres is None else lambda: centres)
    observer = Observer(filed_of(record), tuple(Member(party) for party in coalition))
    known = Moving(record, chain=believed or chain, learned=believed is not None)
    scores = list(RouteGame().play(observer, known, rng=np.random.default_rng(seed)))
    return {row["metric"]: row for row in pool_scores(scores, rng=np.random.default_rng(seed))}


def near(success, expected, vehicles=VEHICLES):
    """Whether a mean over vehicles agrees with its expectation: the share of a vehicle's right steps varies by ½."""
    return abs(success - expected) < FAR * 0.5 / np.sqrt(vehicles)


def test_linked_reports_reach_the_exact_success_of_each_score():
    rows = played(KRandomizedResponse(cells=2, epsilon=1.0), ["server:1"])
    assert rows[None]["theory"] == pytest.approx(0.598076, abs=5e-7)
    assert rows["whole_path"]["theory"] == pytest.approx(0.425632, abs=5e-7)
    assert rows[None]["trials"] == 3 * VEHICLES
    assert rows["whole_path"]["trials"] == VEHICLES
    for metric in (None, "whole_path"):
        assert near(rows[metric]["success"], rows[metric]["theory"])
        assert rows[metric]["gain_low"] > 0.0
    assert near(rows["reports_alone"]["success"], 0.576117)
    assert near(rows["reports_alone_whole_path"]["success"], 0.576117**3)
    assert near(rows["random_path"]["success"], 1 / 3)
    assert near(rows["random_path_whole_path"]["success"], (0.8**2 + 2 * 0.1**2) ** 2 / 3)
    assert near(rows["whole_path"]["prior"], 0.64 / 3)
    assert rows[None]["epsilon_lower"] is None
    assert rows[None]["gain_high"] - rows[None]["gain_low"] > 2 * 1.9 * 0.5 / np.sqrt(VEHICLES)  # as of one query


@pytest.mark.parametrize(
    ("mechanism", "coalition"),
    [
        (KRandomizedResponse(cells=3, epsilon=1e-6), ["server:1"]),
        (KRandomizedResponse(cells=3, epsilon=3.0), []),
        (SAMPLING, []),
    ],
)
def test_without_information_the_prior_guesses(mechanism, coalition):
    rows = played(mechanism, coalition, stays=0.7)
    for metric in (None, "whole_path"):
        assert near(rows[metric]["success"], rows[metric]["prior"])
    assert rows["whole_path"]["theory"] == pytest.approx(0.49 / (mechanism.cells + 1))
    assert near(rows["whole_path"]["prior"], 0.49 / (mechanism.cells + 1))


def test_without_privacy_every_route_is_known():
    centres = np.array([[0.0, 0.0], [300.0, 0.0]])
    rows = played(NoPrivacy(cells=2), ["server:1"], centres=centres)
    for metric in (None, "whole_path", "within_200_m"):
        assert rows[metric]["success"] == 1.0
    assert [rows[None]["theory"], rows["whole_path"]["theory"]] == pytest.approx([1.0, 1.0])
    assert rows["within_200_m"]["value"] == 0.0
    assert "loss_route" not in rows
    # Who stays where the first guess is, or moves at random, is 0 or 300 m away.
    assert near(rows["nobody_moves"]["success"], (1.0 + 0.8 + 0.66) / 3)
    assert rows["random_path_within_200_m"]["value"] == pytest.approx(150.0, abs=FAR * 150.0 / np.sqrt(VEHICLES))
    assert near(rows["random_path_within_200_m"]["success"], 1 / 3)


@pytest.mark.parametrize(
    "mechanism", [SamplingPrivacy(cells=2, sampling=0.4), KRandomizedResponse(cells=2, epsilon=1.5)]
)
def test_every_member_adds(mechanism):
    deployment = PerRound(handles="query")
    parties = ["network", "server:1", "server:2"][: 1 + mechanism.rounds]
    found = [played(mechanism, parties[:size], deployment=deployment) for size in range(len(parties) + 1)]
    for metric in (None, "whole_path"):
        success = [rows[metric]["success"] for rows in found]
        assert all(after > before - 0.01 for before, after in itertools.pairwise(success))
        assert success[-1] > success[0] + 0.05


def test_pseudonyms_are_followed_by_the_network_alone():
    mechanism, deployment = KRandomizedResponse(cells=2, epsilon=1.0), Trusted(handles="query")
    alone = played(mechanism, ["server:1"], deployment=deployment, steps=5)
    linked = played(mechanism, ["server:1", "network"], deployment=deployment, steps=5)
    assert near(alone[None]["success"], 0.576117)
    assert alone["whole_path"]["success"] == alone["whole_path"]["prior"]
    assert alone.keys() == {None, "whole_path", "random_path", "random_path_whole_path"}
    assert near(linked[None]["success"], 0.615576)
    assert near(linked["whole_path"]["success"], 0.301189)
    shared = played(mechanism, ["server:1", "network"], deployment=SecretShared(servers=2))
    assert near(shared[None]["success"], shared[None]["prior"])


def test_vehicles_that_come_and_go():
    """A vehicle has a path if it is asked twice; lost reports are guessed from those before and after."""
    rows = played(
        KRandomizedResponse(cells=2, epsilon=8.0),
        ["server:1"],
        among=[(0, 1000), (500, 2000), (1900, 4000)],
        stays=0.95,
    )
    assert rows[None]["trials"] == 1000 + 1500 + 2100
    assert rows["whole_path"]["trials"] == 500 + 100
    assert rows["whole_path"]["theory"] is None
    assert rows[None]["success"] > 0.99
    lossy = played(KRandomizedResponse(cells=2, epsilon=8.0), ["server:1"], stays=0.95, loss=0.3)
    assert lossy[None]["success"] > lossy["reports_alone"]["success"] + 0.1


@pytest.mark.parametrize("believed", [1.0, 0.0, 0.9])
def test_a_learned_prior_that_is_wrong_does_no_harm(believed):
    """It believes that nobody moves, that all do, or nearly what is true; how often they stray is inferred."""
    rows = played(KRandomizedResponse(cells=2, epsilon=4.0), ["server:1"], steps=6, believed=chain_of(believed, 6))
    assert rows[None]["success"] > rows["reports_alone"]["success"] - 0.002
    assert rows["whole_path"]["theory"] is None


def test_the_current_place_loses_less_than_the_route():
    rows = played(KRandomizedResponse(cells=4, epsilon=1.0), ["server:1"], stays=0.9, steps=8)
    assert rows["loss_current_place"]["value"] == pytest.approx(4.05, abs=0.005)
    assert rows["loss_route"]["value"] == pytest.approx(8.0)
    assert {rows[metric]["unit"] for metric in rows if metric and metric.startswith("loss")} == {"ε"}
    memoised = LongitudinalUnary(cells=2, epsilon_permanent=2.0, epsilon_first=1.0)
    rows = played(memoised, ["server:1"], stays=0.9, steps=4)
    assert rows[None]["theory"] is None
    assert rows["loss_current_place"]["value"] == rows["loss_route"]["value"] > 0.0


def test_without_moves_and_with_one_vehicle_left():
    """In a scenario as it is: nothing is known about moves, and the only honest vehicle is followed by itself."""
    record = campaign(Trusted(), KRandomizedResponse(cells=3, epsilon=2.0), vehicles=300, queries=3)
    rows, _ = evaluate_attacks(record, section_of("route", ["server:1"]), section_of("link_rounds", ["server:1"]))
    assert [row.metric for row in rows][:3] == [None, "whole_path", "reports_alone"]
    assert rows[0].success == rows[-1].success
    assert rows[0].theory == rows[-1].theory
    record = campaign(Trusted(handles="query"), KRandomizedResponse(cells=3, epsilon=2.0), vehicles=40, queries=3)
    record = dataclasses.replace(record, fleet=np.append(record.devices, [1, 2]))  # two vehicles are never asked
    attacks = [section_of(kind, ["server:1", "vehicles:41"]) for kind in ("route", "link_rounds")]
    rows, _ = evaluate_attacks(record, *attacks)
    assert {"loss_route", "reports_alone"} <= {row.metric for row in rows}
    assert rows[0].success > rows[0].prior


def test_report_states_the_loss_of_the_current_place_and_of_the_route(tmp_path):
    """As a newcomer tries it: reports under vehicles' numbers, about whose moves nothing is known."""
    tiny = scenarios.load("tiny").with_(
        {
            "mechanisms": [{"name": "k-ary", "kind": "k_randomized_response", "epsilon": 1.0}],
            "attacks": [{"kind": "route", "coalition": ["server:1"]}],
        }
    )
    result = run(tiny, out=tmp_path)
    rows = result.attacks.set_index("metric")
    assert rows.loc[["loss_current_place", "loss_route"], "value"].tolist() == pytest.approx([1.0, 2.0])
    assert 0.0 < rows.loc["within_200_m", "value"] < 800.0
    assert rows.loc["within_200_m", "success"] >= rows["success"].iloc[0]  # neighbouring centres are 200 m apart
    page = " ".join(build_report(tmp_path).split())
    who = "With k-ary randomized response in campaign occupancy"
    assert page.count(who) == 2
    assert "places where the device might be now, if it moves as the prior says: at most 2.72-fold (ε = 1)" in page
    assert "routes that it might have taken: at most 7.39-fold (ε = 2)" in page
    assert loss_sentences("x", 9, [80.0, 80.0])[0].endswith("moves as the prior says: ε = 80 is no protection.")
