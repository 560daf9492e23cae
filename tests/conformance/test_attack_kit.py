"""The conformance kit of attacks: sound attacks pass, and each fault is found by the check meant for it."""

import gc
import random  # noqa: TID251
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.inference.report_law import NoLikelihoodError
from simulator.attacks.guesses import Guesses
from simulator.attacks.reconstruction import ROUND_ATTACKS, RoundAttack
from simulator.kits.attack import CASES, AttackContract, check_attack
from simulator.sensing.query import QueryRecord


class Altered(RoundAttack):
    """The best attack with its answer altered by `alter`."""

    def guess(self, observation, prior, *, rng):
        return [self.alter(one) for one in super().guess(observation, prior, rng=rng)]


class BeyondTheCells(Altered):
    def alter(self, one):
        return replace(one, cells=np.full_like(one.cells, 7))


class Positions(Altered):
    """Takes positions for handles."""

    def alter(self, one):
        return one if one.handles is None else replace(one, handles=np.arange(len(one.handles)))


class Twice(RoundAttack):
    def guess(self, observation, prior, *, rng):
        return super().guess(observation, prior, rng=rng) * 2


class Certain(Altered):
    def alter(self, one):
        return replace(one, theory=1.5)


class Fractions(Altered):
    def alter(self, one):
        return replace(one, cells=one.cells / 2)


class Remembers(RoundAttack):
    """Guesses something else each time it is asked."""

    calls = 0

    def guess(self, observation, prior, *, rng):
        type(self).calls += 1
        found = super().guess(observation, prior, rng=rng)
        return [replace(one, cells=np.full_like(one.cells, self.calls % 2)) for one in found]


class GlobalNumPy(RoundAttack):
    def guess(self, observation, prior, *, rng):
        np.random.random()  # noqa: NPY002
        return super().guess(observation, prior, rng=rng)


class GlobalPython(RoundAttack):
    def guess(self, observation, prior, *, rng):
        random.random()  # noqa: S311
        return super().guess(observation, prior, rng=rng)


class WritesOnTimes(RoundAttack):
    def guess(self, observation, prior, *, rng):
        found = super().guess(observation, prior, rng=rng)
        for entry in observation.seen:
            entry.arrived_s[:] = 0.0
        return found


class WritesOnPrior(RoundAttack):
    def guess(self, observation, prior, *, rng):
        found = super().guess(observation, prior, rng=rng)
        prior.of(1)[0] = 0.0
        return found


class WritesOnMoves(RoundAttack):
    def guess(self, observation, prior, *, rng):
        for moves in prior.moves.values():
            moves.data[:] = 0.0
        return super().guess(observation, prior, rng=rng)


class ReadsTheTruth(RoundAttack):
    """Finds the record of the query in the memory of the process."""

    def guess(self, observation, prior, *, rng):
        records = [one for one in gc.get_objects() if isinstance(one, QueryRecord)]
        found = []
        for one in super().guess(observation, prior, rng=rng):
            record = next((r for r in records if one.handles is not None and _has(r, one)), None)
            found.append(one if record is None else replace(one, cells=_truth(record, one)))
        return found


def _names(record, one):
    return record.recorded.devices if one.handle_kind == "device" else record.recorded.pseudonyms


def _has(record, one):
    return np.isin(one.handles, _names(record, one)).all()


def _truth(record, one):
    order = np.argsort(_names(record, one))
    return record.truth[order[np.searchsorted(_names(record, one), one.handles, sorter=order)]]


class NeedsReports(RoundAttack):
    def guess(self, observation, prior, *, rng):
        if observation.seen and not len(observation.seen[0]):
            raise IndexError("no reports")
        return super().guess(observation, prior, rng=rng)


class Nothing:
    def guess(self, observation, prior, *, rng):  # noqa: ARG002
        return None


class NoKeyword:
    def guess(self, observation, prior):  # noqa: ARG002
        return []


BROKEN = {
    "answers": [Fractions, Nothing, NoKeyword],
    "cells": [BeyondTheCells],
    "handles": [Positions, Twice],
    "theory": [Certain],
    "repeatable": [Remembers],
    "global_random": [GlobalNumPy, GlobalPython],
    "nothing_written_on": [WritesOnTimes, WritesOnPrior],
    "success": [ReadsTheTruth],
    "empty": [NeedsReports],
}


@pytest.mark.parametrize("attack", ROUND_ATTACKS.values(), ids=ROUND_ATTACKS)
def test_the_projects_own_attacks_pass(attack):
    report = check_attack(attack, seed=1)
    assert [result.name for result in report.results] == list(AttackContract.checks())
    assert report.passed, str(report)
    assert len(report["success"].figures) == sum(case.queries for case in CASES) == 21


@pytest.mark.parametrize(("check", "make"), [(check, make) for check, makes in BROKEN.items() for make in makes])
def test_each_fault_is_found_by_the_check_meant_for_it(check, make):
    report = check_attack(make, cases=CASES[::4])
    assert [result.name for result in report.failures] == [check], str(report)


@pytest.mark.parametrize(("check", "make"), [("nothing_written_on", WritesOnMoves), ("success", ReadsTheTruth)])
def test_faults_are_found_over_several_queries(check, make):
    for case in CASES[-3:]:
        found = check_attack(make, cases=(case,)).failures
        assert [result.name for result in found] == ([check] if case.coalition or check != "success" else []), case


def test_every_check_finds_a_fault():
    assert list(BROKEN) == list(AttackContract.checks())


def test_an_attack_that_guesses_nothing_passes():
    class Silent:
        def guess(self, observation, prior, *, rng):  # noqa: ARG002
            return []

    assert check_attack(Silent).passed


def test_what_cannot_be_attacked_is_a_note():
    class Picky(RoundAttack):
        def guess(self, observation, prior, *, rng):
            if observation.mechanism.rounds == 2:
                raise NoLikelihoodError(observation.mechanism, "one round only")
            return super().guess(observation, prior, rng=rng)

    report = check_attack(Picky)
    assert report.passed
    assert "one round only" in report["answers"].detail


def test_the_same_seed_gives_the_same_report():
    some = CASES[1::5]
    assert str(check_attack(RoundAttack(), seed=3, cases=some)) == str(check_attack(RoundAttack, seed=3, cases=some))
    first, other = (check_attack(RoundAttack, seed=seed, cases=some)["success"].figures for seed in (3, 4))
    assert first != other


def test_guesses_about_a_group_have_its_handles():
    from simulator.attacks.observation import Linked  # noqa: PLC0415

    group = Linked("query", np.array([5, 9]), {1: np.array([1, 2])})
    guesses = Guesses.about(group, 3, np.array([1, 0]))
    assert (guesses.query, guesses.handle_kind, guesses.handles.tolist()) == (3, "query", [5, 9])
    assert np.isnan(guesses.theory)
