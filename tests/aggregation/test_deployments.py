"""Deployments: parties, what each learns, stores and sends; all deployments give equal counts."""

import numpy as np
import pytest

from mechanisms import local
from mechanisms.privacy import LinkedReports, ParameterError, ReleasedCounts, Report, Shares, Shuffled
from simulator.aggregation.rounds import report_nbytes
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, ThresholdShared, Trusted
from simulator.aggregation.transcript import Coalition
from simulator.experiment.deployment_record import coalitions

CELLS = 5
SAMPLING = local.SamplingPrivacy(cells=CELLS, sampling=0.4)
ONE_ROUND = local.RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2)
THREE_ROUNDS = local.AnonymizedDeniable(
    cells=CELLS, shift=0.2, yes_second=0.3, yes_third=0.3, no_second=0.3, no_third=0.4, onward=0.4
)
MECHANISMS = [
    SAMPLING,
    THREE_ROUNDS,
    ONE_ROUND,
    local.NoPrivacy(cells=CELLS),
    local.LocalHashing(cells=CELLS, epsilon=1.0),
    local.SubsetSelection(cells=CELLS, epsilon=1.0),
    local.HadamardResponse(cells=CELLS, epsilon=1.0),
    local.DistributedLaplace(cells=CELLS, epsilon=1.0, devices=50),
]
DEPLOYMENTS = {
    "trusted": Trusted(),
    "trusted, paired": Trusted(paired=True, handles="query"),
    "per round": PerRound(),
    "shuffled": ShuffledReports(),
    "two servers": SecretShared(),
    "two servers, drawn": SecretShared(exact_words=0),
    "four servers, paired": SecretShared(servers=4, paired=True),
    "two of three servers": ThresholdShared(),
    "four of five servers, paired, drawn": ThresholdShared(servers=5, threshold=4, paired=True, exact_words=0),
}
TRUTH = np.repeat(np.arange(CELLS + 1, dtype=np.int32), [20, 1, 2, 3, 0, 14])


def run_query(deployment, mechanism, *, seed, received=None):
    """Coins come from one stream and the parties' randomness from another, so coins do not depend on the deployment."""
    coins_rng, own = np.random.default_rng(seed).spawn(2)
    n = len(TRUTH)
    aggregator = deployment.aggregator(mechanism, devices=n, rng=own)
    coins = mechanism.toss(mechanism.enrol(n, rng=coins_rng), rng=coins_rng)
    for round_ in range(1, mechanism.rounds + 1):
        here = np.ones(n, dtype=bool) if received is None else received[round_ - 1]
        aggregator.receive(round_, mechanism.answer(round_, TRUTH, coins), here)
    for round_ in range(1, mechanism.rounds + 1):
        lost = 0 if received is None else int((~received[round_ - 1]).sum())
        aggregator.close_round(round_, asked=n, answered=n, lost=lost)
    return aggregator


@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_all_deployments_give_equal_counts_and_estimates(name, mechanism):
    """Without loss, shares cancel, pairing drops no device and mixing changes no count."""
    deployment = DEPLOYMENTS[name]
    plain, here = run_query(Trusted(), mechanism, seed=3), run_query(deployment, mechanism, seed=3)
    np.testing.assert_array_equal(plain.counts, here.counts)
    for name_, value in vars(plain.estimate()).items():
        if name_ != "invert_sampled":  # a function of the same counts
            np.testing.assert_array_equal(value, getattr(here.estimate(), name_))
    assert [account.counted for account in here.accounts] == [len(TRUTH)] * mechanism.rounds
    up = deployment.cost(mechanism).bytes_up
    assert [account.bytes_up for account in here.accounts] == [len(TRUTH) * up] * mechanism.rounds


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_deployments_give_equal_counts_under_loss(name):
    deployment = DEPLOYMENTS[name]
    received = np.random.default_rng(1).random((2, len(TRUTH))) < 0.6
    here = run_query(deployment, SAMPLING, seed=4, received=received)
    other = run_query(Trusted(paired="paired" in name), SAMPLING, seed=4, received=received)
    np.testing.assert_array_equal(here.counts, other.counts)
    both = int(received.all(axis=0).sum())
    for row, account in enumerate(here.accounts):
        arrived = int(received[row].sum())
        if "paired" in name:
            assert (account.counted, account.unpaired) == (both, arrived - both)
        else:
            assert (account.counted, account.unpaired) == (arrived, 0)


