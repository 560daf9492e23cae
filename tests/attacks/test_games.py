"""Games: every attack is played through one method, and from plain values."""

import inspect

import numpy as np
import pytest
from synthetic_campaigns import DEPLOYMENTS, attack, campaign, filed_of

from scenarios.kinds import names_of
from simulator.attacks.scores import Score, pool_scores
from simulator.attacks.world import Game, Member, Observer, Truth
from simulator.experiment.assembly.attacks import games_of


@pytest.mark.parametrize("kind", names_of("attack"))
def test_every_attack_is_played_through_the_same_method(kind):
    filed = filed_of(campaign(DEPLOYMENTS["shared"], vehicles=40, queries=3))
    members = (Member("server:1"), Member("server:2"), Member("server:3"), Member("vehicles:2"))
    games = games_of(attack(kind, [], asked=(1, 3)))
    assert len(games) == (2 if kind == "longitudinal" else 1)
    for game in games:
        assert inspect.signature(type(game).play) == inspect.signature(Game.play)
        rng = np.random.default_rng(1)
        scores = list(game.play(Observer(filed, members), Truth(filed.record), rng=rng))
        assert scores
        assert all(isinstance(score, Score) for score in scores)
        assert all(0 <= score.hits <= len(score.truth) for score in scores)
        rows = list(pool_scores(scores, rng=rng))
        assert {row["metric"] for row in rows} == {score.metric for score in scores}


def test_scores_of_a_metric_are_pooled_and_the_greatest_value_is_reported():
    cells = np.arange(4)
    scores = [
        Score(guesses=cells, truth=cells, prior=0.5, theory=1.0),
        Score(metric="seen", value=0.3, unit="probability"),
        Score(guesses=cells, truth=cells[::-1], prior=0.25, theory=0.5),
        Score(guesses=cells[:2], truth=cells[:2], prior=0.5, theory=0.5, metric="seen", value=0.2, unit="probability"),
    ]
    first, second = pool_scores(scores, rng=np.random.default_rng(1))
    assert (first["trials"], first["success"], first["prior"], first["theory"]) == (8, 0.5, 0.375, 0.75)
    assert (first["metric"], first["epsilon_lower"]) == (None, None)
    assert (second["trials"], second["success"], second["value"]) == (2, 1.0, 0.3)
