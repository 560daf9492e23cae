"""The channel delivers, delays and loses reports with the configured probabilities."""

import numpy as np
import pytest
from scipy import stats

from simulator.sensing.channel import (
    Channel,
    ConstantDelay,
    DeliveryStatus,
    Downtime,
    ExponentialDelay,
    LognormalDelay,
    QuestionChannel,
    Transmission,
)

LEVEL = 1e-6
N = 200_000
CHAIN = (("server:1", "server:2"),)
SHARES = (("server:1",), ("server:2",))

CHANNELS = [
    Channel(),
    Channel(ConstantDelay(2.0)),
    Channel(ConstantDelay(40.0)),
    Channel(ExponentialDelay(12.0), loss_one=0.1, loss_two=0.3),
    Channel(LognormalDelay(20.0, 0.8), loss_one=0.5),
    Channel(loss_one=1.0, loss_two=0.0),
    Channel(ExponentialDelay(12.0), loss_one=0.2, loss_two=0.2, burst_s=45.0),
    Channel(ExponentialDelay(12.0), outages=(Downtime("server:2", 105.0, 112.0), Downtime("server:1", 110.0, 140.0))),
    Channel(LognormalDelay(20.0, 0.8), loss_one=0.1, outages=(Downtime("server:1", 0.0, 110.0),)),
    Channel(
        ExponentialDelay(12.0),
        outages=(Downtime("server:1", 110.0, 114.0),),
        question=QuestionChannel(ConstantDelay(8.0)),
    ),
    Channel(ConstantDelay(2.0), outages=(Downtime("server:1", 102.0, 103.0),)),
    Channel(ConstantDelay(2.0), outages=(Downtime("server:1", 101.0, 102.0),)),
    Channel(ConstantDelay(2.0), outages=(Downtime("mixer", 0.0, 1000.0),)),
]


def send(moment, since_s=0.0, route=CHAIN):
    return Transmission(moment, 100.0, 30.0, route, since_s)


@pytest.mark.parametrize("channel", CHANNELS, ids=range(len(CHANNELS)))
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_delivery_status_follows_its_probabilities(channel, moment):
    found = channel.deliver(N, send(moment), rng=np.random.default_rng(moment))
    distribution = channel.probabilities(send(moment))
    assert distribution.shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert distribution.link_down == (channel.loss_one if moment == 1 else channel.loss_two)
    assert (found.status[found.link_down] == DeliveryStatus.LOST).all()
    expected = {
        DeliveryStatus.COUNTED: distribution.in_time,
        DeliveryStatus.LATE: distribution.late,
        DeliveryStatus.LOST: distribution.link_down + sum(distribution.server_down),
    }
    for fate, probability in expected.items():
        assert stats.binomtest(int((found.status == fate).sum()), N, min(1.0, probability)).pvalue > LEVEL
    assert stats.binomtest(int(found.link_down.sum()), N, distribution.link_down).pvalue > LEVEL
    # The first server stores late messages and those that the second one missed; the second stores only counted ones.
    first, second = (np.isfinite(found.arrived_s[server]) for server in ("server:1", "server:2"))
    kept = distribution.in_time + distribution.late + distribution.server_down[1]
    assert stats.binomtest(int(first.sum()), N, min(1.0, kept)).pvalue > LEVEL
    np.testing.assert_array_equal(second, found.status == DeliveryStatus.COUNTED)
    assert (first | ~second).all()
    np.testing.assert_array_equal(found.left, ~found.link_down)


@pytest.mark.parametrize("channel", CHANNELS, ids=range(len(CHANNELS)))
def test_shares_are_delivered_as_separate_messages(channel):
    """A report of two shares is counted if both arrive in time; a link that stays down loses both."""
    found = channel.deliver(N, send(1, route=SHARES), rng=np.random.default_rng(1))
    distributions = [channel.probabilities(send(1, route=SHARES), message) for message in (0, 1)]
    arrived = [np.isfinite(found.arrived_s[path[0]]) for path in SHARES]
    for distribution, there, within in zip(distributions, arrived, found.in_time, strict=True):
        up = 1.0 - (channel.loss_one if channel.burst_s else 0.0) * (distribution is distributions[1])
        assert stats.binomtest(int((there & within).sum()), N, min(1.0, up * distribution.in_time)).pvalue > LEVEL
        assert stats.binomtest(int((there & ~within).sum()), N, min(1.0, up * distribution.late)).pvalue > LEVEL
    both = distributions[0].in_time * distributions[1].in_time
    assert stats.binomtest(int((found.status == DeliveryStatus.COUNTED).sum()), N, min(1.0, both)).pvalue > LEVEL
    lost = ~(arrived[0] & arrived[1])
    np.testing.assert_array_equal(found.status == DeliveryStatus.LOST, lost)
    if channel.burst_s:
        assert not (arrived[0] | arrived[1])[found.link_down].any()


