"""Mobile crowdsourcing under a privacy protocol, simulated: the public interface.

`run` simulates a scenario, `load` reads the result of an earlier run from its directory, and `compare` gives the
differences between the scores of two results. `sweep` runs a scenario with varied values, and `evaluate` compares
mechanisms over data sets. A `Scenario` is made from dicts, by `scenarios.load` from a file, or by
`Scenario.with_` from another scenario. docs/how/python.md has examples.

It also has what a mechanism, aggregator or attack of one's own is made with and is checked by, such as `Estimate`,
`Guesses` and `AttackContract`; docs/how/python.md lists them.

Names are imported when they are first used: numba and geopandas take a second to load.
"""

import re
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import scenarios
    from mechanisms.declared import Declared, Parameter
    from mechanisms.inference.likelihood import best_guess, log_likelihood
    from mechanisms.inference.markov import Chain
    from mechanisms.inference.report_law import NoLikelihoodError
    from mechanisms.local import (
        Estimate,
        KRandomizedResponse,
        LocalMechanism,
        NoMemory,
        NotEstimableError,
        OptimisedUnary,
        SamplingPrivacy,
    )
    from mechanisms.local.common.base import CategoricalReports
    from mechanisms.local.common.frequency_oracle import FrequencyOracle
    from mechanisms.parameter import ParameterError, check_true_counts
    from mechanisms.planning import CityQuestion, advise
    from mechanisms.privacy import Claim, LinkedReports, Report, Shares, Shuffled
    from mechanisms.privacy.standard_forms import (
        attack_advantage,
        claim_of_privacy_loss_distribution,
        concentrated_rho,
        gaussian_mu,
        to_privacy_loss_distribution,
        trade_off,
    )
    from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences
    from scenarios import Scenario, ScenarioError
    from simulator.aggregation.combining import ServerTally
    from simulator.aggregation.secret_sharing import ThresholdSharing
    from simulator.aggregation.server_noise import normal_estimate
    from simulator.aggregation.transcript import Sharing
    from simulator.api import DifferentTruthError, RunHandle, RunResult, compare, load, roads_of, run
    from simulator.attacks.guesses import CellAttack, Guesses, Prior
    from simulator.attacks.observation import Linked, Observation, follow, link_rounds_of, read_round
    from simulator.kits.aggregator import AggregatorContract, check_aggregator
    from simulator.kits.attack import AttackContract, check_attack
    from simulator.kits.findings import ConformanceError, ConformanceReport
    from simulator.kits.mechanism import MechanismContract, check_mechanism
    from simulator.pages.exports.geopackage import write_geopackage
    from simulator.pages.plots import COLUMN_IN, paper_style
    from simulator.pages.plots.film import write_film
    from simulator.pages.statement import statement_of_run, write_statement
    from simulator.results.store import UnfinishedRunError
    from simulator.sensing.device import Answer, Behaviour, Device, Fix, Party, Question, WrittenVector
    from simulator.studies.api import evaluate, sweep, sweep_points
    from simulator.studies.store import Study

