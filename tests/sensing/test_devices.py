"""Devices that act for themselves: equal to batches where they follow the protocol, and free to do otherwise."""

import itertools

import numpy as np
import pytest
import simpy
from test_survey import BURSTY, CELLS, LOSSY, TRUTH, UNHEARD

from mechanisms import local
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, ThresholdShared, Trusted
from simulator.sensing.channel import Channel, Downtime, LognormalDelay
from simulator.sensing.device import Behaviour, Device, Party, QuerySubject, World, WrittenVector
from simulator.sensing.query import Respondents, Targets
from simulator.sensing.survey import Draws, Survey
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import State, VehicleStates

MECHANISMS = [
    local.RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2),
    local.SamplingPrivacy(cells=CELLS, sampling=0.45),
    local.BinarySamplingPrivacy(cells=CELLS, sampling=0.3),
    local.AnonymizedCancelling(cells=CELLS, shift=0.2),
    local.HadamardResponse(cells=CELLS, epsilon=1.0),
    local.LongitudinalUnary(cells=CELLS, epsilon_permanent=2.0, epsilon_first=1.0),
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
EXACT, SAMPLING = local.NoPrivacy(cells=CELLS), MECHANISMS[1]
DEVICES = len(TRUTH) + 40
"""Vehicles, and devices outside every cell."""
EVERYWHERE = (MECHANISMS[0], MECHANISMS[3])
"""Mechanisms of one round and of two that are asked through every channel and deployment."""
CASES = [
    *itertools.product(EVERYWHERE, DEPLOYMENTS, CHANNELS),
    *((mechanism, "paired", "bursty") for mechanism in MECHANISMS if mechanism not in EVERYWHERE),
]


class Parked:
    """An engine whose vehicles stay in the cells of `TRUTH`, each 100 m wide, the first from x = 50 m."""

    vehicles = len(TRUTH)

    def place_of(self, numbers):
        xy = np.column_stack([100.0 * TRUTH[numbers], np.zeros(len(numbers))])
        return VehicleStates(np.full(len(xy), State.ON_ROAD), np.full(len(xy), -1), np.zeros(len(xy)), xy)

    origin_of = place_of

    def class_of(self, numbers):
        return ["bus" if number % 2 else "passenger" for number in numbers]


def cells_of(places):
    cells = np.rint(places.xy[:, 0] / 100.0).astype(np.int32)
    return np.where(cells <= CELLS, cells, np.int32(0))


SUBJECT = QuerySubject("c", 1, "m", CELLS, cells_of)


def ask(mechanism, deployment, channel, *, seed=1, step_s=1.0, answers="auto", left=12, every=False, **behaviour):
    """Ask all rounds in simulated time; `every` device acts for itself, or those with a behaviour of their own."""
    coins, noise, parties, release, handles = np.random.default_rng(seed).spawn(5)
    env, clock = simpy.Environment(), Clock(step_s)
    outside = 40
    world = World(env, clock, Behaviour(**behaviour), devices=len(TRUTH) + outside, engine=Parked(), every=every)
    survey = Survey(
        mechanism,
        asked=Respondents.everyone(len(TRUTH), outside),
        answers=answers,
        channel=channel,
        deadline_s=20.0,
        deployment=deployment,
        draws=Draws(coins, noise, parties, release, handles),
        targets=Targets(1, np.arange(len(TRUTH)), np.arange(len(TRUTH))[::-1].copy(), 50, len(TRUTH)),
        remember=lambda batch: mechanism.enrol(batch.stop - batch.start, rng=coins),
        world=world,
        subject=SUBJECT,
    )
    results = []

    def campaign():
        for round_ in range(1, mechanism.rounds + 1):
            moment = 2 + round_ - mechanism.truth_round
            yield after_traffic(env, clock.ticks(70.0 + 30.0 * moment))
            stayed = np.arange(len(TRUTH)) >= (0 if moment < 2 else left)
            present = Respondents(stayed, outside - (0 if moment < 2 else left))
            world.see("c", world.engine.place_of(np.arange(len(TRUTH))), TRUTH)
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
        ask(mechanism, DEPLOYMENTS[deployment], CHANNELS[channel], step_s=0.7, every=every) for every in (False, True)
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


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_few_acting_devices_among_batches_change_nothing(name):
    """Devices of a class of their own that changes nothing, through a lossy channel, in two rounds."""

    class Same(Device):
        pass

    _, estimate, rounds = ask(SAMPLING, DEPLOYMENTS[name], LOSSY)
    some = {"device": lambda number: Same if number % 3 else Device}
    _, mixed, accounts = ask(SAMPLING, DEPLOYMENTS[name], LOSSY, **some)
    np.testing.assert_array_equal(mixed.count, estimate.count)
    assert accounts == rounds


