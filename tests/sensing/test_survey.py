"""One mechanism's part in one query: answers and their delivery."""

import numpy as np
import pytest
from scipy import stats

from mechanisms import local
from simulator.aggregation.rounds import RoundAccount, report_nbytes
from simulator.aggregation.servers import SecretShared, ThresholdShared, Trusted
from simulator.sensing.channel import Channel, ConstantDelay, Downtime, ExponentialDelay, QuestionChannel
from simulator.sensing.query import Respondents, Targets
from simulator.sensing.survey import Draws, Survey

LEVEL = 1e-6
CELLS = 4
TRUTH = np.repeat(np.arange(CELLS + 1, dtype=np.int32), [30, 0, 5, 60, 200])
MECHANISMS = [
    local.NoPrivacy(cells=CELLS),
    local.RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2),
    local.SamplingPrivacy(cells=CELLS, sampling=0.45),
    local.BinarySamplingPrivacy(cells=CELLS, sampling=0.3),
]
LOSSY = Channel(ExponentialDelay(10.0), loss_one=0.15, loss_two=0.3)


BURSTY = Channel(
    ExponentialDelay(10.0),
    loss_one=0.2,
    loss_two=0.2,
    burst_s=40.0,
    duplicates=0.1,
    outages=(Downtime("server:1", 105.0, 108.0),),
)
UNHEARD = Channel(
    ExponentialDelay(6.0),
    loss_one=0.2,
    loss_two=0.2,
    burst_s=40.0,
    question=QuestionChannel(ExponentialDelay(5.0), loss=0.15),
)
TRUSTED, PAIRED, SHARED = Trusted(), Trusted(paired=True), SecretShared(servers=2, paired=True, exact_words=0)
THRESHOLD = ThresholdShared(servers=3, threshold=2, paired=True, exact_words=0)


def ask_once(mechanism, *, answers, channel, seed, outside=500, left=0, truth=TRUTH, deployment=TRUSTED, targets=None):
    """Query every round; before round two the first `left` vehicles and as many outside devices have left."""
    coins, noise, parties, release, handles = np.random.default_rng(seed).spawn(5)
    survey = Survey(
        mechanism,
        asked=Respondents.everyone(len(truth), outside),
        answers=answers,
        channel=channel,
        deadline_s=20.0,
        deployment=deployment,
        draws=Draws(coins, noise, parties, release, handles),
        targets=targets,
        remember=lambda batch: mechanism.enrol(batch.stop - batch.start, rng=coins),
    )
    everyone = Respondents(np.ones(len(truth), dtype=bool), outside)
    stayed = Respondents(np.arange(len(truth)) >= left, outside - left)
    for round_ in range(1, mechanism.rounds + 1):
        moment = 2 + round_ - mechanism.truth_round
        present = everyone if moment < 2 else stayed
        survey.ask(round_, moment=moment, at_s=70.0 + 30.0 * moment, truth=truth, present=present)
    return survey, *survey.close()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("answers", ["reports", "counts", "auto"])
