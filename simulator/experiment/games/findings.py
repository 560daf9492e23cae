"""Findings: the rows of `attacks.parquet`."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import pandas as pd

from simulator.experiment.tables import ATTACK_COLUMNS


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one attack by one coalition came to, on one mechanism in one campaign. None is null in the table.

    Attributes
    ----------
    name, attack
        The attack's name in the scenario, and its kind.
    coalition, colluding
        The parties, and how many they are, each corrupted vehicle counted.
    servers
        How many servers the deployment has.
    mechanism, campaign
        Their names.
    trials
        Guesses made; where it is no guess, queries.
    prior, success, theory
        Success rates of the best guess without what the coalition saw and with it, and as theory has the latter.
        `prior` is the largest of the prior probabilities, averaged over trials. Where it is no guess, `theory` is of
        `value`.
    gain, gain_low, gain_high
        `success` − `prior`, and the ends of its 95 % interval (Clopper and Pearson).
    epsilon_lower
        An ε that nothing more private would have shown, but with probability 10⁻⁶.
    metric, value, unit
        What else is measured, or what is guessed besides the cell.
    """

    name: str
    attack: str
    coalition: str
    colluding: int
    servers: int
    mechanism: str
    campaign: str
    trials: int | None = None
    prior: float | None = None
    success: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    theory: float | None = None
    epsilon_lower: float | None = None
    metric: str | None = None
    value: float | None = None
    unit: str | None = None


def tabulate_findings(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return the table of `attacks.parquet`, one row a finding."""
    names = [field.name for field in fields(Finding)]
    return pd.DataFrame(
        {
            name: pd.Series([getattr(finding, name) for finding in findings], dtype=ATTACK_COLUMNS[name])
            for name in names
        }
    )
