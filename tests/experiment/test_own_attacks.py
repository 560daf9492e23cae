"""Users' own attacks in a run: what names them, what they may do, and which answers are refused."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

import crowdveil as cv
from simulator.attacks.guesses import Guesses
from simulator.attacks.reconstruction import RoundAttack
from simulator.results.schema import TABLES

TRUSTED = {"coalition": ["server:1"]}


def run(*attacks, seed=3, **changes):
    """The shipped scenario `tiny` with these attacks, in Python."""
    return cv.run(cv.scenarios.load("tiny").with_({"attacks": list(attacks), **changes}, seed=seed))


@dataclass(frozen=True)
class Best(RoundAttack):
    """The best guess, with a parameter that has the name of a key of other attacks."""

    together: bool = False
    asked: int = 1


class Reckless:
    """Writes over all that it is given, and draws from every generator."""

    def guess(self, observation, prior, *, rng):
        rng.random(100)
        np.random.random(100)  # noqa: NPY002
        for released in observation.released:
            if released.counts is not None:
                released.counts[:] = 10**6
        for entry in observation.seen:
            entry.arrived_s[:] = 0.0
            entry.handles[:] = 1
            if isinstance(entry.content, np.ndarray):
                entry.content[:] = 0
        for query in observation.queries:
            prior.of(query)[:] = 1.0
        return []


def test_an_own_attack_is_scored_as_a_built_in_one():
    attacks = run(
        {"kind": "link_rounds", **TRUSTED},
        {"kind": Best, "together": True, "asked": 99, **TRUSTED},
        {"kind": RoundAttack(), "name": "object", **TRUSTED},
    ).attacks
    assert len(attacks) == 9
    columns = ["coalition", "mechanism", "trials", "prior", "success", "theory"]
    built_in, *own = (rows.reset_index(drop=True) for _, rows in attacks.groupby("name", sort=False))
    for rows in own:
        assert rows[columns].equals(built_in[columns])
        # Guesses of several queries may depend on the same report, so that the interval is a single query's.
        assert (rows["gain_low"] < built_in["gain_low"]).all()
        assert (rows["gain_high"] >= built_in["gain_high"]).all()
    assert set(attacks["attack"]) >= {"link_rounds", f"{__name__}:Best"}


def test_an_own_attack_changes_no_table_and_no_other_attack():
    built_in = {"kind": "link_rounds", **TRUSTED}
    without, with_it = run(built_in), run({"kind": Reckless, **TRUSTED}, built_in)
    for name in (name for name, table in TABLES.items() if not table.optional):
        one, other = getattr(without, name), getattr(with_it, name)
        if name == "attacks":
            own = other["name"] == "Reckless"
            # It guessed nothing: every guess is the prior's.
            assert (other[own]["success"] == other[own]["prior"]).all()
            other = other[~own].reset_index(drop=True)
        assert one.equals(other), name


def test_coalitions_with_vehicles_and_growing_ones_are_possible():
    attacks = run(
        {"kind": Best, "coalition": ["server:1", "server:2"], "growing": True, "mechanisms": ["sampling"]},
        {"kind": Best, "name": "vehicles", "coalition": ["server:1", "vehicles:5"], "mechanisms": ["baseline"]},
        **{"aggregation.kind": "per_round"},
    ).attacks
    assert attacks["coalition"].tolist() == ["server:1", "server:1, server:2", "server:1, vehicles:5"]
    assert attacks["success"].iloc[-1] == 1.0


def test_the_report_lists_an_own_attack(tmp_path):
    attacks = [{"kind": Best, "prior": {"kind": "roads"}, **TRUSTED}]
    scenario = cv.scenarios.load("tiny").with_({"attacks": attacks})
    summary = cv.run(scenario, out=tmp_path / "run").summary()
    assert "drivers who answered a query, server 1 would name the right cell for about" in " ".join(summary.split())
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert f"{__name__}:Best" in page
    assert "an attack of the user" in page
    assert "of <code>Best</code> the road map alone" in page
    assert f"{__name__}:Best" in cv.load(tmp_path / "run").attacks["attack"].tolist()
    assert f"{__name__}:Best" in cv.load(tmp_path / "run").facts["plug_ins"]


class Answers:
    """Returns what it was made with, or what a function makes of the best guesses."""

    def __init__(self, answer):
        self._answer = answer

    def guess(self, observation, prior, *, rng):
        if not callable(self._answer):
            return self._answer
        return [self._answer(one) for one in RoundAttack().guess(observation, prior, rng=rng)]


def _stretched(one):
    one.__dict__["cells"] = one.cells[:-1]
    return one


WRONG = {
    "no list": (7, ["list of", "Guesses", "received int"]),
    "other entries": ([1, "x"], ["Guesses", "['int', 'str']"]),
    "nothing": (None, ["received NoneType"]),
    "a cell too high": (lambda one: replace(one, cells=one.cells + 99), ["cells in 0…9", "received"]),
    "a cell below 0": (lambda one: replace(one, cells=one.cells - 17), ["cells in 0…9"]),
    "fractions": (lambda one: replace(one, cells=one.cells * 0.5), ["cells as whole numbers", "float64"]),
    "a table": (lambda one: replace(one, cells=one.cells[:, np.newaxis]), ["whole numbers, (n,)"]),
    "another length": (_stretched, ["one cell for each handle"]),
    "wrong length": (lambda one: replace(one, cells=one.cells[:-1]), ["one guess a device", "test_own_attacks.py"]),
    "unknown handles": (lambda one: replace(one, handles=one.handles + 10**6), ["handles of the observation"]),
    "another kind": (lambda one: replace(one, handle_kind="query"), ['of kind "query"']),
    "twice": (lambda one: replace(one, handles=one.handles * 0 + one.handles[0]), ["at most once"]),
    "another query": (lambda one: replace(one, query=77), ["observed query (", "received 77"]),
    "theory": (lambda one: replace(one, theory=float("inf")), ["theory in 0…1", "inf"]),
    "no probability": (lambda one: replace(one, probability=one.probability * 1.5), ["probability in 0…1"]),
    "other probabilities": (lambda one: replace(one, probability=[0.5]), ["for each guess"]),
    "an error": (lambda one: 1 / 0, ["raises ZeroDivisionError", "test_own_attacks.py"]),  # noqa: ARG005
}


@pytest.mark.parametrize(("answer", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_refused_with_the_attack_and_the_rule(answer, words, tmp_path):
    scenario = cv.scenarios.load("tiny").with_({"attacks": [{"kind": Answers(answer), "name": "mine", **TRUSTED}]})
    with pytest.raises(cv.ScenarioError) as refused:
        cv.run(scenario, out=tmp_path / "run")
    for word in ["attacks.mine: guess", *words]:
        assert word in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_lists_and_python_numbers_are_answers_too():
    def as_lists(one):
        return Guesses(one.query, one.handle_kind, one.handles.tolist(), one.cells.tolist(), 1)

    attacks = run({"kind": Answers(as_lists), **TRUSTED}, {"kind": "link_rounds", **TRUSTED}).attacks
    assert attacks["success"].tolist()[:3] == attacks["success"].tolist()[3:]
    assert (attacks["theory"][:3] == 1.0).all()


MODULE = """
from simulator.attacks.reconstruction import RoundAttack
from mechanisms.local import KRandomizedResponse

