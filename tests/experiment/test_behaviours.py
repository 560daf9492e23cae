"""Devices that do not follow the protocol, from scenario files: their effect on estimates, and refused faults."""

import numpy as np
import pytest
from scipy.special import ndtri

import crowdveil as cv
import scenarios
from simulator.experiment.assembly.behaviours import behaviour_warnings
from simulator.pages.findings_section import findings

SHARE = 0.2
TOWN = scenarios.load("on-device").with_(
    {
        "traffic.engine": "fleet",
        "sensing.engine": "batches",
        "channel": {},
        "attacks": [],
        "mechanisms": [
            {"name": "oue", "kind": "oue", "epsilon": 3.0},
            {"name": "sampling", "kind": "sampling_privacy", "sampling": 0.45},
            {"name": "baseline", "kind": "no_privacy"},
        ],
    }
)
TRUSTED, SHUFFLED, PER_ROUND = {"kind": "trusted"}, {"kind": "shuffled"}, {"kind": "per_round"}
SHARED, PROVED = ({"kind": "secret_shared", "servers": 2, "robust": robust} for robust in (False, True))


def kept(truth, cells, asked):  # noqa: ARG001 - an alternative to those below
    """Return the truth, devices by cell on whose draw the estimate depends (none), and how much the variance grows."""
    return truth, np.zeros_like(truth), 1.0


def fixed(truth, cells, asked):
    there = SHARE * asked * (cells == 3)
    return (1 - SHARE) * truth + there, truth + asked * (cells == 3), 1.0


def hidden(truth, cells, asked):  # noqa: ARG001 - as above
    return truth * np.where(cells == 3, 1 - SHARE, 1.0), truth * (cells == 3), 1.0


def at_random(truth, cells, asked):
    return (1 - SHARE) * truth + SHARE * asked / cells.max(), truth + asked, 1.0


def times(factor):
    def multiplied(truth, cells, asked):  # noqa: ARG001 - as above
        mean, drawn = (1 + SHARE * (factor - 1)) * truth, (factor - 1) ** 2 * truth
        return mean, drawn, 1 + SHARE * (factor**2 - 1)

    return multiplied


CASES = [
    ("fixed_cell", {"cell": 3}, TRUSTED, fixed),
    ("fixed_cell", {"cell": 3}, PER_ROUND, fixed),
    ("fixed_cell", {"cell": 3}, SHARED, fixed),
    ("hide_cell", {"cell": 3}, SHUFFLED, hidden),
    ("random_cell", {}, TRUSTED, at_random),
    ("amplify", {"factor": 5}, SHARED, times(5)),
    ("amplify", {"factor": 5}, PROVED, kept),
    ("amplify", {"factor": 5}, TRUSTED, kept),
    ("silent", {"round": 1}, TRUSTED, kept),
    ("twice", {"wait_s": 0.0}, SHUFFLED, times(2)),
    ("twice", {"wait_s": 2.0}, TRUSTED, kept),
]


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(("kind", "keys", "servers", "expected"), CASES)
def test_estimates_err_as_theory_says(kind, keys, servers, expected):
    changes = {"behaviours": [{"kind": kind, "share": SHARE, **keys}], "aggregation": servers}
    run = cv.run(TOWN.with_(changes), seed=7)
    rows, rounds = run.estimates, run.rounds.groupby(["query", "mechanism"])[["asked", "counted"]].min()
    who = rounds.loc[list(zip(rows["query"], rows["mechanism"], strict=True))].to_numpy()
    mean, drawn, grows = expected(rows["truth"].to_numpy(float), rows["cell"].to_numpy(), who[:, 0])
    # Which devices misbehave is drawn once for the run; those that are not counted leave a sample of all.
    missing = np.maximum(0.0, 1.0 - who[:, 1] / who[:, 0])
    variance = SHARE * (1 - SHARE) * drawn + missing / (1.0 - missing) * rows["truth"] + grows * rows["std_error"] ** 2
    limit = -ndtri(0.5e-3 / len(CASES) / len(rows))
    z = (rows["estimate"] - mean) / np.sqrt(np.maximum(variance, 1e-9))
    assert np.abs(z).max() < limit
    rejected, silent = run.rounds["rejected"].sum(), run.rounds["silent"].sum()
    assert (rejected > 0) == (
        (kind, servers["kind"]) in {("amplify", "trusted"), ("twice", "trusted")} or servers is PROVED
    )
    assert (silent > 0) == (kind == "silent")
    assert any(text.startswith(f"behaviours.{kind}: 20 % of devices do not") for text in run.record.warnings)


def test_late_answers_are_about_the_later_cell_and_those_after_the_close_are_silent():
    run = {
        wait_s: cv.run(TOWN.with_({"behaviours": [{"kind": "late", "share": 1.0, "wait_s": wait_s}]}), seed=7)
        for wait_s in (10.0, 25.0)
    }
    assert run[10.0].rounds["silent"].sum() == 0
    exact = run[10.0].estimates.query("mechanism == 'baseline'")
    assert 0 < (exact["estimate"] - exact["truth"]).abs().sum() < exact["truth"].sum()
    too_late = run[25.0].rounds
    assert (too_late["silent"] + too_late["late"] == too_late["asked"]).all()
    assert (too_late["late"] > 0).equals(too_late["round"].eq(1) & too_late["mechanism"].eq("sampling"))


