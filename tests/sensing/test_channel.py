"""The channel does to reports what it says, with the probabilities it says."""

import numpy as np
import pytest
from scipy import stats

from simulator.sensing.channel import (
    Channel,
    ConstantLatency,
    ExponentialLatency,
    Fate,
    LognormalLatency,
)

LEVEL = 1e-6
N = 200_000

CHANNELS = [
    Channel(),
    Channel(ConstantLatency(2.0)),
    Channel(ConstantLatency(40.0)),
    Channel(ExponentialLatency(12.0), loss_one=0.1, loss_two=0.3),
    Channel(LognormalLatency(20.0, 0.8), loss_one=0.5),
    Channel(loss_one=1.0, loss_two=0.0),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_fates_follow_their_law(channel, moment):
    fates = channel.fates(N, moment=moment, deadline_s=30.0, rng=np.random.default_rng(moment))
    loss = channel.loss_one if moment == 1 else channel.loss_two
    late = channel.latency.exceeds(30.0)
    law = {Fate.LOST: loss, Fate.LATE: (1 - loss) * late, Fate.COUNTED: (1 - loss) * (1 - late)}
    assert channel.arrival(moment=moment, deadline_s=30.0) == pytest.approx(law[Fate.COUNTED])
    for fate, probability in law.items():
        assert stats.binomtest(int((fates == fate).sum()), N, probability).pvalue > LEVEL


@pytest.mark.parametrize("channel", CHANNELS[2:], ids=repr)
def test_missing_reports_are_split_by_the_same_law(channel):
    rng = np.random.default_rng(4)
    late, lost = channel.split_missing(N, moment=1, deadline_s=30.0, rng=rng)
    assert late + lost == N
    missing = 1 - channel.arrival(moment=1, deadline_s=30.0)
    assert stats.binomtest(lost, N, min(1.0, channel.loss_one / missing)).pvalue > LEVEL


@pytest.mark.parametrize(
    ("latency", "law"),
    [
        (ExponentialLatency(12.0), stats.expon(scale=12.0)),
        (LognormalLatency(20.0, 0.8), stats.lognorm(0.8, scale=20.0)),
    ],
    ids=["exponential", "lognormal"],
)
def test_latencies_follow_their_law(latency, law):
    drawn = latency.draw(50_000, rng=np.random.default_rng(5))
    assert stats.kstest(drawn, law.cdf).pvalue > LEVEL
    assert latency.exceeds(30.0) == pytest.approx(law.sf(30.0))


def test_an_ideal_channel_draws_nothing():
    rng = np.random.default_rng(6)
    before = rng.bit_generator.state
    fates = Channel().fates(10, moment=1, deadline_s=1.0, rng=rng)
    assert (fates == Fate.COUNTED).all()
    assert rng.bit_generator.state == before
