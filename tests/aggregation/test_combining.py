"""Aggregators that divide devices over servers: equal to one server where they should be, and what they change."""

# ruff: noqa: ARG005 - functions in the place of methods have all of their parameters

import numpy as np
import pytest

import crowdveil as cv
from mechanisms.local import Estimate, KRandomizedResponse, NoPrivacy
from simulator.aggregation.combining import ServerTally, add_estimates, normal_estimate
from simulator.sensing.device import Behaviour, Party


class AddUp:
    def __init__(self, servers: int = 3) -> None:
        self.servers = servers

    def combine(self, tallies):
        return add_estimates(tallies)

    def std_error(self, own):
        return np.sqrt((own**2).sum(axis=0))


class Median(AddUp):
    def combine(self, tallies):
        scaled = [tally.scaled for tally in tallies]
        count, error = (np.median([getattr(one, name) for one in scaled], axis=0) for name in ("count", "std_error"))
        return normal_estimate(count, error, asked=tallies[0].asked_in_all)

    std_error = None


class ByCell(AddUp):
    def assign_by_cell(self, cells, *, rng):  # noqa: ARG002 - the interface
        return 1 + cells % self.servers


class Altering(Party):
    """A server that adds 500 devices to every output."""

    def tally(self, round_, sums):  # noqa: ARG002 - the interface
        return sums + 500


def scenario(kind, **changes):
    base = cv.scenarios.load("tiny")
    return base.with_({"aggregation": {"kind": kind}, "attacks": [], "traffic.vehicles": 900, **changes})


def own(**attributes):
    return type("Own", (AddUp,), attributes)


@pytest.fixture(scope="module")
def added():
    return cv.run(scenario(AddUp))


class Unnamed(KRandomizedResponse):
    """A mechanism whose text has its address, as that of a user's class without a __repr__."""

    __repr__ = object.__repr__


def test_coins_do_not_depend_on_how_a_mechanism_is_shown():
    mechanisms = [{"kind": Unnamed, "epsilon": 1.0}]
    first, again = (cv.run(scenario(AddUp, mechanisms=mechanisms)).estimates for _ in range(2))
    assert first.equals(again)