def test_second_answers_have_coins_where_the_question_of_round_one_was_not_heard():
    twice = {"behaviours": [{"kind": "twice", "share": 1.0, "wait_s": 2.0}], "aggregation": SHUFFLED}
    rounds = cv.run(TOWN.with_({**twice, "channel": {"question": {"loss": 0.3}}}), seed=7).rounds
    assert (rounds["answered"] == 2 * (rounds["asked"] - rounds["unheard"])).all()


def test_devices_can_be_named_and_have_a_class_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "own_devices.py").write_text(
        "import crowdveil as cv\n\n\n"
        "class Shy(cv.Device):\n"
        "    def __init__(self, number, world, *, below):\n"
        "        super().__init__(number, world)\n"
        "        self.below = below\n\n"
        "    def takes_part(self, question):\n"
        "        return self.number >= self.below\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shy = {"kind": "own_devices:Shy", "devices": list(range(500)), "below": 400}
    run = cv.run(TOWN.with_({"behaviours": [shy]}), allow_plugins=True)
    silent = run.rounds.groupby("query")["silent"].max()
    assert 0 < silent.max() < 400
    words = (
        "behaviours.Shy: 500 devices do not follow the protocol: they behave as own_devices:Shy (below = 400); claims"
    )
    assert any(text.startswith(words) for text in run.record.warnings)
    with pytest.raises(cv.ScenarioError, match=r"behaviours\.Shy\.kind: refuses its parameters: missing .*'below'"):
        cv.run(TOWN.with_({"behaviours": [{**shy, "below": None}]}), allow_plugins=True)


def test_the_warning_names_who_follows_the_protocol_all_the_same():
    changes = {"behaviours": [{"kind": "random_cell", "share": 0.5}], "population.outside": 5}
    scenario = scenarios.load("tiny").with_(changes).with_({"campaigns.0.statistic": "mean_speed"})
    (note,) = behaviour_warnings(scenario)
    assert note.text == (
        "behaviours.random_cell: 50 % of vehicles do not follow the protocol: they say that they are in a cell drawn "
        "at random; claims are for all others; devices outside every cell, whose answers are drawn as counts, follow "
        "it; in campaigns of speeds all follow it"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"behaviours": [{"kind": "random_cell"}]}, r"behaviours\[0\]: needs either share or devices"),
        (
            {"behaviours": [{"kind": "random_cell", "share": 0.6}, {"kind": "late", "share": 0.6, "wait_s": 1}]},
            r"behaviours: their shares must not exceed 1 together.*; got 1\.2",
        ),
        (
            {"behaviours": [{"kind": "fixed_cell", "share": 0.1, "cell": 99}]},
            r"behaviours\.fixed_cell\.cell: must be at most 25, the number of cells; got 99",
        ),
        (
            {"behaviours": [{"kind": "random_cell", "devices": [5, 2000]}]},
            r"behaviours\.random_cell\.devices: there are 2000 devices, numbered from 0; got 2000",
        ),
        (
            {"behaviours": [{"kind": "random_cell", "share": 0.1}], "population.answers": "counts"},
            r"population\.answers: must be auto or reports for devices with a behaviour of their own",
        ),
        ({"behaviours": [{"kind": "lie", "share": 0.1}]}, r"behaviours\[0\]\.kind: must be one of"),
    ],
)
def test_faults(changes, message):
    with pytest.raises(cv.ScenarioError, match=message):
        cv.run(TOWN.with_(changes))


def fixes_after_a_wait(engine):
    """Return where each device is 7 s after each question, in whole ticks, in which vehicles move too."""
    found = {}

    class Waiting(cv.Device):
        def answer(self, question):
            yield self.wait(7.0)
            found[question.subject.query, question.round, self.number] = self.position()

    crowded = {"traffic.engine": engine, "traffic.vehicles": 400, "roads.speed_mps": 7.3}
    cv.run("tiny", overrides=crowded, behaviour=cv.Behaviour(device=Waiting))
    return found


def test_a_device_that_waits_acts_after_the_vehicles_of_the_tick_have_moved_in_both_engines():
    fleet = fixes_after_a_wait("fleet")
    assert len(fleet) > 300
    assert fixes_after_a_wait("agents") == fleet


def test_a_run_of_devices_that_misbehave_says_so_first_and_blames_no_lost_reports():
    lossy = TOWN.with_({"channel.loss": 0.1})
    liars = lossy.with_({"behaviours": [{"kind": "fixed_cell", "share": SHARE, "cell": 3}]})
    own = cv.Behaviour(device=type("Own", (cv.Device,), {}), parties={"server:1": cv.Party})
    measures = []
    for run in (cv.run(lossy), cv.run(liars), cv.run(lossy, behaviour=own)):
        measures.append({finding.measure for group in findings(run) for finding in group})
    assert ["loss" in found for found in measures] == [True, False, False]
    words = "devices, server:1: of a class of your own; claims are for devices and servers that follow the protocol"
    assert words in run.record.warnings
    assert words in run.summary()
