"""Sweeps in this process: which points run, what is kept when one fails or the work is stopped, and how it resumes."""

import json
import threading
from concurrent.futures import Future
from contextlib import nullcontext

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

import crowdveil as cv
from simulator.aggregation.server_noise import normal_estimate
from simulator.files.errors import InputError
from simulator.studies import store
from simulator.studies.design import design_of
from simulator.studies.point import DifferentVersionError, PointResult, run_point
from simulator.studies.report import write_study_figures
from simulator.studies.store import Study, StudyDirectory
from simulator.studies.sweep import Failure, StudyError, Sweep, merge
from simulator.studies.workers import Workers, processes

SAMPLING = "mechanisms.sampling.sampling"
VARY = {SAMPLING: [0.1, 0.3], "population.outside": [0, 50]}
TABLES = ("scores", "claims", "attacks")


def sweep(out, vary=VARY, *, replicates=2, **options):
    options = {"start": processes(0)} | options
    return Sweep(design_of("tiny", vary, replicates=replicates), StudyDirectory(out), **options)


def do(work, *, until=None):
    """Do the work; stop after some outcomes, as Ctrl-C does."""
    outcomes = []
    with work.opened():
        iterator = work.outcomes()
        for outcome in iterator:
            outcomes.append(outcome)
            if len(outcomes) == until:
                iterator.close()
                break
    return outcomes


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that was run at once."""
    path = tmp_path_factory.mktemp("whole") / "study"
    do(sweep(path))
    return Study.load(path)


def assert_same(one, other):
    for name in TABLES:
        assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)
    assert one.points["key"].tolist() == other.points["key"].tolist()


def test_each_point_is_the_run_with_its_values_and_seed(whole):
    assert len(whole.points) == 8
    assert whole.missing == 0
    for _, point in whole.points.iterrows():
        values = {name: point[name] for name in VARY}
        run = cv.run("tiny", seed=point["seed"], overrides=values)
        for name in TABLES:
            kept = getattr(whole, name)
            rows = kept[kept["key"] == point["key"]].reset_index(drop=True)
            expected = getattr(run, name)
            assert_frame_equal(rows[expected.columns], expected, check_dtype=False, check_exact=True)


def test_settings_are_compared_on_the_same_traffic_and_coins(whole):
    baseline = whole.scores[whole.scores["mechanism"] == "baseline"]
    assert (baseline["rmse"] == 0).all()
    # A mechanism that no varied value concerns gives the same estimates in every setting of a seed.
    other = whole.scores[(whole.scores["mechanism"] == "randomized") & (whole.scores["population.outside"] == 0)]
    assert (other.groupby("seed")["rmse"].nunique() == 1).all()


@pytest.mark.parametrize("stops", [(1,), (3, 2)])
def test_an_interrupted_sweep_goes_on_and_gives_the_same_results(tmp_path, whole, stops):
    for stop in stops:
        do(sweep(tmp_path / "study"), until=stop)
        assert json.loads((tmp_path / "study" / "study.json").read_text())["complete"] is False
    before = StudyDirectory(tmp_path / "study").finished()
    assert len(before) == sum(stops)
    work = sweep(tmp_path / "study")
    rest = do(work)
    assert {one.key for one in rest} == {*whole.points["key"]} - before
    assert_same(Study.load(tmp_path / "study"), whole)
    assert json.loads((tmp_path / "study" / "study.json").read_text())["complete"] is True


def test_an_unfinished_study_can_be_read(tmp_path, whole):
    do(sweep(tmp_path / "study"), until=3)
    part = Study.load(tmp_path / "study")
    assert part.missing == 5
    assert len(part.points) == 3
    keys = {*part.points["key"]}
    assert_frame_equal(part.scores, whole.scores[whole.scores["key"].isin(keys)].reset_index(drop=True))


def test_a_finished_study_is_not_run_again(tmp_path):
    do(sweep(tmp_path / "study"))
    work = sweep(tmp_path / "study")
    assert do(work) == []
    assert work.todo == []


def test_more_values_and_replicates_use_what_is_finished(tmp_path, whole):
    do(sweep(tmp_path / "study", {SAMPLING: [0.1, 0.3]}, replicates=1))
    work = sweep(tmp_path / "study")  # a key more is varied, and there are more replicates
    assert len(do(work)) == 6
    assert_same(Study.load(tmp_path / "study"), whole)


def test_results_of_other_values_are_kept_apart_and_used_again(tmp_path, whole):
    do(sweep(tmp_path / "study"))
    work = sweep(tmp_path / "study", {SAMPLING: [0.3, 0.4]})
    assert len(do(work)) == 2
    assert any("6 finished points" in note for note in work.notes)
    assert len(Study.load(tmp_path / "study").points) == 4
    again = sweep(tmp_path / "study")
    assert do(again) == []
    assert_same(Study.load(tmp_path / "study"), whole)


def test_a_sweep_that_is_killed_while_its_values_change_loses_nothing(tmp_path, monkeypatch, whole):
    """Some tables are those of the new values, and the others of the old ones."""
    do(sweep(tmp_path / "study"))
    write = store.write_file

    def killed(path, fill, **options):
        write(path, fill, **options)
        if path.name == "scores.parquet":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_file", killed)
        with pytest.raises(KeyboardInterrupt):
            do(sweep(tmp_path / "study", {SAMPLING: [0.3, 0.4]}))
    assert len(StudyDirectory(tmp_path / "study").finished()) == 10
    assert do(sweep(tmp_path / "study")) == []
    assert_same(Study.load(tmp_path / "study"), whole)


def test_a_point_is_finished_only_where_all_tables_hold_it(tmp_path, whole):
    """A study that an earlier version damaged: its points are named, but not all are in the scores."""
    do(sweep(tmp_path / "study"))
    path = tmp_path / "study" / "scores.parquet"
    lost = pq.read_table(path)["key"][0].as_py()
    for name in ("points", "scores", "claims", "attacks", "warnings"):
        table = pq.read_table(path.with_stem(name))
        table = table.replace_schema_metadata({b"factors": table.schema.metadata[b"factors"]})  # as earlier versions
        pq.write_table(table.filter(pc.field("key") != lost) if name == "scores" else table, path.with_stem(name))
    assert [one.key for one in do(sweep(tmp_path / "study"))] == [lost]
    assert_same(Study.load(tmp_path / "study"), whole)


def test_a_kill_while_the_facts_are_written_first_does_not_block_the_directory(tmp_path):
    staging = tmp_path / "study" / f".study.json.partial-{'0' * 12}-{'0' * 16}"  # of another host, so not removed
    staging.mkdir(parents=True)
    (staging / "study.json").write_text("{")
    assert len(do(sweep(tmp_path / "study", {SAMPLING: [0.3]}, replicates=1))) == 1


def test_a_point_that_takes_too_long_fails(tmp_path):
    # In another process: an alarm while coverage notes a new file here would leave its lock closed for ever, and the
    # alarm of pytest's own timeout is the same one.
    work = sweep(tmp_path / "study", {"traffic.vehicles": [5]}, replicates=1, timeout_s=1e-3, start=processes(1))
    (failure,) = do(work)
    assert failure.error == "it took longer than 0.001 s (--timeout)"
    with pytest.raises(InputError, match=r"timeout \(--timeout\): must be above 0 seconds; got 0"):
        sweep(tmp_path / "study", timeout_s=0.0)


def test_results_of_another_version_are_not_mixed_in(tmp_path, monkeypatch, whole):
    do(sweep(tmp_path / "study"), until=4)
    old = StudyDirectory(tmp_path / "study").finished()
    with monkeypatch.context() as patch:
        patch.setattr("simulator.experiment.run.source_sha256", lambda: "another version")
        patch.setattr("simulator.studies.sweep.source_sha256", lambda: "another version")
        work = sweep(tmp_path / "study")
        assert len(do(work)) == 8
        assert any("4 finished points" in note and "source has changed" in note for note in work.notes)
        study = Study.load(tmp_path / "study")
        assert not old & {*study.points["key"]}
    # The version from before finds its own results again.
    assert len(do(sweep(tmp_path / "study"))) == 4
    assert_same(Study.load(tmp_path / "study"), whole)


def test_a_worker_with_another_version_is_refused(monkeypatch):
    point = design_of("tiny", {}).points()[0]
    monkeypatch.setattr("simulator.experiment.run.source_sha256", lambda: "another version")
    with pytest.raises(DifferentVersionError, match="another version of crowdveil"):
        run_point(point, ("scores",))


def test_merged_shards_equal_the_whole(tmp_path, whole):
    shards = 3
    for index in range(1, shards + 1):
        do(sweep(tmp_path / str(index), shard=(index, shards)))
    joined = merge([tmp_path / str(index) for index in range(1, shards + 1)], tmp_path / "joined")
    assert joined.facts()["complete"] is True
    assert_same(Study.load(tmp_path / "joined"), whole)


def test_a_merged_directory_has_its_scenario_and_keeps_the_tables_that_it_kept(tmp_path):
    vary = {SAMPLING: [0.3]}
    do(sweep(tmp_path / "1", vary, replicates=1))
    joined = merge([tmp_path / "1"], tmp_path / "joined").path
    assert cv.scenarios.load(joined / "scenario.toml") == cv.scenarios.load(tmp_path / "1" / "scenario.toml")
    do(sweep(tmp_path / "other", vary, replicates=1, keep="all"))
    with pytest.raises(InputError, match=r"keep \(--keep\): must be scores, as the study in .*joined was begun"):
        merge([tmp_path / "other"], joined)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 1}', "name must be of type str"),
        ("[1]", "must be a table of facts"),
        ("[" * 100_000, "not JSON"),
        ('{"format": 99, "name": "a", "source_sha256": "", "factors": [], "keep": "scores"}', "of a newer crowdveil"),
    ],
)
def test_a_damaged_record_of_a_study_is_named(tmp_path, text, message):
    (tmp_path / "study.json").write_text(text)
    for use in (lambda: merge([tmp_path], tmp_path / "joined"), lambda: Study.load(tmp_path)):
        with pytest.raises(InputError, match=rf"study\.json: .*{message}"):
            use()
    assert not (tmp_path / "joined").exists()


def test_a_damaged_table_of_a_study_is_named(tmp_path):
    do(sweep(tmp_path, {SAMPLING: [0.3]}, replicates=1))
    (tmp_path / "scores.parquet").write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(
        InputError, match=r"scores\.parquet: cannot be read: .*; remove it, and the points that only it"
    ):
        Study.load(tmp_path)
    (tmp_path / "scores.parquet").unlink()
    assert len(do(sweep(tmp_path, {SAMPLING: [0.3]}, replicates=1))) == 1


def test_a_merge_says_what_is_missing_and_refuses_another_study(tmp_path, whole):
    do(sweep(tmp_path / "1", shard=(1, 2)))
    do(sweep(tmp_path / "other", {SAMPLING: [0.2]}))
    facts = merge([tmp_path / "1"], tmp_path / "joined").facts()
    assert (facts["finished"], facts["complete"]) == (4, False)
    with pytest.raises(InputError, match="other is not of the same study as"):
        merge([tmp_path / "1", tmp_path / "other"], tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    # The rest may be run in the joined directory.
    assert len(do(sweep(tmp_path / "joined"))) == 4
    assert_same(Study.load(tmp_path / "joined"), whole)


def test_parts_are_joined_before_there_are_many_files(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(store, "_MOST_PARTS", 3)
    monkeypatch.setattr("simulator.studies.sweep._FLUSH_S", -1.0)
    most = 0
    work = sweep(tmp_path / "study")
    with work.opened():
        for _ in work.outcomes():
            most = max(most, len([*(tmp_path / "study" / "parts").glob("[0-9]*")]))
    assert most <= 3
    assert_same(Study.load(tmp_path / "study"), whole)


def test_a_part_that_was_written_twice_counts_once(tmp_path, whole):
    """A process that is killed after it joined parts, and before it removed them, leaves both."""
    do(sweep(tmp_path / "study"), until=8)
    directory = StudyDirectory(tmp_path / "study")
    directory.take_over([StudyDirectory(tmp_path / "study")])
    assert len([*(tmp_path / "study" / "parts").glob("[0-9]*")]) >= 2  # a slow machine writes more of them
    do(sweep(tmp_path / "study"))
    assert_same(Study.load(tmp_path / "study"), whole)


def test_a_directory_is_worked_on_by_one_sweep_at_a_time(tmp_path):
    first = sweep(tmp_path / "study")
    with first.opened(), pytest.raises(InputError, match=r"process \d+ is working on the study in this directory"):
        do(sweep(tmp_path / "study"))


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="has other files"):
        do(sweep(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_study_keeps_the_same_tables_throughout(tmp_path):
    do(sweep(tmp_path / "study"), until=1)
    with pytest.raises(InputError, match=r"keep \(--keep\): must be scores"):
        do(sweep(tmp_path / "study", keep="all"))


def test_shards_that_keep_different_tables_are_not_merged(tmp_path):
    for index, keep in ((1, "scores"), (2, "estimates")):
        do(sweep(tmp_path / str(index), shard=(index, 2), keep=keep), until=1)
    with pytest.raises(InputError, match=r"2 is not of the same study as .*: keep differs"):
        merge([tmp_path / "1", tmp_path / "2"], tmp_path / "joined")


@pytest.mark.parametrize(("keep", "more"), [("estimates", ["estimates"]), ("all", ["estimates", "rounds", "servers"])])
def test_more_tables_are_kept_on_request(tmp_path, keep, more):
    do(sweep(tmp_path / "study", {SAMPLING: [0.2]}, replicates=1, keep=keep))
    study, run = Study.load(tmp_path / "study"), cv.run("tiny", overrides={SAMPLING: 0.2})
    for name in more:
        expected = getattr(run, name)
        assert_frame_equal(study.table(name)[expected.columns], expected, check_dtype=False)
    assert sorted(path.stem for path in (tmp_path / "study").glob("*.parquet")) == sorted(
        ["design", "failures", "points", "warnings", *TABLES, *more]
    )


def test_warnings_of_runs_are_kept_with_their_points(whole):
    assert "no device" not in " ".join(whole.warnings["warning"])
    assert set(whole.warnings["key"]) <= set(whole.points["key"])


class _Failing:
    """Executor in which the points of one setting fail."""

    def __init__(self, error, times):
        self.error, self.times, self.calls = error, times, {}

    def submit(self, call, point):
        future = Future()
        self.calls[point.key] = self.calls.get(point.key, 0) + 1
        if point.setting == 2 and self.calls[point.key] <= self.times:
            future.set_exception(self.error)
        else:
            future.set_result(call(point))
        return future


@pytest.mark.parametrize(("times", "failed"), [(1, 0), (2, 2)])
def test_a_point_that_fails_is_run_once_more_and_then_reported(tmp_path, whole, times, failed):
    executor = _Failing(RuntimeError("no such luck"), times)
    work = sweep(tmp_path / "study")
    work.start = lambda: nullcontext(Workers(executor, lambda: 2, "two"))
    outcomes = do(work)
    assert sum(isinstance(one, Failure) for one in outcomes) == failed
    assert sum(isinstance(one, PointResult) for one in outcomes) == 8 - failed
    assert all(number <= 2 for number in executor.calls.values())
    study = Study.load(tmp_path / "study")
    assert study.failures["error"].tolist() == ["RuntimeError: no such luck"] * failed
    assert study.failures["setting"].tolist() == [2] * failed
    do(sweep(tmp_path / "study"))  # runs what failed
    assert_same(Study.load(tmp_path / "study"), whole)
    assert len(Study.load(tmp_path / "study").failures) == 0


def test_a_file_system_that_is_full_ends_the_sweep_and_keeps_what_is_finished(tmp_path, monkeypatch, whole):
    monkeypatch.setattr("simulator.studies.sweep._FLUSH_S", -1.0)
    added, add = [], StudyDirectory.add

    def full(self, results):
        if len(added) == 3:
            raise OSError(28, "No space left on device", str(self.path))
        added.append(results)
        add(self, results)

    with monkeypatch.context() as patch:
        patch.setattr(StudyDirectory, "add", full)
        with pytest.raises(StudyError, match="no space left on device; 3 of 8 points are finished and kept"):
            do(sweep(tmp_path / "study"))
    assert len(do(sweep(tmp_path / "study"))) == 5
    assert_same(Study.load(tmp_path / "study"), whole)


def test_points_can_be_taken_as_they_finish(whole):
    seen = {}
    for labels, result in cv.sweep_points("tiny", VARY, replicates=2, workers=0):
        seen[labels["point"]] = result.tables["scores"]["rmse"].tolist()
        assert {"setting", "replicate", "seed", *VARY} <= labels.keys()
    expected = whole.scores.groupby("point")["rmse"].apply(list).to_dict()
    assert seen == expected


def test_numbers_of_a_study_as_xarray(whole):
    pytest.importorskip("xarray")
    found, row = whole.to_xarray()["rmse"], whole.scores.iloc[-1]
    assert set(found.dims) == {"replicate", *VARY, "campaign", "mechanism"}
    assert float(found.sel({name: row[name] for name in found.dims})) == row["rmse"]
    assert found.size == len(whole.scores)


def test_the_charts_of_a_study_are_figures_of_a_column_with_titles_of_mechanisms(whole, tmp_path):
    options = {"width_in": 3.5, "formats": ["svg"], "overwrite": False}
    names, notes = write_study_figures(whole, tmp_path / "figures", **options)
    assert notes == []
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {f"{name}.svg" for name in names}
    assert {"error-1", "error-2"} < {*names}
    svg = (tmp_path / "figures" / "error-1.svg").read_text(encoding="utf-8")
    assert 'width="252pt"' in svg  # 3.5 in
    for text in ("Sampling Privacy", "Randomized response", "theory", "RMSE, vehicles", "sampling"):
        assert f">{text}</text>" in svg
    more, _ = write_study_figures(whole, tmp_path / "all", every=True, **options)
    assert len(more) > len(names)


def test_tables_name_the_columns_of_the_design(tmp_path):
    do(sweep(tmp_path / "study"))
    metadata = pq.read_schema(tmp_path / "study" / "scores.parquet").metadata
    assert metadata[b"factors"].decode().split("\n") == [*VARY]


def test_results_appear_whole_while_they_are_read(tmp_path, monkeypatch):
    """Another process may read at any time: each table it finds is complete."""
    monkeypatch.setattr("simulator.studies.sweep._FLUSH_S", -1.0)
    lengths, faults, stop = [], [], threading.Event()

    def read():
        while not stop.is_set():
            if (tmp_path / "study" / "design.parquet").is_file():
                try:
                    lengths.append(len(Study.load(tmp_path / "study").points))
                except FileNotFoundError:  # joined between the listing and the reading
                    continue
                except Exception as error:  # noqa: BLE001
                    faults.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        do(sweep(tmp_path / "study"))
    finally:
        stop.set()
        thread.join()
    assert not faults
    assert lengths == sorted(lengths)
    assert pd.Series(lengths).between(0, 8).all()


class Scaled:
    """An aggregator given in Python: it multiplies the estimate."""

    servers = 1

    def __init__(self, factor):
        self.factor = factor

    def combine(self, tallies):
        own = tallies[0].own
        return normal_estimate(own.count * self.factor, own.std_error * self.factor, asked=tallies[0].asked_in_all)


def test_objects_given_in_python_run_in_this_process_and_their_content_is_part_of_the_key(tmp_path):
    tiny = cv.scenarios.load("tiny").with_({"mechanisms": [{"name": "one", "kind": "no_privacy"}]})
    means = []
    for factor in (1.0, 3.0):
        scaled = tiny.with_({"aggregation.kind": Scaled(factor)})
        study = cv.sweep(scaled, workers=0, out=tmp_path / "study", keep="estimates")
        assert len(study.points) == 1
        means.append(study.table("estimates")["estimate"].mean())
    assert means[1] == pytest.approx(3 * means[0])
    with pytest.raises(InputError, match=r"aggregation.kind: is given in Python.*workers=0"):
        cv.sweep(scaled, workers=2)
    with pytest.raises(InputError, match=r"aggregation.kind: an object in a study must be one that pickle can read"):
        cv.sweep(tiny.with_({"aggregation.kind": Scaled(lambda: 1)}), workers=0)


OWN = """
from mechanisms.local import KRandomizedResponse
class Mine(KRandomizedResponse):
    def __init__(self, *, cells, epsilon):
        self.half = epsilon / 2
        super().__init__(cells=cells, epsilon=epsilon)