_MODULES = {
    "simulator.kits.findings": ("ConformanceError", "ConformanceReport"),
    "simulator.kits.mechanism": ("MechanismContract", "check_mechanism"),
    "mechanisms.declared": ("Declared", "Parameter"),
    "mechanisms.inference.likelihood": ("best_guess", "log_likelihood"),
    "mechanisms.inference.markov": ("Chain",),
    "mechanisms.inference.report_law": ("NoLikelihoodError",),
    "mechanisms.local": ("Estimate", "LocalMechanism", "NoMemory", "NotEstimableError"),
    "mechanisms.local.k_randomized_response": ("KRandomizedResponse",),
    "mechanisms.local.sampling_privacy": ("SamplingPrivacy",),
    "mechanisms.local.unary_encoding": ("OptimisedUnary",),
    "mechanisms.local.common.base": ("CategoricalReports",),
    "mechanisms.local.common.frequency_oracle": ("FrequencyOracle",),
    "mechanisms.parameter": ("ParameterError", "check_true_counts"),
    "mechanisms.planning": ("CityQuestion", "advise"),
    "mechanisms.privacy": ("LinkedReports", "Claim", "Report", "Shares", "Shuffled"),
    "mechanisms.privacy.view": ("ReleasedCounts", "ReleasedDifferences"),
    "mechanisms.privacy.standard_forms": (
        "attack_advantage",
        "claim_of_privacy_loss_distribution",
        "concentrated_rho",
        "gaussian_mu",
        "to_privacy_loss_distribution",
        "trade_off",
    ),
    "scenarios": ("Scenario", "ScenarioError"),
    "simulator.aggregation.combining": ("ServerTally",),
    "simulator.aggregation.server_noise": ("normal_estimate",),
    "simulator.aggregation.secret_sharing": ("ThresholdSharing",),
    "simulator.aggregation.transcript": ("Sharing",),
    "simulator.api": ("DifferentTruthError", "RunHandle", "RunResult", "compare", "load", "roads_of", "run"),
    "simulator.attacks.observation": ("Linked", "Observation", "follow", "link_rounds_of", "read_round"),
    "simulator.attacks.guesses": ("CellAttack", "Guesses", "Prior"),
    "simulator.kits.aggregator": ("AggregatorContract", "check_aggregator"),
    "simulator.kits.attack": ("AttackContract", "check_attack"),
    "simulator.results.store": ("UnfinishedRunError",),
    "simulator.pages.exports.geopackage": ("write_geopackage",),
    "simulator.pages.plots": ("COLUMN_IN", "paper_style"),
    "simulator.pages.plots.film": ("write_film",),
    "simulator.pages.statement": ("statement_of_run", "write_statement"),
    "simulator.sensing.device": ("Answer", "Behaviour", "Device", "Fix", "Party", "Question", "WrittenVector"),
    "simulator.studies.api": ("evaluate", "sweep", "sweep_points"),
    "simulator.studies.store": ("Study",),
}
"""The public names beside the module `scenarios`, by the module that has them; `__all__` is made from it."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted([*_HOMES, "scenarios"])  # noqa: PLE0605 - a list of names, in order


PACKAGES = ("simulator", "mechanisms", "scenarios")
"""Packages beside this module. Their names are general, so a user's own files, or other packages, may have them too."""


@cache
def obstacle(folder: str | None = None) -> str | None:
    """Return which file stands in the way of one of the packages, in one sentence; None if none does.

    Parameters
    ----------
    folder : str, optional
        Search this folder alone, as Python does first if it is started there; by default where Python searches now.
    """
    home = Path(__file__).resolve().parent
    if folder is not None and PathFinder.find_spec("crowdveil", [folder]) is not None:
        return None  # what is there is another crowdveil as a whole
    for name in PACKAGES:
        if folder is not None:
            file = getattr(PathFinder.find_spec(name, [folder]), "origin", None)
        elif name in sys.modules:
            file = getattr(sys.modules[name], "__file__", None)
        else:
            file = getattr(find_spec(name), "origin", None)
        # Of an editable installation the packages are elsewhere than this file: their docstrings tell them from others.
        if file is None or re.match('""".*crowdveil', Path(file).read_text("utf-8", errors="replace")):
            continue
        if Path(file).resolve() == home / name / "__init__.py":
            from importlib.metadata import packages_distributions  # noqa: PLC0415 - takes a while, and is rarely needed

            others = " and ".join(each for each in packages_distributions().get(name, ()) if each != "crowdveil")
            return (
                f"{file} is not crowdveil's: {others or 'another package'} has replaced it. Uninstall that, then "
                "`pip install --force-reinstall --no-deps crowdveil`"
            )
        return (
            f"{file} stands in the way of crowdveil's own package {name!r}: rename it, or start Python where it is not "
            "found first"
        )
    return None


def main() -> None:
    """Run the command line; a file that stands in the way of its packages ends in one message and exit code 2."""
    if obstacle() is not None:
        sys.stderr.write(f"crowdveil: {obstacle()}\n")
        sys.exit(2)
    import_module("simulator.cli").main()


def __getattr__(name: str) -> Any:  # PEP 562
    """Import a public name on first access."""
    if name in __all__ and obstacle() is not None:
        raise ImportError(obstacle(), name="crowdveil")
    if name == "scenarios":
        return import_module(name)
    if name in __all__:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


if __name__ == "__main__":  # python -m crowdveil
    main()