def test_no_privacy_is_exact_where_servers_add_up_and_nothing_is_lost(added):
    for run in (added, cv.run(scenario(AddUp, **{"population.answers": "counts"}))):
        exact = run.estimates[run.estimates["mechanism"] == "baseline"]
        np.testing.assert_allclose(exact["estimate"], exact["truth"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [AddUp, Median, ByCell])
def test_messages_and_batches_are_equal(kind):
    changes = {"channel.loss": 0.1, "channel.latency_s": {"kind": "exponential", "mean_s": 9.0}, "channel.churn": 0.1}
    outages = [{"server": "server:2", "from_s": 0, "to_s": 310}]
    runs = [
        cv.run(scenario(kind, **changes, **{"channel.outages": outages, "sensing.engine": engine}))
        for engine in ("batches", "messages")
    ]
    for table in ("estimates", "rounds", "servers", "scores"):
        one, other = (getattr(run, table) for run in runs)
        assert one.equals(other), table


def test_accounts_of_servers_add_up_to_those_of_the_round():
    result = cv.run(scenario(AddUp(4), **{"channel.loss": 0.2, "population.outside": 10_000}))
    keys = ["campaign", "query", "mechanism", "round"]
    servers = result.servers.groupby(keys)[["sent", "arrived", "late", "lost", "used"]].sum()
    rounds = result.rounds.set_index(keys).sort_index()
    assert (servers["sent"] == rounds["answered"]).all()
    assert (servers["used"] == rounds["counted"]).all()
    assert result.servers["server"].nunique() == 4
    # 10,000 devices outside are divided at random: each server has a quarter, within 5 standard deviations.
    sent = result.servers.loc[result.servers["round"] == 1, "sent"]
    assert sent.between(sent.mean() - 5 * (10_900 * 3 / 16) ** 0.5, sent.mean() + 5 * (10_900 * 3 / 16) ** 0.5).all()


def test_median_holds_where_one_server_alters_its_tally_and_the_sum_does_not():
    behaviour = Behaviour(parties={"server:2": Altering})
    errors = {}
    for kind in (AddUp, Median):
        for name, how in (("honest", None), ("altered", behaviour)):
            run = cv.run(scenario(kind, **{"sensing.engine": "messages"}), seed=4, behaviour=how)
            errors[kind, name] = run.scores.set_index("mechanism")["rmse"]["baseline"]
    assert errors[AddUp, "honest"] < 1e-9
    assert errors[AddUp, "altered"] == pytest.approx(500.0)
    # One server's share of the devices is 1/3: its estimate of all has a variance of 2 Y, Y at most about 60.
    assert errors[Median, "altered"] < 5 * (2 * 60) ** 0.5
    assert errors[Median, "altered"] < errors[AddUp, "altered"] / 5


def test_three_of_three_servers_learn_more_than_one_as_theory_says():
    attacks = [{"kind": "link_rounds", "coalition": ["server:1", "server:2", "server:3"], "growing": True}]
    found = cv.run(scenario(Median, attacks=attacks), seed=5).attacks
    for _, rows in found.groupby("mechanism"):
        assert rows["colluding"].tolist() == [1, 2, 3]
        assert rows["success"].is_monotonic_increasing
        spread = np.sqrt(rows["theory"] * (1 - rows["theory"]) / rows["trials"])
        assert (abs(rows["success"] - rows["theory"]) < 4.5 * spread + 1e-9).all()
        gain = rows["theory"] - rows["prior"]
        # A coalition reads the devices of its servers: a third of the gain each, within the spread of the assignment.
        assert gain.iloc[0] / gain.iloc[2] == pytest.approx(1 / 3, abs=0.15)


def test_servers_chosen_by_cell_know_the_place_and_the_claims_say_so(added):
    kinds = ({"kind": "link_rounds"}, {"kind": "drop_out", "dropped": "others"})
    result = cv.run(scenario(ByCell, attacks=[{**kind, "coalition": ["server:1"]} for kind in kinds]))
    located = result.claims[result.claims["view"] == "located_reports"]
    assert set(located["mechanism"]) == {"sampling", "randomized", "baseline"}
    assert located["epsilon"].iloc[0] == np.inf
    assert (located["delta"].iloc[1:] == 1.0).any()
    assert set(result.attacks["attack"]) == {"link_rounds", "drop_out"}
    assert result.attacks["theory"].isna().all()
    assert "located_reports" not in set(added.claims["view"])


def test_claims_for_published_values_are_bounded_by_linked_reports():
    claims = cv.run(scenario(Median)).claims
    released = claims[claims["view"].isin(["released_counts", "released_differences"]) & claims["kind"].ne("infinite")]
    assert released["basis"].str.contains("Servers are combined other than by addition").all()


class State(AddUp):
    """Keeps the number of queries it has combined, and publishes it in cell 1."""

    def __init__(self) -> None:
        super().__init__(2)
        self.queries = 0

    def combine(self, tallies):
        self.queries += 1
        estimate = add_estimates(tallies)
        count = estimate.count.copy()
        count[0] = self.queries
        return normal_estimate(count, estimate.std_error, asked=tallies[0].asked_in_all)


def test_each_mechanism_has_a_copy_that_keeps_state_from_query_to_query():
    asked = {"campaigns.occupancy.queries": 3, "campaigns.occupancy.every_s": 120.0}
    found = cv.run(scenario(State, **asked, **{"scenario.duration_s": 1200.0})).estimates
    first = found[found["cell"] == 1]
    for _, rows in first.groupby("mechanism"):
        assert rows["estimate"].tolist() == [1.0, 2.0, 3.0]


def test_attributes_that_are_none_are_absent(added):
    without = own(assign=None, assign_by_cell=None, accepts=None, std_error=None)
    assert cv.run(scenario(without)).claims["epsilon"].equals(added.claims["epsilon"])


def test_rejected_reports_are_accounted_for_and_counts_are_noted():
    strict = own(accepts=lambda self, reports, mechanism: mechanism.encode(reports)[:, 3:].sum(axis=1) == 0)
    result = cv.run(scenario(strict, **{"population.outside": 5, "mechanisms": [{"kind": "no_privacy"}]}))
    rounds = result.rounds.iloc[0]
    assert rounds["rejected"] > 0
    assert rounds["answered"] == rounds["counted"] + rounds["rejected"]
    assert any("does not check devices outside every cell" in note for note in result.record.traffic.notes)


def test_estimates_are_published_late():
    seen = {}

    def watch(run):
        for time_s in (400.0, 900.0, 1100.0):
            yield run.until(time_s)
            seen[time_s] = len(run.published())

    result = cv.run(scenario(own(delay_s=600.0), **{"scenario.duration_s": 1200.0}), processes=[watch])
    assert seen[400.0] == 0
    assert seen[1100.0] > 0
    assert set(result.rounds["estimate_s"]) == {630.0, 660.0}


def test_combination_receives_each_servers_arrivals():
    def combine(_, tallies):
        for tally in tallies:
            assert [len(times) for times in tally.arrivals_s] == list(tally.counted)
            assert all((np.diff(times) >= 0).all() for times in tally.arrivals_s)
        return add_estimates(tallies)

    cv.run(scenario(own(combine=combine), **{"channel.latency_s": {"kind": "exponential", "mean_s": 1.0}}))


def test_scaled_estimate_of_one_server_is_unbiased():
    rng, truth = np.random.default_rng(0), np.array([100, 50, 850])
    mechanism = NoPrivacy(cells=2)
    found = []
    for _ in range(2000):
        mine = rng.binomial(truth, 1 / 3)
        tally = ServerTally(1, mechanism, mine[np.newaxis], (int(mine.sum()),), (int(mine.sum()),), int(truth.sum()))
        found.append(tally.scaled.count)
        assert isinstance(tally.scaled, Estimate)
    # N/n with a random n adds a bias of order Y/n, below half a device here; 5 standard errors of the mean.
    error = np.sqrt(2 * truth[1:] / 2000)
    np.testing.assert_allclose(np.mean(found, axis=0), truth[1:], atol=(5 * error + 0.5).max())


def test_server_without_devices_states_that_it_knows_nothing():
    none = np.zeros((1, 3), dtype=np.int64)
    scaled = ServerTally(1, NoPrivacy(cells=2), none, (0,), (0,), 500).scaled
    assert np.isinf(scaled.std_error).all()
    assert (scaled.lower == 0).all()
    assert (scaled.upper == 500).all()
    cv.run(scenario(Median(40), **{"traffic.vehicles": 20}))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"delay_s": -50.0}, "delay_s must be a number of seconds"),
        ({"delay_s": float("nan")}, "delay_s must be a number of seconds"),
        ({"delay_s": "soon"}, "delay_s must be a number of seconds"),
        ({"handles": ["query"]}, "handles must be"),
        ({"paired": "no"}, "paired must be True or False"),
        ({"assign": 3}, "assign must be a method"),
        ({"assign": lambda self, n, *, rng: np.full(n, self.servers + 1)}, "must assign a server, 1 to 3"),
        ({"combine": lambda self, tallies: np.zeros(3)}, "must return an Estimate of"),
        ({"__init__": lambda self: AddUp.__init__(self, 0)}, "servers"),
        ({"assign": lambda self, n: np.ones(n, dtype=int)}, r"assign: .*unexpected keyword argument 'rng'"),
        ({"assign": lambda self, n, *, rng: [[1], [2, 3]]}, "assign: setting an array element"),
        ({"accepts": lambda self, reports, mechanism: None}, "accepts must return a bool for each"),
        ({"accepts": lambda self, reports, mechanism: np.ones(1, dtype=bool)}, "accepts must return a bool for each"),
        ({"std_error": lambda self, own: own[0][:2]}, "std_error must return 9 numbers"),
        ({"std_error": lambda self, own: -1.0 - own[0]}, "std_error must return 9 numbers"),
        ({"std_error": lambda self, own: own}, "std_error must return 9 numbers"),
    ],
)
def test_wrong_attributes_and_answers_are_faults_of_the_scenario(attributes, words):
    with pytest.raises(cv.ScenarioError, match=words):
        cv.run(scenario(own(**attributes)))


