"""Runs with a user's own likelihood: attacks give it encodings in every deployment, and without one are not tried."""

import numpy as np
import pytest

import crowdveil as cv
from mechanisms.local import KRandomizedResponse


class Without:
    """k-ary randomized response of a class of which no likelihood is known."""

    def __init__(self, *, cells, epsilon=1.0):
        self.held = KRandomizedResponse(cells=cells, epsilon=epsilon)

    def __getattr__(self, name):
        return getattr(self.__dict__["held"], name)


def _held(name):
    return lambda self, *given, **named: getattr(self.held, name)(*given, **named)


for method in ("enrol", "toss", "answer", "encode", "tally", "estimate", "std_error", "sample_counts", "claim"):
    setattr(Without, method, _held(method))


class Right(Without):
    """With the logarithms of its two probabilities."""

    def log_likelihood(self, reports, rounds):
        assert rounds == (1,)
        (vectors,) = reports
        assert vectors.dtype == np.int64
        assert vectors.shape[1:] == self.tally_shape
        return np.log(np.where(vectors == 1, self.held.true_yes, self.held.false_yes))


DEPLOYMENTS = {
    "trusted": ({"kind": "trusted"}, ["server:1"]),
    "shuffled": ({"kind": "shuffled"}, ["server:1", "mixer"]),
    "secret_shared": ({"kind": "secret_shared"}, ["server:1", "server:2"]),
    "too few shares": ({"kind": "secret_shared"}, ["server:1"]),
    "published counts": ({"kind": "trusted"}, []),
}


def attacked(mechanism, aggregation, coalition):
    tiny = cv.scenarios.load("tiny").with_({"traffic.vehicles": 300})
    kind = "shares" if aggregation["kind"] == "secret_shared" else "link_rounds"
    return cv.run(
        tiny.with_(
            {
                "aggregation": aggregation,
                "mechanisms": [{"kind": "no_privacy"}, {"kind": mechanism, "name": "own", "epsilon": 3.0}],
                "attacks": [{"kind": kind, "coalition": coalition, "mechanisms": ["own"]}],
            }
        )
    )


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_attacks_give_encodings_in_every_deployment(name):
    (row,) = attacked(Right, *DEPLOYMENTS[name]).attacks.to_dict("records")
    assert (row["gain"] > 0.2) == (name in ("trusted", "shuffled", "secret_shared"))


@pytest.mark.parametrize("name", ["trusted", "secret_shared"])
def test_a_mechanism_without_a_likelihood_is_not_tried(name):
    run = attacked(Without, *DEPLOYMENTS[name])
    assert not len(run.attacks)
    assert any("not tried: Without has no likelihood" in warning for warning in run.record.warnings)