class Copying(Device):
    """Sends each report again after a second: a copy."""

    def answer(self, question):
        report = self.report(question, self.coins(question))
        self.send(question, report)
        yield self.wait(1.0)
        self.send(question, report)


class Doubling(Device):
    """Answers a second time after a second, with the coins of the first answer."""

    def answer(self, question):
        yield from super().answer(question)
        yield self.wait(1.0)
        yield from super().answer(question)


def test_a_device_that_sends_again_loses_fewer_reports():
    channel = Channel(loss_one=0.5, loss_two=0.5)
    once, again = (
        ask(MECHANISMS[0], Trusted(), channel, left=0, answers="reports", device=device)[2][0]
        for device in (Device, Copying)
    )
    assert once.answered == again.answered == DEVICES
    # Loss probabilities .5 and .25 over the devices, each within 5 standard deviations.
    for account, share in ((once, 0.5), (again, 0.25)):
        spread = 5.0 * np.sqrt(share * (1.0 - share) * account.answered)
        assert abs(account.lost - share * account.answered) < spread


@pytest.mark.parametrize(
    ("device", "deployment", "field"),
    [
        (Copying, Trusted(), "duplicates"),
        (Doubling, Trusted(), "rejected"),
        (Doubling, Trusted(handles="query", paired=True), "rejected"),
        (Doubling, ShuffledReports(), "counted"),
    ],
)
def test_second_answers_are_dropped_by_who_can_see_them(device, deployment, field):
    survey, estimate, (account,) = ask(EXACT, deployment, Channel(), left=0, answers="reports", device=device)
    assert account.asked == DEVICES
    assert getattr(account, field) == DEVICES * (2 if field == "counted" else 1)
    assert account.counted + account.rejected == account.answered
    twice = 2 if field == "counted" else 1
    np.testing.assert_array_equal(estimate.count, twice * np.bincount(TRUTH, minlength=CELLS + 1)[1:])
    if twice == 2:
        coin = MECHANISMS[0]
        truth = np.bincount(TRUTH, minlength=CELLS + 1) + np.array([40] + [0] * CELLS)
        survey = ask(coin, deployment, Channel(), left=0, answers="reports", device=device)[0]
        np.testing.assert_allclose(survey.std_error(truth), np.sqrt(2.0) * coin.std_error(truth))


@pytest.mark.parametrize("deployment", [Trusted(), SecretShared(servers=2), SecretShared(servers=2, robust=True)])
def test_amplified_vectors_are_stopped_by_plain_servers_and_range_checks(deployment):
    class Loud(Device):
        def report(self, question, coins):
            return WrittenVector(50 * question.mechanism.encode(super().report(question, coins))[0])

    loud = np.arange(len(TRUTH)) % 5 == 0
    _, estimate, (account,) = ask(
        EXACT, deployment, Channel(), left=0, device=lambda number: Loud if number % 5 == 0 else Device
    )
    honest, others = (np.bincount(TRUTH[chosen], minlength=CELLS + 1)[1:] for chosen in (~loud, loud))
    counted = isinstance(deployment, SecretShared) and not deployment.robust
    assert account.rejected == (0 if counted else np.count_nonzero(loud))
    expected = honest + 50 * others if counted else honest * (account.asked / account.counted)
    np.testing.assert_allclose(estimate.count, expected)