@pytest.mark.parametrize("kind", ["link_rounds", "round_one", "drop_out", "known_others"])
def test_attack_by_servers_that_received_nothing_guesses_by_the_prior(kind):
    only_last = own(assign=lambda self, n, *, rng: np.full(n, 3))
    dropped = {"dropped": "others"} if kind == "drop_out" else {}
    attack = {"kind": kind, "coalition": ["server:1", "server:2"], **dropped}
    found = cv.run(scenario(only_last, attacks=[attack])).attacks
    guessed = found[found["metric"].isna() & found["success"].notna()]
    if kind in ("link_rounds", "round_one"):
        assert (guessed["gain"] == 0).all()


def test_intervals_of_one_servers_estimate_cover_empty_cells():
    one = own(combine=lambda self, tallies: tallies[0].scaled)
    found = cv.run(scenario(one, **{"traffic.vehicles": 60})).scores
    assert (found["coverage"] >= 0.85).all()


def test_query_that_would_be_published_after_the_end_is_refused():
    refused = []

    def ask(run):
        yield run.until(run.end_s - 100.0)
        try:
            run.ask("occupancy")
        except ValueError as error:
            refused.append(str(error))

    cv.run(scenario(own(delay_s=100.0)), processes=[ask])
    assert "is published at" in refused[0]


def test_error_in_a_process_is_not_the_aggregators():
    def fail(run):
        yield run.wait(1.0)
        raise KeyError("oops")

    with pytest.raises(KeyError, match="oops"):
        cv.run(scenario(AddUp), processes=[fail])
