"""Runs with a user's own sharing: its claims say on what they rest, and are no exact ones."""

import crowdveil as cv
from simulator.aggregation.secret_sharing import ThresholdSharing


class Own(ThresholdSharing):
    """A sharing of a user's, in which two shares of three suffice."""


def test_claims_for_shares_of_a_users_class_say_on_what_they_rest():
    tiny = cv.scenarios.load("tiny").with_({"traffic.vehicles": 40})
    run = cv.run(tiny.with_({"aggregation": {"kind": Own(3, 2)}}))
    claims = run.claims[run.claims["view"] == "shares"]
    one = claims[claims["colluding"] == 1]
    assert (one["epsilon"] == 0.0).any()
    assert set(one["kind"]) == {"bound"}
    assert one["basis"].str.startswith("Rests on what Own states: fewer than 2 of its shares are uniform").all()
    assert not claims[claims["colluding"] == 3]["basis"].str.contains("Rests on").any()


def test_claims_for_shares_of_the_projects_own_classes_rest_on_proofs():
    tiny = cv.scenarios.load("tiny").with_({"traffic.vehicles": 40})
    run = cv.run(tiny.with_({"aggregation": {"kind": "threshold_shared"}}))
    claims = run.claims[(run.claims["view"] == "shares") & (run.claims["colluding"] == 1)]
    assert set(claims["kind"]) == {"exact"}
    assert not claims["basis"].str.contains("Rests on").any()