def test_what_a_device_is_and_what_it_may_do():
    seen = []

    class Curious(Device):
        """Is silent at its vehicle's home, unless that is a bus, which says that it has moved by a cell."""

        def takes_part(self, question):
            seen.append((self.number, self.vehicle_class, question.round, question.asked_s, question.route))
            return self.vehicle_class == "bus" or self.position().distance(self.home) > 0.0

        def position(self):
            return super().position().moved(100.0, 0.0) if self.vehicle_class == "bus" else super().position()

    _, estimate, (account,) = ask(EXACT, Trusted(), Channel(), left=0, device=Curious)
    assert account.silent == np.count_nonzero(np.arange(len(TRUTH)) % 2 == 0)
    assert seen[:2] == [(0, "passenger", 1, 130.0, (("server:1",),)), (1, "bus", 1, 130.0, (("server:1",),))]
    moved = np.bincount(TRUTH[1::2] + 1, minlength=CELLS + 2)[1 : CELLS + 1]
    np.testing.assert_allclose(estimate.count, moved * (account.asked / account.counted))


def test_a_late_device_answers_about_the_cell_it_is_then_in_and_after_the_close_not_at_all():
    class Slow(Device):
        def answer(self, question):
            yield self.wait(15.0 if self.number % 2 else 60.0)
            moved = TRUTH.copy()
            TRUTH[:] = 1
            yield from super().answer(question)
            TRUTH[:] = moved

    _, estimate, (account,) = ask(EXACT, Trusted(), Channel(), left=0, device=Slow)
    answered = np.count_nonzero(np.arange(len(TRUTH)) % 2)
    assert (account.silent, account.answered) == (len(TRUTH) - answered, answered + 40)
    assert estimate.count[0] * account.counted / account.asked == pytest.approx(answered)


def test_devices_without_a_fix_a_home_or_a_wait():
    """Devices outside every cell have neither place nor home."""

    class Lost(Device):
        def position(self):
            return None if self.number % 2 else super().position()

        def takes_part(self, question):  # noqa: ARG002 - whatever is asked
            return self.number % 2 or super().position().distance(self.home) != 0.0

        def answer(self, question):
            if self.takes_part(question):
                self.send(question, self.report(question, self.coins(question)))

    _, estimate, (account,) = ask(EXACT, Trusted(), Channel(), left=0, answers="reports", device=Lost)
    assert account.silent == np.count_nonzero(np.arange(len(TRUTH)) % 2 == 0)
    assert not estimate.count.any()


def test_attacks_read_what_was_sent():
    class Liar(Device):
        def cell(self, subject):  # noqa: ARG002 - a lie
            return 2

    survey, _, _ = ask(EXACT, Trusted(), Channel(), left=0, device=Liar)
    record = survey.recorded(np.bincount(TRUTH), 0.0)
    assert set(record.recorded.reports[0].tolist()) == {2}
    assert set(record.truth.tolist()) - {2}


def test_a_device_sends_one_report():
    class Many(Device):
        def report(self, question, coins):  # noqa: ARG002 - none of its own
            return np.zeros(3, dtype=np.int32)

    with pytest.raises(ValueError, match="a device sends one report, a batch of one; it sent 3"):
        ask(MECHANISMS[0], Trusted(), Channel(), device=Many)


def test_a_server_that_drops_messages_is_accounted_for():
    class Selective(Party):
        """Ignores every third device."""

        def receive(self, answer):
            if answer.handle % 3:
                super().receive(answer)

    _, _, rounds = ask(SAMPLING, Trusted(), Channel(), left=0, answers="reports", parties={"server:1": Selective})
    for account in rounds:
        assert account.lost == len(range(0, DEVICES, 3))
        assert account.counted == DEVICES - account.lost


def test_devices_that_answer_by_counts_send_no_messages():
    _, estimate, rounds = ask(SAMPLING, Trusted(), LOSSY, answers="counts", every=True)
    _, expected, accounts = ask(SAMPLING, Trusted(), LOSSY, answers="counts")
    np.testing.assert_array_equal(estimate.count, expected.count)
    assert rounds == accounts
