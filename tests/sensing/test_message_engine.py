"""The message-level engine: equal to the survey of whole batches, and open to other behaviour."""

import itertools

import numpy as np
import pytest
import simpy
from test_survey import BURSTY, CELLS, LOSSY, TRUTH, UNHEARD

from mechanisms.local import (
    AnonymizedCancelling,
    BinarySamplingPrivacy,
    HadamardResponse,
    LongitudinalUnary,
    RandomizedResponse,
    SamplingPrivacy,
)
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, ThresholdShared, Trusted
from simulator.sensing.channel import Channel, Downtime, LognormalDelay
from simulator.sensing.messages import Behaviour, Device, MessageSurvey, Party
from simulator.sensing.query import Respondents, Targets
from simulator.sensing.survey import Draws, Survey
from simulator.traffic.clock import Clock, after_traffic

MECHANISMS = [
    RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2),
    SamplingPrivacy(cells=CELLS, sampling=0.45),
    BinarySamplingPrivacy(cells=CELLS, sampling=0.3),
    AnonymizedCancelling(cells=CELLS, shift=0.2),
    HadamardResponse(cells=CELLS, epsilon=1.0),
    LongitudinalUnary(cells=CELLS, epsilon_permanent=2.0, epsilon_first=1.0),
]
CHANNELS = {
    "ideal": Channel(),
    "lossy": LOSSY,
    "bursty": BURSTY,
    "unheard": UNHEARD,
    "outages": Channel(
        LognormalDelay(8.0, 1.0),
        outages=(
            Downtime("server:1", 104.0, 109.0),
            Downtime("mixer", 112.0, 115.0),
            Downtime("server:2", 130.0, 133.0),
        ),
    ),
}
DEPLOYMENTS = {
    "trusted": Trusted(),
    "paired": Trusted(paired=True),
    "per round": PerRound(),
    "shuffled": ShuffledReports(),
    "shared": SecretShared(servers=3, paired=True, exact_words=0),
    "threshold": ThresholdShared(),
}
EVERYWHERE = (MECHANISMS[0], MECHANISMS[3])
"""Mechanisms of one round and of two that are asked through every channel and deployment."""
CASES = [
    *itertools.product(EVERYWHERE, DEPLOYMENTS, CHANNELS),
    *((mechanism, "paired", "bursty") for mechanism in MECHANISMS if mechanism not in EVERYWHERE),
]


def ask(mechanism, deployment, channel, *, seed=1, step_s=1.0, answers="auto", left=12, **behaviour):
    """Ask all rounds in simulated time; with `behaviour`, or `messages`, by the message-level engine."""
    coins, noise, parties, release, handles = np.random.default_rng(seed).spawn(5)
    env, clock = simpy.Environment(), Clock(step_s)
    outside = 40
    made = {
        "asked": Respondents.everyone(len(TRUTH), outside),
        "answers": answers,
        "channel": channel,
        "deadline_s": 20.0,
        "deployment": deployment,
        "draws": Draws(coins, noise, parties, release, handles),
        "targets": Targets(1, np.arange(len(TRUTH)), np.arange(len(TRUTH))[::-1].copy(), 50, len(TRUTH)),
        "remember": lambda batch: mechanism.enrol(batch.stop - batch.start, rng=coins),
    }
    messages = behaviour.pop("messages", bool(behaviour))
    behaviour = Behaviour(**behaviour)
    if messages:
        survey = MessageSurvey(mechanism, env=env, clock=clock, behaviour=behaviour, **made)
    else:
        survey = Survey(mechanism, **made)
    results = []

    def campaign():
        for round_ in range(1, mechanism.rounds + 1):
            moment = 2 + round_ - mechanism.truth_round
            yield after_traffic(env, clock.ticks(70.0 + 30.0 * moment))
            stayed = np.arange(len(TRUTH)) >= (0 if moment < 2 else left)
            present = Respondents(stayed, outside - (0 if moment < 2 else left))
            survey.ask(round_, moment=moment, at_s=clock.seconds(env.now), truth=TRUTH, present=present)
        yield after_traffic(env, env.now + clock.ticks(20.0))
        results.append(survey.close())

    env.process(campaign())
    env.run(until=clock.ticks(1_000.0))
    return survey, *results[0]


@pytest.mark.parametrize(
    ("mechanism", "deployment", "channel"),
    CASES,
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
def test_messages_give_the_reports_arrivals_and_estimates_of_batches(mechanism, deployment, channel):
    made = [
        ask(mechanism, DEPLOYMENTS[deployment], CHANNELS[channel], step_s=0.7, messages=messages)
        for messages in (False, True)
    ]
    (of_batches, estimate, rounds), (of_messages, estimated, accounts) = made
    for field in ("count", "std_error", "lower", "upper"):
        np.testing.assert_array_equal(getattr(estimated, field), getattr(estimate, field))
    assert accounts == rounds
    expected, found = (made_by.recorded(np.bincount(TRUTH), 0.0) for made_by in (of_batches, of_messages))
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.recorded.in_time, expected.recorded.in_time)
    np.testing.assert_array_equal(found.recorded.connections, expected.recorded.connections)
    assert found.recorded.arrived_s.keys() == expected.recorded.arrived_s.keys()
    for party, arrived_s in expected.recorded.arrived_s.items():
        np.testing.assert_array_equal(found.recorded.arrived_s[party], arrived_s)


def test_a_device_that_sends_again_loses_fewer_reports():
    class Repeating(Device):
        """Sends each message again after a second; the copy is lost or not by a draw of its own."""

        rng = np.random.default_rng(3)

        def answer(self, question):
            yield from super().answer(question)
            yield self.survey.env.timeout(1.0)
            if self.rng.random() >= 0.5:
                self.survey.send(question.message(self.number, 0, wait_s=1.0))

    channel = Channel(loss_one=0.5, loss_two=0.5)
    mechanism = RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2)
    once, again = (
        ask(mechanism, Trusted(), channel, left=0, answers="reports", device=device)[2][0]
        for device in (Device, Repeating)
    )
    assert once.answered == again.answered == len(TRUTH) + 40
    # Loss probabilities .5 and .25 over the devices, each within 5 standard deviations.
    for account, share in ((once, 0.5), (again, 0.25)):
        spread = 5.0 * np.sqrt(share * (1.0 - share) * account.answered)
        assert abs(account.lost - share * account.answered) < spread


def test_a_server_that_drops_messages_is_accounted_for():
    class Selective(Party):
        """Ignores every third device."""

        def receive(self, message):
            if message.device % 3:
                super().receive(message)

    mechanism = SamplingPrivacy(cells=CELLS, sampling=0.45)
    _, _, rounds = ask(mechanism, Trusted(), Channel(), left=0, answers="reports", parties={"server:1": Selective})
    devices = len(TRUTH) + 40
    for account in rounds:
        assert account.lost == len(range(0, devices, 3))
        assert account.counted == devices - account.lost


def test_devices_that_answer_by_counts_send_no_messages():
    mechanism = SamplingPrivacy(cells=CELLS, sampling=0.45)
    survey, estimate, rounds = ask(mechanism, Trusted(), LOSSY, answers="counts", messages=True)
    _, expected, accounts = ask(mechanism, Trusted(), LOSSY, answers="counts")
    assert survey.parties["server:1"].kept == []
    np.testing.assert_array_equal(estimate.count, expected.count)
    assert rounds == accounts
