"""Published counts of a release: which cells, errors, claims, and which rows stay unchanged."""

import math

import numpy as np
import pandas as pd
import pytest

from mechanisms.central import LaplaceCounts, SampleThenSuppress, generalisation
from mechanisms.central.generalisation import GeneralisedSample
from mechanisms.local import SamplingPrivacy
from mechanisms.privacy import ReleasedDifferences
from scenarios import ScenarioError
from simulator.aggregation.publication import Publication, SampledCounts
from simulator.cells import SquareGrid
from simulator.experiment.run import run_scenario

CITY = """
[scenario]
name = "city"
duration_s = 900
warmup_s = 300
[roads]
source = "grid"
rows = 8
columns = 8
spacing_m = 150
[cells]
kind = "square"
size_m = 300
[traffic]
vehicles = 2500
[[campaigns]]
name = "rush"
start_s = 400
queries = 3
every_s = 120
[[mechanisms]]
name = "sampling"
kind = "sampling_privacy"
sampling = 0.4
[[mechanisms]]
name = "randomized"
kind = "randomized_response"
[[mechanisms]]
name = "baseline"
kind = "no_privacy"
"""
SUPPRESS = "release={kind='suppress', k=6, sampling=0.4}"
PLACE = ["campaign", "query", "mechanism", "cell"]


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    file = tmp_path_factory.mktemp("city") / "city.toml"
    file.write_text(CITY, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def plain(city):
    return run_scenario(city)


@pytest.fixture(scope="module")
def suppressed(city):
    return run_scenario(city, overrides=[SUPPRESS])


def of(result, mechanism):
    return result.estimates[result.estimates["mechanism"] == mechanism].reset_index(drop=True)


def test_suppression_publishes_exactly_the_cells_with_k_sampled(plain, suppressed):
    """The coins are equal with and without a release, so the differences are known from the run without one."""
    differences = (of(plain, "sampling")["estimate"] * 0.4).round().astype(int)
    published = of(suppressed, "sampling")["estimate"]
    assert (differences >= 6).sum() > 10
    assert (differences.between(1, 5)).sum() > 10
    np.testing.assert_allclose(published, np.where(differences >= 6, differences / 0.4, 0.0), rtol=1e-12)
    assert (of(suppressed, "sampling").loc[differences < 6, ["estimate", "lower"]] == 0).all().all()
    exact = of(suppressed, "baseline")["estimate"] * 0.4
    np.testing.assert_allclose(exact, exact.round(), atol=1e-9)
    assert set(exact.round()[exact.round() > 0] >= 6) == {True}


def test_release_replaces_only_the_rows_of_its_mechanism(plain, suppressed):
    assert list(suppressed.estimates.columns) == list(plain.estimates.columns)
    assert not suppressed.estimates.isna().any().any()
    pd.testing.assert_frame_equal(suppressed.estimates[[*PLACE, "truth"]], plain.estimates[[*PLACE, "truth"]])
    pd.testing.assert_frame_equal(of(suppressed, "randomized"), of(plain, "randomized"))
    pd.testing.assert_frame_equal(suppressed.rounds, plain.rounds)
    (record,) = suppressed.facts["releases"]
    assert record["mechanisms"] == ["sampling", "baseline"]
    (note,) = record["notes"]
    assert note.startswith("campaigns.rush: randomized publishes its own estimates, not through suppress: ")
    assert note.endswith("its server holds noisy answers, not numbers of devices")
    assert plain.facts["releases"] == []


def test_scores_have_the_theory_of_the_release(suppressed):
    scores = suppressed.scores.set_index("mechanism")
    truth = of(suppressed, "baseline")["truth"].to_numpy()
    theory = SampleThenSuppress(k=6, sampling=0.4).std_error(truth)
    for name in ("sampling", "baseline"):
        assert scores.loc[name, "theory_rmse"] == pytest.approx(math.sqrt(np.mean(theory**2)), rel=1e-12)
        # Squared errors vary between cells: a fifth is four of their standard errors here.
        assert scores.loc[name, "rmse"] == pytest.approx(scores.loc[name, "theory_rmse"], rel=0.2)
        assert scores.loc[name, "coverage"] > 0.93


def test_release_claims_are_the_exact_ones_of_the_mechanism(plain, suppressed):
    mechanism = SamplingPrivacy(cells=16, sampling=0.4)
    rows = suppressed.claims[suppressed.claims["mechanism"] == "sampling"]
    released = rows[rows["view"] == "released_differences"]
    assert set(released["k"]) == {6}
    assert set(released["adjacency"]) == {"enter_leave", "move", "add_remove"}
    fewest = suppressed.rounds.query("mechanism == 'sampling'")["counted"].min()
    assert 100 < fewest < 1000
    # Any number of devices in the cell, and of 1, 10, 100 and 1,000 those that a query counted.
    assert set(released["crowd"].fillna(0)) == {0, 1, 10, 100}
    for row in released.itertuples():
        crowd = None if pd.isna(row.crowd) else int(row.crowd)
        joining = row.adjacency == "add_remove"
        adjacency = "enter_leave" if joining else row.adjacency
        exact = mechanism.claim(ReleasedDifferences(crowd, 6, row.queries, adjacency=adjacency))
        if row.delta == 0.0 and (row.kind == "infinite" or row.epsilon == exact.epsilon):
            assert row.epsilon == exact.epsilon
        else:
            assert row.delta == exact.delta(row.epsilon)
        why = (
            "If no number of devices is published, an added device changes what one that enters does. "
            if joining
            else ""
        )
        assert row.basis == f"{why}Released by suppress (k = 6, sampling = 0.4), campaign rush: {exact.basis}"
    # Whole vectors are no longer published; the server's view of reports has not changed.
    assert "released_counts" not in set(rows["view"])
    for unchanged in ("view.str.startswith('report') or view.str.startswith('linked')", "mechanism == 'randomized'"):
        after, before = (run.claims.query(unchanged).reset_index(drop=True) for run in (suppressed, plain))
        pd.testing.assert_frame_equal(after, before)


def test_several_releases_use_the_same_traffic(city, plain):
    text = city.read_text(encoding="utf-8")
    rush = text[text.index("[[campaigns]]") : text.index("[[mechanisms]]")]
    more = [
        rush.replace('"rush"', f'"{name}"') + f"release = {release}\n\n"
        for name, release in (
            ("noisy", '{kind = "laplace", epsilon = 1.0}'),
            ("noisy-too", '{kind = "laplace", epsilon = 1.0}'),
            ("noisier", '{kind = "laplace", epsilon = 0.5, mechanisms = ["baseline"]}'),
            ("coarse", '{kind = "generalise", k = 6, sampling = 0.4, epsilon = 1.0, levels = 2}'),
            ("recoded", '{kind = "recode", k = 6}'),
        )
    ]
    file = city.parent / "race.toml"
    file.write_text(text.replace("[[mechanisms]]", "".join(more) + "[[mechanisms]]", 1), encoding="utf-8")
    result = run_scenario(file)
    own = result.estimates[result.estimates["campaign"] == "rush"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, plain.estimates)
    truths = result.estimates.groupby(["campaign", "mechanism"])["truth"].apply(list)
    assert all(truth == truths.iloc[0] for truth in truths)
    rmse = result.scores.set_index(["campaign", "mechanism"])["rmse"]
    theory = result.scores.set_index(["campaign", "mechanism"])["theory_rmse"]
    assert rmse["rush", "baseline"] == 0 < rmse["noisy", "baseline"] < rmse["noisier", "baseline"]
    assert rmse["noisier", "sampling"] > 0
    for campaign in ("noisy", "noisy-too", "noisier"):
        noise = LaplaceCounts(epsilon=0.5 if campaign == "noisier" else 1.0).std_error(np.zeros(1, dtype=np.int64))[0]
        assert theory[campaign, "baseline"] == pytest.approx(noise)
    assert rmse["recoded", "baseline"] == pytest.approx(theory["recoded", "baseline"])
    assert any("vulnerable" in warning for warning in result.facts["warnings"])
    claims = result.claims[(result.claims["mechanism"] == "baseline") & (result.claims["delta"] == 0)]
    released = claims[claims["view"].eq("released_counts") & claims["crowd"].isna()]
    released = released[released["adjacency"] == "enter_leave"]
    # In each group, the row of least ε is that of δ = 0.
    found = released.groupby(["release", "campaign", "queries"])["epsilon"].min()
    for campaign in ("noisy", "noisy-too"):
        assert [found["laplace (epsilon = 1)", campaign, queries] for queries in (1, 3)] == [1.0, 3.0]
    assert found["laplace (epsilon = 0.5)", "noisier", 1] == 0.5
    assert math.isinf(found["recode (k = 6)", "recoded", 1])
    as_it_is = claims[claims["view"].eq("released_counts") & claims["crowd"].notna() & claims["k"].isna()]
    assert any(math.isinf(epsilon) for epsilon in as_it_is["epsilon"])


def test_noisy_release_corrects_for_lost_reports(city):
    quiet = ["release={kind='laplace', epsilon=1.0, sampling=0.8, mechanisms=['baseline']}"]
    result = run_scenario(city, overrides=[*quiet, "channel.loss=0.3", "channel.churn=0.1", "campaigns.rush.queries=4"])
    rows = of(result, "baseline")
    counted = result.rounds[result.rounds["mechanism"] == "baseline"]
    assert (counted["counted"] < 0.75 * counted["asked"]).all()
    error = rows["estimate"] - rows["truth"]
    scores = result.scores.set_index("mechanism").loc["baseline"]
    assert abs(error.mean()) < 4 * scores["theory_rmse"] / math.sqrt(len(error))
    assert scores["rmse"] == pytest.approx(scores["theory_rmse"], rel=0.35)
    assert scores["coverage"] > 0.93


def test_noisy_counts_are_published_from_a_threshold_on(city):
    result = run_scenario(city, overrides=["release={kind='threshold', k=8, epsilon=0.7}"])
    rows = of(result, "baseline")
    published = rows["estimate"] > 0
    assert 0 < published.sum() < len(rows)
    assert (rows["estimate"][published] >= 8).all()
    covered = (rows["lower"] <= rows["truth"]) & (rows["truth"] <= rows["upper"])
    assert covered.mean() > 0.93
    scores = result.scores.set_index("mechanism").loc["baseline"]
    assert scores["rmse"] == pytest.approx(scores["theory_rmse"], rel=0.35)
    claims = result.claims[(result.claims["mechanism"] == "baseline") & (result.claims["view"] == "released_counts")]
    assert set(claims["k"]) == {8}
    pure = claims[(claims["delta"] == 0) & (claims["queries"] == 1)].groupby("adjacency")["epsilon"].min()
    assert dict(pure) == pytest.approx({"enter_leave": 0.7, "move": 1.4, "add_remove": 0.7})
    with pytest.raises(ScenarioError, match="every report must arrive"):
        run_scenario(city, overrides=["release={kind='threshold', k=8, epsilon=0.7}", "channel.loss=0.1"])


def test_query_without_received_reports_publishes_nothing(city):
    result = run_scenario(
        city,
        overrides=["release={kind='suppress', k=6, sampling=0.4, mechanisms=['baseline']}", "channel.loss_two=1.0"],
    )
    rows = of(result, "baseline")
    assert (rows["estimate"] == 0).all()
    assert np.isinf(rows["std_error"]).all()


# ---- the publications alone: many draws against theory ----------------------------------------------------------

TRUTH = np.array([0, 1, 7, 20, 60, 150])
DRAWS = 1000


def suppression(sampling):
    return SampledCounts(sampling, lambda share: SampleThenSuppress(k=6, sampling=sampling * share))


def noise(sampling, epsilon=1.0):
    own = LaplaceCounts(epsilon=epsilon, sampling=sampling).sample_epsilon
    return SampledCounts(
        sampling,
        lambda share: LaplaceCounts(epsilon=math.log1p(sampling * share * math.expm1(own)), sampling=sampling * share),
    )


def agrees(errors, theory, *, comparisons):
    """Mean squares over draws are within z standard errors of theory, with z from the number of comparisons."""
    squares = errors**2
    z = 4.0 + math.log10(comparisons)
    spread = squares.std(axis=0) / math.sqrt(len(squares))
    return (np.abs(squares.mean(axis=0) - theory**2) <= z * spread + 1e-9).all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("release", [suppression, noise])
def test_released_differences_have_the_theoretical_error(release):
    mechanism = SamplingPrivacy(cells=len(TRUTH), sampling=0.4)
    sampled = release(0.4)
    publication = Publication(sampled.release_at(1.0), sampled, differences=True)
    truth = np.concatenate([[500], TRUTH])
    asked = [int(truth.sum())] * 2
    rng = np.random.default_rng(11)
    counts = [mechanism.sample_counts(truth, rng=rng) for _ in range(DRAWS)]
    published = np.stack([publication.publish(c, counted=asked, asked=asked, rng=rng).count for c in counts])
    theory = publication.std_error(truth, asked=asked, counted=asked)
    assert agrees(published - TRUTH, theory, comparisons=len(TRUTH))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("release", [suppression, noise])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_released_counts_have_the_theoretical_error_under_loss(release, share):
    sampled = release(0.5)
    publication = Publication(sampled.release_at(1.0), sampled)
    truth = np.concatenate([[60_000], TRUTH])
    devices = int(truth.sum())
    asked, counted = [devices], [round(share * devices)]
    rng = np.random.default_rng(12)
    received = rng.multivariate_hypergeometric(truth, counted[0], size=DRAWS)
    published = np.stack([publication.publish(h[None], counted=counted, asked=asked, rng=rng).count for h in received])
    theory = publication.std_error(truth, asked=asked, counted=counted)
    assert agrees(published - TRUTH, theory, comparisons=len(TRUTH))


def test_generalised_release_has_the_theoretical_error():
    grid = SquareGrid.build_over((0.0, 0.0, 400.0, 400.0), size_m=100.0, crs="EPSG:32618")
    levels = [grid.coarsened(level) for level in range(3)]
    release = GeneralisedSample(levels=levels, k=6, sampling=0.4, epsilon=1.0)
    truth = np.arange(16)
    rng = np.random.default_rng(13)
    squares = np.stack([(release.publish(truth, rng=rng).count - truth) ** 2 for _ in range(400)]).mean(axis=1)
    # Both means have errors, this one over 400 draws; cells of one release are dependent, so releases are compared.
    spread = squares.std() * math.sqrt(1 / 400 + 1 / generalisation.DRAWS)
    assert abs(squares.mean() - np.mean(release.std_error(truth) ** 2)) < 4 * spread
    assert release.claim(crowd=5, queries=2).delta(6.0) == release.claim_sampled(queries=2).delta(6.0)
    assert release.claim(crowd=None).delta(2.0) == release.claim_sampled(queries=1).delta(2.0)


def test_incompletely_received_differences_are_refused():
    sampled = suppression(0.4)
    publication = Publication(sampled.release_at(1.0), sampled, differences=True)
    with pytest.raises(ValueError, match="every report is received"):
        publication.publish(
            np.zeros((2, 3), dtype=np.int64), counted=[5, 4], asked=[5, 5], rng=np.random.default_rng(1)
        )