def test_received_groups_are_counted_like_single_devices():
    sums = np.array([[9, 1, 0, 0, 0, 0], [3, 1, 2, 3, 0, 1]])
    for paired, received, counted, unpaired in (
        (False, [True, False], [10, 0], [0, 0]),
        (True, [True, False], [0, 0], [10, 0]),
        (True, [True, True], [10, 10], [0, 0]),
        (False, [False, False], [0, 0], [0, 0]),
    ):
        aggregator = SecretShared(paired=paired).aggregator(SAMPLING, devices=0, rng=np.random.default_rng(1))
        aggregator.receive_group(sums, np.array(received), devices=10)
        for row in range(2):
            went = 10 - counted[row] - unpaired[row]
            aggregator.close_round(row + 1, asked=10, answered=10, lost=went)
        assert aggregator.counted == counted
        assert [account.unpaired for account in aggregator.accounts] == unpaired
        expected = sums * np.array([[bool(count)] for count in counted])
        np.testing.assert_array_equal(aggregator.counts, expected)


def test_unbalanced_report_totals_are_refused():
    aggregator = Trusted().aggregator(SAMPLING, devices=3, rng=np.random.default_rng(1))
    aggregator.receive(1, np.zeros(3, dtype=np.int32), np.array([True, True, False]))
    with pytest.raises(ValueError, match="received 3 answered and 2 accounted for"):
        aggregator.close_round(1, asked=3, answered=3)


