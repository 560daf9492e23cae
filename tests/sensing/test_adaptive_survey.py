"""The questions of a divided budget: who is asked what, over many queries with vehicles that come and go."""

import numpy as np
import pytest

from mechanisms.local import AdaptiveBudget, Estimate, KRandomizedResponse, UniformPopulation
from simulator.aggregation.rounds import RoundAccount
from simulator.sensing.adaptive_survey import AdaptiveSurvey, BudgetHistory
from simulator.sensing.query import Respondents

FLEET, OUTSIDE, CELLS = 300, 40, 2


class Questions:
    """Replaces the surveys of the questions: it notes who is asked, and its estimates are random numbers."""

    def __init__(self, rng):
        self.rng, self.asked = rng, []

    def make(self, mechanism, question):
        self.asked.append([mechanism.epsilon, question, None])
        return self

    def ask(self, round_, *, truth, present, **when):
        assert round_ == 1
        assert when.keys() == {"moment", "at_s"}
        self.asked[-1][2], self.truth = present, truth

    def close(self):
        present = self.asked[-1][2]
        zero, counted = np.zeros(CELLS), int(present.vehicles.sum()) + present.outside
        made = Estimate(self.rng.normal(0, 3e4, size=CELLS), zero, zero, zero, "normal")
        return made, [RoundAccount(asked=FLEET, answered=counted, counted=counted)]

    def std_error(self, true_counts):
        return np.full(len(true_counts) - 1, 3.0)


def campaign(divides, window, queries, *, seed):
    """Yield each query's number, its survey, the questions asked and the vehicles that may be asked."""
    rng = np.random.default_rng(seed)
    schedule = AdaptiveBudget(lambda e: KRandomizedResponse(cells=CELLS, epsilon=e), 1.2, window, divides)
    history = BudgetHistory.begin(schedule, fleet=FLEET, outside=OUTSIDE, rng=rng)
    assert history.outside.sum() == OUTSIDE
    for number in range(1, queries + 1):
        vehicles = np.flatnonzero(rng.random(FLEET) < rng.choice([0.1, 0.9]))
        questions, asked = Questions(rng), Respondents.everyone(len(vehicles), OUTSIDE)
        survey = AdaptiveSurvey(history, vehicles=vehicles, asked=asked, make=questions.make, rng=rng)
        truth = rng.integers(CELLS + 1, size=len(vehicles)).astype(np.int32)
        everyone = Respondents(np.ones(len(vehicles), dtype=bool), OUTSIDE)
        survey.ask(1, moment=2, at_s=0.0, truth=truth, present=everyone)
        later = Respondents(rng.random(len(vehicles)) < 0.9, OUTSIDE - 5)
        survey.ask(2, moment=3, at_s=30.0, truth=np.zeros_like(truth), present=later)
        if len(questions.asked):
            np.testing.assert_array_equal(questions.truth, truth)  # both questions are about the moment of truth
        yield number, survey, questions, vehicles


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [1, 3, 6])
def test_no_vehicle_answers_twice_in_a_window(window, seed):
    """Also vehicles that are on the road at few of the queries, whatever is published."""
    last, published = np.full(FLEET, -window), 0
    for number, survey, questions, vehicles in campaign("population", window, 60, seed=seed):
        for epsilon, question, present in questions.asked:
            answering = vehicles[present.vehicles]
            assert epsilon == 1.2
            assert (number - last[answering] >= window).all()
            last[answering] = number
            published += question == "publication"
            assert present.outside <= OUTSIDE
        survey.close()
    assert 60 / (2 * window) < published <= 60


@pytest.mark.parametrize("window", [1, 3, 6])
def test_each_device_of_a_uniform_population_answers_once_in_any_window(window):
    """Vehicles whenever they are on the road, and all devices outside; some of these leave at the last query."""
    rng = np.random.default_rng(5)
    schedule = UniformPopulation(KRandomizedResponse(cells=CELLS, epsilon=1.2), window)
    history = BudgetHistory.begin(schedule, fleet=FLEET, outside=OUTSIDE, rng=rng)
    answers, outside = np.zeros((4 * window, FLEET)), []
    for number in range(1, 4 * window + 1):
        vehicles = np.flatnonzero(rng.random(FLEET) < 0.9)
        asked = Respondents.everyone(len(vehicles), OUTSIDE)
        there = history.members(asked, schedule.groups(number), vehicles=vehicles, asked=asked, rng=rng)
        answers[number - 1, vehicles[there.vehicles]] = 1
        outside.append(there.outside)
    together = answers.reshape(4, window, FLEET).sum(axis=1)
    assert together.max() == 1
    assert 0.85 < together.mean() < 0.95  # a vehicle that is there at the query of its group answers it
    assert np.reshape(outside, (4, window)).sum(axis=1).tolist() == [OUTSIDE] * 4
    left = Respondents(np.zeros(0, dtype=bool), OUTSIDE // 2)
    nobody = np.zeros(0, dtype=np.int64)
    asked = Respondents.everyone(0, OUTSIDE)
    remain = [history.members(left, schedule.groups(n), vehicles=nobody, asked=asked, rng=rng).outside for n in (1, 2)]
    assert all(0 <= members <= group for members, group in zip(remain, outside, strict=False))


@pytest.mark.parametrize("seed", range(4))
def test_no_window_uses_more_than_its_budget(seed):
    window, spent = 6, []
    for _, survey, questions, _ in campaign("budget", window, 60, seed=seed):
        spent.append(sum(epsilon for epsilon, *_ in questions.asked))
        assert all(present.outside in {OUTSIDE, OUTSIDE - 5} for *_, present in questions.asked)
        survey.close()
    assert max(sum(spent[start : start + window]) for start in range(60)) <= 1.2 * (1 + 1e-12)


def test_a_release_published_again_keeps_its_error_and_adds_the_drift():
    before = None
    for number, survey, questions, _ in campaign("budget", 4, 30, seed=7):
        estimate, accounts = survey.close()
        truth = np.array([9, 10 * number, 7])
        error = survey.std_error(truth)
        if "publication" in [question for _, question, _ in questions.asked]:
            np.testing.assert_array_equal(error, [3.0, 3.0])
            before, at = estimate, truth
        else:
            assert estimate is before
            np.testing.assert_allclose(error, np.hypot(3.0, truth[1:] - at[1:]))
            assert accounts[1].asked == accounts[1].counted == 0
        assert len(accounts) == survey.mechanism.rounds == 2