@pytest.mark.parametrize("route", [CHAIN, SHARES])
def test_message_that_arrives_at_the_deadline_is_in_time(route):
    for latency, fate in ((30.0, DeliveryStatus.COUNTED), (np.nextafter(30.0, 31.0), DeliveryStatus.LATE)):
        for channel in (Channel(ConstantDelay(latency)), Channel(ConstantDelay(latency), loss_one=0.5)):
            sending = send(1, route=route)
            found = channel.deliver(1_000, sending, rng=np.random.default_rng(2))
            arrived = np.isfinite(found.arrived_s["server:1"]) & (found.status != DeliveryStatus.LOST)
            assert arrived.any()
            assert (found.status[arrived] == fate).all()
            assert (channel.probabilities(sending).late == 0.0) == (fate == DeliveryStatus.COUNTED)


def test_outage_loses_exactly_the_messages_that_arrive_during_it():
    counted = [channel.probabilities(send(1)).in_time for channel in CHANNELS[-3:]]
    assert counted == [0.0, 1.0, 1.0]  # [102, 103) takes what arrives at 102; [101, 102) does not; nor a mixer not used
    both = CHANNELS[7].probabilities(send(1))
    distribution = stats.expon(scale=12.0)
    # Server 1 is down until 40 seconds after sending, beyond the deadline: later arrivals before then are lost too.
    assert sum(both.server_down) == pytest.approx(distribution.cdf(40.0) - distribution.cdf(5.0))
    assert both.late == pytest.approx(distribution.sf(40.0))
    first = CHANNELS[7].probabilities(send(1, route=(("server:1",),)))
    assert sum(first.server_down) == pytest.approx(distribution.cdf(40.0) - distribution.cdf(10.0))


@pytest.mark.parametrize("since_s", [0.001, 30.0, 1e6])
def test_link_that_was_down_is_more_likely_down_again(since_s):
    """Compared with a two-state Markov process simulated interval by interval."""
    channel = Channel(loss_one=0.2, loss_two=0.2, burst_s=45.0)
    rng = np.random.default_rng(3)
    first = channel.deliver(N, send(1), rng=rng).link_down
    second = channel.deliver(N, send(2, since_s), was_down=first, rng=rng).link_down
    assert stats.binomtest(int(second.sum()), N, 0.2).pvalue > LEVEL  # stationary
    again = int((first & second).sum())
    down = channel.probabilities(send(2, since_s), was_down=True).link_down
    assert stats.binomtest(again, int(first.sum()), down).pvalue > LEVEL
    assert 0.2 * down + 0.8 * channel.probabilities(send(2, since_s), was_down=False).link_down == pytest.approx(0.2)
    if since_s == 30.0:
        spells = 4_000
        still = 0
        for state in np.ones(spells, dtype=bool):
            at, now = 0.0, bool(state)
            while True:
                at += rng.exponential(45.0 if now else 45.0 * 0.8 / 0.2)
                if at > since_s:
                    break
                now = not now
            still += now
        assert stats.binomtest(still, spells, down).pvalue > LEVEL


@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_links_that_are_never_or_always_up_stay_so(loss):
    channel = Channel(loss_one=loss, loss_two=loss, burst_s=45.0)
    for was_down in (None, np.full(10, loss == 1.0)):
        found = channel.deliver(10, send(2, 30.0), was_down=was_down, rng=np.random.default_rng(3))
        assert (found.link_down == (loss == 1.0)).all()
        assert (found.left == (loss == 0.0)).all()


@pytest.mark.parametrize(
    ("latency", "distribution"),
    [(ExponentialDelay(12.0), stats.expon(scale=12.0)), (LognormalDelay(20.0, 0.8), stats.lognorm(0.8, scale=20.0))],
    ids=["exponential", "lognormal"],
)
def test_latencies_follow_their_distribution(latency, distribution):
    drawn = latency.draw(50_000, rng=np.random.default_rng(5))
    assert stats.kstest(drawn, distribution.cdf).pvalue > LEVEL
    assert latency.exceeds(30.0) == pytest.approx(distribution.sf(30.0))
    assert latency.exceeds(0.0) == 1.0


def test_an_ideal_channel_draws_nothing():
    rng = np.random.default_rng(6)
    before = rng.bit_generator.state
    found = Channel().deliver(10, send(1), rng=rng)
    assert (found.status == DeliveryStatus.COUNTED).all()
    assert not found.link_down.any()
    assert found.left.all()
    assert Channel().copies(10, rng=rng) == 0
    assert rng.bit_generator.state == before


def test_number_of_duplicates_is_binomial():
    copies = Channel(duplicates=0.3).copies(N, rng=np.random.default_rng(7))
    assert stats.binomtest(copies, N, 0.3).pvalue > LEVEL