@pytest.mark.parametrize("servers", [2, 3, 100])
def test_shares_are_computed_up_to_a_limit_and_sampled_above_it(servers):
    deployment = SecretShared(servers=servers)
    devices = deployment.exact_words // (2 * (CELLS + 1) * deployment.servers)
    limit = min(devices, deployment.exact_seeds // (2 * (deployment.servers - 1)))
    assert deployment.makes_shares(SAMPLING, limit)
    assert not deployment.makes_shares(SAMPLING, limit + 1)
    rng = np.random.default_rng(1)
    assert deployment.aggregator(SAMPLING, devices=limit, rng=rng).sums.exact
    assert not deployment.aggregator(SAMPLING, devices=limit + 1, rng=rng).sums.exact


def test_parties():
    assert Trusted().parties(SAMPLING) == ("server:1", "network")
    assert PerRound().parties(SAMPLING) == ("server:1", "server:2", "network")
    assert PerRound().parties(ONE_ROUND) == ("server:1", "network")
    assert ShuffledReports().parties(SAMPLING) == ("server:1", "mixer", "network")
    assert SecretShared(servers=3).parties(SAMPLING) == ("server:1", "server:2", "server:3", "network")
    *servers, network = PerRound().parties(THREE_ROUNDS)
    grown = [*((server,) for server in servers), tuple(servers[:2]), tuple(servers), (network,)]
    assert coalitions(PerRound(), THREE_ROUNDS) == grown


VIEWS = [
    (Trusted(), SAMPLING, ["server:1"], LinkedReports(4)),
    (Trusted(handles="query"), SAMPLING, ["server:1"], LinkedReports(1)),
    (Trusted(), SAMPLING, ["network"], None),
    (Trusted(), SAMPLING, ["vehicles:7"], None),
    (PerRound(), SAMPLING, ["server:1"], Report(1, 4)),
    (PerRound(), SAMPLING, ["server:2", "vehicles:7"], Report(2, 4)),
    (PerRound(), SAMPLING, ["server:1", "server:2"], LinkedReports(4)),
    (PerRound(handles="query"), SAMPLING, ["server:2", "server:1"], LinkedReports(1)),
    (PerRound(), SAMPLING, ["network"], None),
    (PerRound(), THREE_ROUNDS, ["server:1", "server:3"], LinkedReports(4)),
    (ShuffledReports(), ONE_ROUND, ["server:1"], Shuffled(1, 1000, 4)),
    (ShuffledReports(), SAMPLING, ["server:1"], ReleasedCounts(20, 4)),
    (ShuffledReports(), SAMPLING, ["server:1", "mixer"], LinkedReports(4)),
    (ShuffledReports(), SAMPLING, ["mixer", "network"], None),
    (SecretShared(servers=3), SAMPLING, ["server:1", "server:3"], Shares(2, 3, 4)),
    (SecretShared(servers=3), SAMPLING, ["server:1", "server:2", "server:3"], Shares(3, 3, 4)),
    (SecretShared(paired=True), SAMPLING, ["server:1", "server:2"], Shares(2, 2, 1)),
    (SecretShared(), SAMPLING, ["network"], None),
]


@pytest.mark.parametrize(("deployment", "mechanism", "coalition", "view"), VIEWS)
def test_views(deployment, mechanism, coalition, view):
    assert deployment.view(coalition, mechanism, devices=1000, crowd=20, queries=4) == view
    words = deployment.learns(coalition, mechanism)
    assert words.endswith(".")
    assert words[0].isupper()
    assert ("nothing" in words) == (view is None or (isinstance(view, Shares) and view.colluding < view.servers))


def test_coalition_is_parsed_from_names():
    assert Coalition.of(["server:2", "mixer", "vehicles:100", "server:1"]) == Coalition(
        frozenset({1, 2}), mixer=True, vehicles=100
    )
    assert Coalition.of(["network"]) == Coalition(network=True)


def test_costs_of_plain_reports():
    nbytes = report_nbytes(SAMPLING)
    assert Trusted().cost(SAMPLING).bytes_up == nbytes
    assert Trusted(handles="query").cost(SAMPLING).bytes_up == nbytes + 16
    assert PerRound().cost(SAMPLING).stored_bytes == {"server:1": nbytes + 8, "server:2": nbytes + 8}
    mixed = ShuffledReports().cost(SAMPLING)
    assert mixed.bytes_up == nbytes + 48
    assert mixed.stored_bytes == {"server:1": nbytes, "mixer": nbytes + 48 + 8}
    for deployment in (Trusted(robust=True), PerRound(robust=True), ShuffledReports(robust=True)):
        assert any("robust has no effect" in note for note in deployment.cost(SAMPLING).notes)
        assert deployment.cost(SAMPLING).bytes_down == 16


@pytest.mark.parametrize("servers", [2, 3, 10])
def test_shared_report_costs_one_vector_and_one_seed_per_other_server(servers):
    words = 8 * (CELLS + 1)
    cost = SecretShared(servers=servers).cost(SAMPLING)
    assert cost.bytes_up == words + 16 * (servers - 1)
    assert cost.stored_bytes[f"server:{servers}"] == words + 8
    assert list(cost.stored_bytes.values())[:-1] == [16 + 8] * (servers - 1)
    paired = SecretShared(servers=servers, paired=True).cost(SAMPLING)
    assert paired.bytes_up == cost.bytes_up + 16
    assert paired.stored_bytes["server:1"] == 16 + 16
    assert paired.between_servers == 16 * servers * (servers - 1)
    assert any("channel.anonymous" in note for note in paired.notes)
    anonymous = SecretShared(servers=servers, paired=True, anonymous=True).cost(SAMPLING)
    assert any("An anonymous channel is assumed" in note for note in anonymous.notes)
    # Each server's message carries the pseudonym.
    assert sum(paired.bytes_to.values()) == cost.bytes_up + 16 * servers


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SecretShared(servers=1), "servers must be in 2..255, got 1"),
        (lambda: SecretShared(servers=256), "servers must be in 2..255, got 256"),
        (lambda: SecretShared(paired=True, handles="device"), "handles must be 'query' where shares are paired"),
        (lambda: Trusted(handles="none"), "handles must be 'device' or 'query', got 'none'"),
        (lambda: PerRound(handles=""), "handles must be"),
    ],
)
def test_invalid_deployments_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
