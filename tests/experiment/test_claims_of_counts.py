"""Claims of runs whose answers are drawn as counts, with new coins in every query, and claims of one cell."""

import itertools
import math

import numpy as np
import pytest

from mechanisms.central import Generalised, LaplaceCounts
from mechanisms.local import LongitudinalUnary, NoPrivacy
from mechanisms.planning import Target, plan
from mechanisms.planning.planned_mechanisms import TrustedServer
from mechanisms.privacy import LinkedReports, ReleasedCounts, Report, pair_delta, pair_epsilon
from mechanisms.privacy.integer_noise import IntegerNoise
from simulator import run
from simulator.aggregation.server_noise import noisy_claim
from simulator.experiment.assembly.mechanisms import drawn_as_counts
from simulator.pages.report import build_report
from simulator.pages.terminal_summary import print_summary

TOWN = """
scenario = {{name = "town", duration_s = 900}}
roads = {{source = "grid", rows = 3, columns = 3, spacing_m = 150}}
cells = {{kind = "square", size_m = {size_m}}}
traffic = {{vehicles = 40, parked = "answer", departures = [{{from_s = 0, to_s = 60, share = 1.0}}]}}
population = {{answers = "{answers}", outside = {outside}}}
claims = {{queries = [1, 4, 20]}}
[[campaigns]]
name = "first"
start_s = 300
queries = 2
every_s = 120
"""
KEPT = """
[[mechanisms]]
name = "kept"
kind = "longitudinal_unary"
epsilon_permanent = 4
epsilon_first = 1
"""


def ran(tmp_path, mechanism=KEPT, answers="counts", outside=0, size_m=1000):
    file = tmp_path / "town.toml"
    file.write_text(TOWN.format(answers=answers, outside=outside, size_m=size_m) + mechanism)
    return run(file)


def pure(result, view, **where):
    rows = result.claims[(result.claims["view"] == view) & (result.claims["delta"] == 0.0)]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.iloc[0]


def test_counts_of_kept_bits_are_claimed_with_new_coins(tmp_path, capsys):
    """One cell: a bit is e/2 + 1/2 times as likely, in each of T independent queries; kept bits would have 11.709."""
    result = ran(tmp_path)
    assert result.record.city.cells == 1
    for queries in (1, 4, 20):
        row = pure(result, "linked_reports", queries=queries)
        assert row["epsilon"] == pytest.approx(queries * math.log((math.e + 1.0) / 2.0))
        assert "stays" not in row["basis"]
    assert pure(result, "linked_reports", queries=20)["epsilon"] == pytest.approx(12.402, abs=1e-3)
    directory = result.save(tmp_path / "run")
    print_summary(directory)
    for words in (" ".join(capsys.readouterr().out.split()), build_report(directory)):
        assert "claims are for new coins" in words


def test_several_cells_reveal_the_first_budget_at_every_query(tmp_path):
    """Four queries: 4.0, where one that stays would reveal 1.97 with kept bits."""
    result = ran(tmp_path, size_m=160)
    assert pure(result, "linked_reports", queries=4)["epsilon"] == pytest.approx(4.0)


def test_reports_keep_the_claims_of_kept_bits(tmp_path):
    result = ran(tmp_path, answers="reports")
    kept = LongitudinalUnary(cells=1, epsilon_permanent=4, epsilon_first=1).claim(LinkedReports(20))
    assert pure(result, "linked_reports", queries=20)["epsilon"] == kept.epsilon == pytest.approx(11.709, abs=1e-3)
    assert not any("new coins" in warning for warning in result.record.warnings)


def test_devices_outside_drawn_as_counts_are_warned_of(tmp_path):
    result = ran(tmp_path, answers="auto", outside=50)
    assert any("outside every cell are drawn as counts" in warning for warning in result.record.warnings)
    assert pure(result, "linked_reports", queries=20)["epsilon"] == pytest.approx(11.709, abs=1e-3)


def test_a_users_kept_randomness_has_no_claim_over_several_queries():
    class Own(LongitudinalUnary):
        without_memory = None
        bit = property(lambda self: LongitudinalUnary.without_memory.func(self).bit)

    own = Own(cells=2, epsilon_permanent=4, epsilon_first=1)
    drawn = drawn_as_counts(own)
    assert drawn.claim(Report(1)).epsilon == own.claim(Report(1)).epsilon
    assert drawn.claim(Report(1, 2)).kind == "unknown"
    assert drawn.tally_shape == own.tally_shape
    plain = NoPrivacy(cells=2)
    assert drawn_as_counts(plain) is plain