class Late(KRandomizedResponse):
    def __init__(self, *, cells, epsilon):
        self.given = epsilon
        super().__init__(cells=cells, epsilon=2.0)
    def claim(self, view):
        return super().claim(view) if self.given > 0 else None
"""


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (
            "mine_to_sweep:Mine",
            ["1..8"],
            r"mechanisms\.own: mine_to_sweep:Mine refuses epsilon = '1\.\.8': one of another",
        ),
        ("mine_to_sweep:Mine", [4, "1..8"], r"mechanisms\.own: mine_to_sweep:Mine refuses epsilon = '1\.\.8'"),
        ("mine_to_sweep:Mine", [-2.0], r"mechanisms\.own: mine_to_sweep:Mine refuses epsilon = -2\.0: "),
        ("mine_to_sweep:Late", ["1..8"], r"mechanisms\.own.*Late with epsilon = '1\.\.8' raises TypeError"),
    ],
)
def test_a_design_that_cannot_be_built_changes_no_study(tmp_path, monkeypatch, kind, values, message):
    (tmp_path / "mine_to_sweep.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    out = StudyDirectory(tmp_path / "study")
    tiny = cv.scenarios.load("tiny", allow_plugins=True)
    tiny = tiny.with_({"mechanisms": [{"name": "own", "kind": kind, "epsilon": 1.0}]})

    def swept(values):
        return do(Sweep(design_of(tiny, {"mechanisms.own.epsilon": values}), out, start=processes(0)))

    swept([1.0, 2.0])
    before = {path.name: path.read_bytes() for path in out.path.glob("*.*")}
    with pytest.raises(ValueError, match=message):
        swept(values)
    assert {path.name: path.read_bytes() for path in out.path.glob("*.*")} == before
    assert len(Study.load(out.path).points) == 2
    assert len(swept([2.0, 3.0])) == 1


def test_a_study_is_not_changed_by_a_design_whose_runs_all_fail(tmp_path, whole):
    do(sweep(tmp_path / "study"))
    before = {path.name: path.read_bytes() for path in (tmp_path / "study").glob("*.*")}
    with pytest.raises(StudyError, match=r"no point could be run, and the study in .* is as it was; point \d: cells: "):
        do(sweep(tmp_path / "study", {"cells.size_m": [1e-3]}))
    assert {path.name: path.read_bytes() for path in (tmp_path / "study").glob("*.*")} == before
    assert_same(Study.load(tmp_path / "study"), whole)


def test_tables_given_in_python_reach_other_processes():
    trips = pd.DataFrame(
        {"origin": ["(0, 0)", "(3, 3)"] * 9, "destination": ["(2, 1)", "(1, 0)"] * 9, "departure_s": range(18)}
    )
    scenario = cv.scenarios.load("tiny").with_({"traffic": {"demand": "trips", "trips": trips}})
    one, other = (cv.sweep(scenario, {"population.outside": [0, 5]}, workers=workers) for workers in (0, 1))
    assert_frame_equal(one.scores, other.scores)