@pytest.mark.parametrize("channel", [LOSSY, BURSTY, UNHEARD], ids=["lossy", "bursty", "unheard"])
@pytest.mark.parametrize(
    "deployment", [TRUSTED, PAIRED, SHARED, THRESHOLD], ids=["trusted", "paired", "shared", "threshold"]
)
def test_every_report_is_accounted_for(mechanism, answers, channel, deployment):
    left = 12
    _, estimate, accounts = ask_once(
        mechanism, answers=answers, channel=channel, seed=1, left=left, deployment=deployment
    )
    assert len(accounts) == mechanism.rounds
    for round_, account in enumerate(accounts, start=1):
        at_truth = round_ >= mechanism.truth_round
        assert account.asked == len(TRUTH) + 500
        assert account.answered == account.asked - account.unheard - (2 * left if at_truth else 0)
        assert (account.unheard > 0) == (channel is UNHEARD)
        assert account.answered == account.counted + account.late + account.lost + account.unpaired
        assert min(account.counted, account.late, account.lost) > 0
        assert (account.unpaired > 0) == (deployment.paired and mechanism.rounds > 1)
        assert (account.duplicates > 0) == (channel is BURSTY)
        cost = deployment.cost(mechanism)
        assert account.messages_up == account.answered * len(deployment.route(round_))
        assert account.bytes_down == account.asked * cost.bytes_down
        copies = account.bytes_up - account.answered * cost.bytes_up
        each = sorted(cost.bytes_to.values()) or [cost.bytes_up]
        assert account.duplicates * each[0] <= copies <= account.duplicates * each[-1]
        assert all(server.sent == server.arrived + server.late + server.lost for server in account.servers)
    assert not deployment.paired or len({account.counted for account in accounts}) == 1
    assert np.isfinite(estimate.count).all()


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("mechanism", MECHANISMS[1:3], ids=lambda m: type(m).__name__)  # of one round, and of two
@pytest.mark.parametrize("answers", ["reports", "counts", pytest.param("auto", marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    ("channel", "deployment"),
    [(Channel(), TRUSTED), (LOSSY, TRUSTED), (LOSSY, SHARED), (BURSTY, PAIRED), (LOSSY, THRESHOLD), (UNHEARD, SHARED)],
    ids=["ideal", "lossy", "lossy-shared", "bursty-paired", "lossy-threshold", "unheard-shared"],
)
def test_estimates_are_unbiased_with_theoretical_variance(mechanism, answers, channel, deployment):
    runs = 300
    true = np.bincount(TRUTH, minlength=CELLS + 1)
    true[0] += 500
    z = []
    for seed in range(runs):
        survey, estimate, _ = ask_once(mechanism, answers=answers, channel=channel, seed=seed, deployment=deployment)
        spread = survey.std_error(true)
        exact = spread == 0
        np.testing.assert_array_equal(estimate.count[exact], true[1:][exact])
        z.append(((estimate.count - true[1:])[~exact]) / spread[~exact])
    z = np.array(z)
    if z.size == 0:
        return
    # Mean and variance of `runs` z-scores per cell: normal and chi-square, allowing for the kurtosis of small cells.
    bound = stats.norm.isf(LEVEL / (2 * 8 * 2 * 15))
    assert np.abs(z.mean(axis=0)).max() * np.sqrt(runs) < bound
    kurtosis = np.maximum(stats.kurtosis(z, axis=0, fisher=False), 3.0)
    assert (np.abs(z.var(axis=0) - 1) / np.sqrt((kurtosis - 1) / runs)).max() < bound


@pytest.mark.parametrize("answers", ["reports", "counts"])
def test_bursts_lose_both_rounds_of_the_same_devices(answers):
    """The share received in both rounds among those received in one, by the distribution of link outages."""
    mechanism = local.SamplingPrivacy(cells=CELLS, sampling=0.45)
    bursty = Channel(loss_one=0.2, loss_two=0.2, burst_s=40.0)
    _, _, accounts = ask_once(
        mechanism,
        answers=answers,
        channel=bursty,
        seed=3,
        outside=200_000,
        deployment=SecretShared(servers=3, paired=True),
    )
    both, received = accounts[0].counted, accounts[0].counted + accounts[0].unpaired
    again = 1.0 - 0.2 * (1.0 - np.exp(-30.0 / (40.0 * 0.8)))
    assert stats.binomtest(both, received, again).pvalue > LEVEL
    assert stats.binomtest(both, received, 0.8).pvalue < LEVEL  # independent losses would give that


@pytest.mark.parametrize("answers", ["reports", "counts"])
@pytest.mark.parametrize("heard", [ConstantDelay(6.0), ExponentialDelay(6.0)], ids=["constant", "random"])
@pytest.mark.parametrize("deployment", [SecretShared(servers=3, paired=True), Trusted()], ids=["shared", "trusted"])
def test_a_question_is_lost_once_for_all_shares_of_a_report(answers, heard, deployment):
    """Outcomes follow (1 − q)·E[F(d − H)^m], where H is the latency of the question that all m messages share."""
    channel = Channel(ExponentialDelay(8.0), question=QuestionChannel(heard, loss=0.1))
    mechanism = local.SamplingPrivacy(cells=CELLS, sampling=0.45)
    _, _, accounts = ask_once(
        mechanism, answers=answers, channel=channel, seed=4, outside=100_000, deployment=deployment
    )
    latency, messages = stats.expon(scale=8.0), len(deployment.route(1))
    at = (
        np.array([6.0])
        if isinstance(heard, ConstantDelay)
        else stats.expon(scale=6.0).ppf((np.arange(1e5) + 0.5) / 1e5)
    )
    in_time = 0.9 * float(np.mean(latency.cdf(20.0 - at) ** messages))
    for account in accounts:
        assert stats.binomtest(account.unheard, account.asked, 0.1).pvalue > LEVEL
        received = account.counted + account.unpaired
        assert stats.binomtest(received, account.asked, in_time).pvalue > LEVEL
        if deployment.paired:
            assert stats.binomtest(account.counted, account.asked, in_time**2).pvalue > LEVEL


def test_targets_are_equal_for_all_mechanisms_and_change_no_result():
    vehicles = np.arange(len(TRUTH)) * 3
    rank = np.random.default_rng(5).permutation(len(TRUTH))
    targets = Targets(7, vehicles, rank, 20, len(TRUTH) - 5)
    expected = vehicles[(rank < 20) | (rank >= len(TRUTH) - 5)]
    for mechanism in MECHANISMS:
        plain = ask_once(mechanism, answers="auto", channel=LOSSY, seed=2)
        survey, estimate, accounts = ask_once(mechanism, answers="auto", channel=LOSSY, seed=2, targets=targets)
        np.testing.assert_array_equal(estimate.count, plain[1].count)
        assert accounts == plain[2]
        kept = survey.recorded(np.bincount(TRUTH), 0.0)
        recorded, cells = kept.recorded, kept.truth
        assert recorded.query == 7
        np.testing.assert_array_equal(recorded.devices, expected)
        np.testing.assert_array_equal(cells, TRUTH[expected // 3])
        assert recorded.in_time.shape == (mechanism.rounds, 25)
        assert len(recorded.reports) == mechanism.rounds
        assert plain[0].recorded(np.bincount(TRUTH), 0.0) is None
    # Devices that answer truthfully are recorded with their true cell.
    survey, *_ = ask_once(local.NoPrivacy(cells=CELLS), answers="auto", channel=LOSSY, seed=2, targets=targets)
    kept = survey.recorded(np.bincount(TRUTH), 0.0)
    recorded, cells = kept.recorded, kept.truth
    np.testing.assert_array_equal(recorded.reports[0], cells)


def test_mechanism_gets_no_truth_before_its_truth_round():
    seen = []

    class Spy(local.SamplingPrivacy):
        def answer(self, round, truth, coins):  # noqa: A002
            seen.append((round, truth.copy()))
            return super().answer(round, truth, coins)

    ask_once(Spy(cells=CELLS, sampling=0.4), answers="auto", channel=Channel(), seed=1)
    (first, before), (second, after) = seen
    assert (first, second) == (1, 2)
    assert (before == 0).all()
    np.testing.assert_array_equal(after, TRUTH)


def test_small_batches_lose_no_report():
    class Small(local.SamplingPrivacy):
        batch = 37

    for answers in ("reports", "auto"):
        _, estimate, accounts = ask_once(Small(cells=CELLS, sampling=0.4), answers=answers, channel=Channel(), seed=1)
        assert accounts[0].counted == len(TRUTH) + 500
        assert estimate.interval == "binomial inversion"


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("answers", ["reports", "counts", "auto"])
def test_no_device_asked_and_no_report_received(mechanism, answers):
    no_device = np.zeros(0, dtype=np.int32)
    _, estimate, accounts = ask_once(mechanism, answers=answers, channel=Channel(), seed=1, outside=0, truth=no_device)
    assert (estimate.count == 0).all()
    assert accounts[-1].asked == 0
    silent = Channel(loss_one=1.0, loss_two=1.0)
    survey, estimate, accounts = ask_once(mechanism, answers=answers, channel=silent, seed=1)
    assert accounts[-1].lost == accounts[-1].answered == len(TRUTH) + 500
    assert np.isfinite(estimate.count).all()
    assert (estimate.upper == len(TRUTH) + 500).all()
    true = np.bincount(TRUTH, minlength=CELLS + 1)
    true[0] += 500
    assert not np.isnan(survey.std_error(true)).any()


def test_unbalanced_account_is_refused():
    with pytest.raises(ValueError, match="received 5 answered and 4 accounted for"):
        RoundAccount(asked=6, answered=5, counted=3, lost=1)


@pytest.mark.parametrize(
    ("mechanism", "nbytes"),
    [
        (local.NoPrivacy(cells=4), 1),
        (local.SamplingPrivacy(cells=255, sampling=0.4), 1),
        (local.SamplingPrivacy(cells=256, sampling=0.4), 2),
        (local.RandomizedResponse(cells=9, first_coin=0.8, second_coin=0.2), 2),
        (local.BinarySamplingPrivacy(cells=1, sampling=0.3), 1),
        (local.AnonymizedCancelling(cells=9, shift=0.3), 3),
        (local.SubsetSelection(cells=9, epsilon=1.0), 2),
        (local.LocalHashing(cells=9, epsilon=1.0), 17),
        (local.HadamardResponse(cells=600, epsilon=1.0), 2),
        (local.DistributedLaplace(cells=5, epsilon=1.0, devices=100), 40),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plain_report_sizes(mechanism, nbytes):
    assert report_nbytes(mechanism) == nbytes
