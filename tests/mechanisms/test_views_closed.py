"""Views are a closed set: every mechanism asked directly, with views of its own kind, of others', and of a user's."""

import math
from dataclasses import dataclass, replace

import pytest
from binary_query_cases import QUESTIONS
from ldp_baseline_cases import BASELINES
from mechanism_cases import MECHANISMS

from mechanisms.local import AdaptiveBudget, KRandomizedResponse
from mechanisms.local.common.base import BaseMechanism
from mechanisms.privacy import LinkedReports, LocatedReports, ReleasedCounts, ReleasedDifferences, Report, Shares
from mechanisms.privacy.view import BaseView, with_possible_change
from mechanisms.protocols import protocol_claim, warner

EVERY = {
    **MECHANISMS,
    **BASELINES,
    **QUESTIONS,
    "LBA": AdaptiveBudget(lambda epsilon: KRandomizedResponse(cells=3, epsilon=epsilon), 1.0, 4, "budget"),
    "LPA": AdaptiveBudget(lambda epsilon: KRandomizedResponse(cells=3, epsilon=epsilon), 1.0, 4, "population"),
}


@dataclass(frozen=True)
class WholeJourney(BaseView):
    """A user's own view."""

    queries: int = 1
    adjacency: str = "move"


@dataclass(frozen=True)
class LinkedWithPlace(LinkedReports):
    """A user's view derived from one of the set: it shows more."""


@dataclass(frozen=True)
class ReportWithPlace(Report):
    """As above."""


@pytest.mark.parametrize("name", EVERY)
def test_server_chosen_by_place_knows_it_whatever_the_mechanism(name):
    for queries, adjacency in ((1, "move"), (3, "enter_leave")):
        claim = EVERY[name].claim(LocatedReports(queries, adjacency=adjacency))
        assert claim.epsilon == math.inf
        assert claim.delta(50.0) == 1.0


@pytest.mark.parametrize("name", EVERY)
def test_what_is_no_view_of_the_set_has_no_claim(name):
    for view in (WholeJourney(), LinkedWithPlace(), ReportWithPlace(1), object()):
        assert EVERY[name].claim(view).kind == "unknown"
    assert EVERY[name].claim(Report(4)).kind == "unknown"


@pytest.mark.parametrize("name", EVERY)
def test_all_shares_are_the_linked_reports(name):
    linked, shares = (EVERY[name].claim(view) for view in (LinkedReports(2), Shares(2, 2, 2)))
    assert (shares.kind, shares.delta_kind, shares.delta(0.7)) == (linked.kind, linked.delta_kind, linked.delta(0.7))
    assert EVERY[name].claim(Shares(1, 2)).epsilon == 0.0


def test_a_class_without_rules_knows_nothing():
    class Silent(BaseMechanism):
        cells, tally_shape = 2, (2,)
        estimate_from = variance = None

    for view in (Report(1), LinkedReports(), ReleasedCounts(), ReleasedDifferences(1), Shares(2, 2)):
        assert Silent().claim(view).kind == "unknown"


def test_protocol_of_a_table_knows_its_own_views_only():
    protocol = warner(truthful=0.7)
    for view in (LinkedWithPlace(), ReportWithPlace(1), LocatedReports(), object()):
        assert protocol_claim(protocol, view).kind == "unknown"


def test_with_one_cell_a_move_is_entering_or_leaving():
    differences = ReleasedDifferences(4, 2, other_crowd=3)
    assert with_possible_change(differences, cells=1) == ReleasedDifferences(4, 2)
    assert with_possible_change(differences, cells=2) == differences
    assert with_possible_change(Report(1), cells=1) == replace(Report(1), adjacency="enter_leave")
