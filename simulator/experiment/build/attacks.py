"""Builds the users' own attacks of a scenario."""

from scenarios import Scenario
from scenarios.attacks import OwnAttack
from simulator.attacks.own import CheckedAttack
from simulator.experiment.build.constructors import build_own_kind, faults_of_files


def build_attacks(scenario: Scenario) -> dict[str, CheckedAttack]:
    """Build every attack of the user's own, by name; their classes have been verified.

    Raises
    ------
    ScenarioError
        If a class refuses its parameters.
    """
    built = {}
    for section in scenario.attacks:
        if isinstance(section, OwnAttack):
            with faults_of_files(scenario, f"attacks.{section.name}"):
                made = build_own_kind("attack", section.kind, section.model_extra or {})
            built[section.name] = CheckedAttack(made)
    return built