def test_noise_on_sums_of_kept_bits_over_two_queries():
    """One device, one cell: its kept bit, flipped in each query, and the noise of one server, against enumeration."""
    mechanism = LongitudinalUnary(cells=1, epsilon_permanent=3.0, epsilon_first=2.9, permanent="symmetric")
    noise = IntegerNoise("discrete_laplace", 0.4)
    p, q, f = mechanism.true_kept, mechanism.false_kept, mechanism.flip
    step = np.exp(-np.abs(np.arange(-30, 31)) / 0.4)
    step /= step.sum()
    shown = [np.convolve([1 - f, f], step), np.convolve([f, 1 - f], step)]  # by the kept bit
    hit = (p - q) / (1.0 - q)
    laws = {}
    for journey in itertools.product((0, 1), repeat=2):
        laws[journey] = sum(
            (q if z else 1 - q)
            * (hit if h else 1 - hit)
            * np.multiply.outer(*(shown[z or (truth and h)] for truth in journey))
            for z, h in itertools.product((0, 1), repeat=2)
        ).ravel()
    view = ReleasedCounts(None, 2, 1, colluding=0, servers=1)
    claim = noisy_claim(mechanism, view, noise)
    for one, other in itertools.combinations(laws.values(), 2):
        kept = (one > 1e-25) & (other > 1e-25)
        assert claim.epsilon >= pair_epsilon(one[kept], other[kept]) - 1e-9
        for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
            assert claim.delta(epsilon) >= pair_delta(one, other, epsilon=epsilon) - 1e-9


LAPLACE = """
release = {kind = "laplace", epsilon = 1.0}
[[mechanisms]]
name = "trusted"
kind = "no_privacy"
"""


@pytest.mark.parametrize(("loss", "rows"), [(0.0, 2), (0.3, 0)])
def test_a_device_more_or_less_changes_a_released_count_as_one_that_enters(loss, rows):
    """Where every device is counted; else counts are scaled by numbers that a device more or less changes."""
    release = [{"name": "all", "queries": 1, "start_s": 200, "release": {"kind": "laplace", "epsilon": 0.7}}]
    claims = run("tiny", overrides={"campaigns": release, "channel.loss": loss, "attacks": []}).claims
    named = claims[(claims["mechanism"] == "baseline") & claims["crowd"].isna()].set_index(["adjacency", "epsilon"])
    assert len(claims[(claims["adjacency"] == "add_remove") & claims["at_delta_zero"]]) == rows
    if rows:
        more, entering = (named.loc[adjacency, ["delta", "kind"]] for adjacency in ("add_remove", "enter_leave"))
        assert more.equals(entering.loc[more.index])
        assert more.loc[0.7].tolist() == [0.0, "exact"]
    assert not claims[claims["view"] == "linked_reports"]["adjacency"].eq("add_remove").any()


def test_a_move_of_one_cell_is_leaving_it(tmp_path):
    result = ran(tmp_path, LAPLACE)
    for adjacency in ("move", "enter_leave"):
        assert pure(result, "released_counts", queries=4, adjacency=adjacency)["epsilon"] == pytest.approx(4.0)
    for cells, epsilon in ((1, 1.0), (2, 2.0)):
        server = TrustedServer(cells, LaplaceCounts(epsilon=1.0), None)
        assert server.claim(ReleasedCounts(adjacency="move")).epsilon == pytest.approx(epsilon)
    whole = Generalised(levels=[np.zeros(1, dtype=np.int64)], k=3, sampling=0.3, epsilon=0.5)
    moved, left = (whole.claim(crowd=None, adjacency=adjacency) for adjacency in ("move", "enter_leave"))
    assert moved.delta(1.0) == left.delta(1.0)


def test_plan_of_one_cell_needs_half_the_noise():
    for adjacency, name in itertools.product(("move", "enter_leave"), ("laplace_counts", "distributed_laplace")):
        target = Target(cells=1, population=1000, occupancy=100, view="released", epsilon=1.0, adjacency=adjacency)
        found = plan(target, (name,), claims=False).best
        assert found.std_error == pytest.approx(1.357, abs=1e-3)