class Spy(RoundAttack):
    def __init__(self, cell=0):
        if cell < 0:
            raise ValueError("cell must be at least 0")
        super().__init__()
        object.__setattr__(self, "cell", cell)

    def guess(self, observation, prior, *, rng):
        found = super().guess(observation, prior, rng=rng)
        for one in found:
            one.cells[:] = self.cell
        return found

class Shy(KRandomizedResponse):
    pass

class NoAttack:
    pass
"""
SPY = '[[attacks]]\nkind = "own_spy:Spy"\ncoalition = ["server:1"]\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own_spy.py").write_text(MODULE)
    yield tmp_path
    sys.modules.pop("own_spy", None)


def write(folder, attack):
    text = cv.scenarios.source_text("tiny") + attack
    (folder / "mine.toml").write_text(text)
    return "mine.toml"


def test_a_file_names_an_own_attack(folder, call_in_process):
    file = write(folder, SPY)
    done = call_in_process("run", file, "--allow-plugins", "--quiet", "--out", "r", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert set(cv.load(folder / "r").attacks["name"]) == {"Spy"}


@pytest.mark.parametrize(
    ("attack", "arguments", "words"),
    [
        (SPY, [], ["attacks.Spy.kind", "allow-plugins"]),
        (SPY + "cell = 99\n", ["--allow-plugins"], ["attacks.Spy", "cells in 0…9", "99"]),
        (SPY + "cell = -1\n", ["--allow-plugins"], ["attacks.Spy", "refuses cell = -1", "at least 0"]),
        (SPY + "sell = 1\n", ["--allow-plugins"], ["attacks.Spy", "refuses its parameters", "sell"]),
        (SPY + "cell = nan\n", ["--allow-plugins"], ["attacks[0].cell: must be a finite number"]),
        (
            SPY.replace(":Spy", ":NoAttack"),
            ["--allow-plugins"],
            ["attacks.NoAttack.kind", "attack: it must have guess"],
        ),
        (SPY.replace("server:1", "server:9"), ["--allow-plugins"], ["coalition", "server:9"]),
    ],
)
def test_faults_of_a_file_end_with_one_message(folder, attack, arguments, words, call_in_process):
    done = call_in_process("run", write(folder, attack), *arguments, cwd=folder)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("crowdveil: ") == 1
    assert not (folder / "runs").exists() or not list((folder / "runs").iterdir())


@pytest.fixture
def installed(folder):
    """A package with entry points, as an installer leaves it: a module beside the metadata."""
    metadata = folder / "own_spy-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own-spy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[crowdveil.attack]\nspy = own_spy:Spy\n[crowdveil.mechanism]\nshy = own_spy:Shy\n"
    )
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def test_an_installed_package_provides_attacks_and_mechanisms(installed):  # noqa: ARG001
    changes = {
        "attacks": [{"kind": "spy", "cell": 3, **TRUSTED}],
        "mechanisms": [{"kind": "shy", "epsilon": 2.0}, {"kind": "no_privacy"}],
    }
    scenario = cv.scenarios.load("tiny").with_(changes)
    with pytest.raises(cv.ScenarioError, match="allow-plugins") as refused:
        cv.run(scenario)
    assert {fault.path for fault in refused.value.faults} == {"attacks.spy.kind", "mechanisms.shy.kind"}
    result = cv.run(cv.scenarios.load("tiny", overrides=changes, allow_plugins=True))
    # No likelihood of the reports of `shy` is known, so that the attack is tried on the other mechanism only.
    assert result.attacks[["attack", "mechanism"]].to_numpy().tolist() == [["spy", "no_privacy"]]
    assert set(result.estimates["mechanism"]) == {"shy", "no_privacy"}
    assert set(result.facts["plug_ins"]) == {"spy", "shy"}


def test_no_package_provides_the_kind():
    with pytest.raises(cv.ScenarioError, match="must be one of"):
        cv.scenarios.load("tiny").with_({"attacks": [{"kind": "spy", **TRUSTED}]})


def test_a_mechanism_is_given_as_a_class_or_an_object():
    from mechanisms.local import KRandomizedResponse  # noqa: PLC0415

    class Shy(KRandomizedResponse):
        """K-ary randomized response under another name."""

    cells = cv.run("tiny").cells["cell"].max()
    given = [{"kind": Shy, "epsilon": 2.0}, {"kind": Shy(cells=int(cells), epsilon=2.0), "name": "object"}]
    result = cv.run(cv.scenarios.load("tiny").with_({"mechanisms": given}))
    assert set(result.estimates["mechanism"]) == {"Shy", "object"}
    with pytest.raises(cv.ScenarioError, match="takes no parameters"):
        cv.run(cv.scenarios.load("tiny").with_({"mechanisms": [{**given[1], "epsilon": 2.0}]}))
