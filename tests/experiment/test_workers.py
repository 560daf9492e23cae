"""Runs whose batches of devices answer elsewhere: no number depends on it."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from pandas.testing import assert_frame_equal

from mechanisms.local.common import packed_bits
from mechanisms.local.sampling_privacy import SamplingPrivacy
from simulator import run
from simulator.sensing import survey

SMALL = {
    "scenario.duration_s": 200,
    "campaigns.occupancy.queries": 1,
    "population.outside": 90,
    "attacks": [{"name": "one", "kind": "link_rounds", "coalition": ["server:1"]}],
}
LOSSY = {"channel": {"loss": 0.2, "burst_s": 20.0, "churn": 0.1}}
CASES = {
    "reports": {"population.answers": "reports"},
    "vehicles, lossy": LOSSY,
    "paired shares": LOSSY
    | {"aggregation": {"kind": "secret_shared", "paired": True}, "population.answers": "reports"},
    "messages": {"sensing.engine": "messages", "population.answers": "reports", "population.outside": 5},
}


class Elsewhere(ThreadPoolExecutor):
    """Two threads, to which calls and results are sent as between processes."""

    sent = 0

    def submit(self, call, /, *args, **options):
        work, self.sent = pickle.dumps((call, args, options)), self.sent + 1
        return super().submit(self.answer, work)

    @staticmethod
    def answer(work):
        call, args, options = pickle.loads(work)  # noqa: S301 - made above
        return pickle.loads(pickle.dumps(call(*args, **options)))  # noqa: S301


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_batches_that_answer_elsewhere_give_the_same_tables(monkeypatch, case):
    monkeypatch.setattr(packed_bits, "BATCH_DEVICES", 16)
    monkeypatch.setattr(SamplingPrivacy, "batch", 16)
    monkeypatch.setattr(survey, "FEWEST_AWAY", 4)
    if "paired" in str(case):  # sums of shares are drawn as of a large fleet
        monkeypatch.setattr("simulator.aggregation.servers.SecretShared.makes_shares", lambda *_: False)
    here = run("tiny", overrides=SMALL | case)
    with Elsewhere(2) as workers:
        there = run("tiny", overrides=SMALL | case, workers=workers)
    assert (workers.sent > 4) == ("sensing.engine" not in case)  # devices that act for themselves answer here
    for name in ("estimates", "rounds", "servers", "scores", "claims", "attacks", "guesses", "entries"):
        assert_frame_equal(getattr(there, name), getattr(here, name), check_exact=True)


def test_generators_of_batches_differ(monkeypatch):
    """Two batches of the same devices at the same places give different reports."""
    monkeypatch.setattr(packed_bits, "BATCH_DEVICES", 1 << 10)
    noise = []
    for devices in (1 << 10, 1 << 11):
        overrides = SMALL | {"population.answers": "reports", "population.outside": devices, "traffic.vehicles": 1}
        estimates = run("tiny", overrides=overrides).estimates.query("mechanism == 'randomized'")
        noise.append((estimates["estimate"] - estimates["truth"]).to_numpy())
    assert abs(noise[1] - 2 * noise[0]).min() > 1
