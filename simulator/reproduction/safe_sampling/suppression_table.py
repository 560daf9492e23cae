"""lqs-table2: δ of strongly safe k-anonymization after sampling, at k = 20 (LQS theorem 5)."""

import itertools

from mechanisms.privacy import strongly_safe_delta, worst_crowd_delta
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.agreement import same_digits

K = 20
EPSILONS = ("0.25", "0.5", "0.75", "1.0", "1.5", "2.0")
PRINTED = {
    "0.05": ("6.83e-10", "2.50e-14", "3.19e-17", "1.76e-19", "3.97e-22", "2.00e-24"),
    "0.1": ("4.19e-06", "1.61e-09", "3.44e-12", "4.07e-14", "3.22e-16", "1.89e-18"),
    "0.2": ("2.16e-03", "8.02e-06", "1.89e-07", "6.03e-09", "4.79e-11", "1.59e-12"),
}


def reproduce(*, seed: int = 0) -> Reproduction:
    """Recompute Table 2, and the exact worst crowd beside it; nothing is drawn, whatever the `seed`."""
    del seed
    rows, exact_rows, curves, shares = [], [], [], []
    for beta, line in PRINTED.items():
        bound, exact = [], []
        for epsilon, printed in zip(EPSILONS, line, strict=True):
            delta = strongly_safe_delta(k=K, sampling=float(beta), epsilon=float(epsilon))
            least = worst_crowd_delta(k=K, sampling=float(beta), epsilon=float(epsilon))
            key = f"beta={beta}, epsilon={epsilon}"
            note = "Theorem 5, rounded to the three digits printed."
            rows.append(Row(key, float(printed), delta, same_digits(delta, printed), note))
            note = f"Exact δ at the worst crowd of all; theorem 5 is {delta / least:.3g} times it."
            exact_rows.append(Row(f"{key}, exact", None, least, None, note))
            bound.append(delta)
            exact.append(least)
            shares.append(delta / least)
        x = [float(epsilon) for epsilon in EPSILONS]
        curves += [
            Curve(f"β = {beta}, Table 2", x, [float(printed) for printed in line], "points", published=True),
            Curve(f"β = {beta}, theorem 5", x, bound),
            Curve(f"β = {beta}, exact worst crowd", x, exact),
        ]
    drawing = Drawing("δ at k = 20", "ε", "δ", curves, log_y=True)
    findings = (
        "All 18 numbers of Table 2 are theorem 5's to the digits printed.",
        (
            f"Theorem 5 is a bound: the exact δ at the worst crowd of all is {min(shares):.3g} to "
            f"{max(shares):.3g} times "
            "smaller over Table 2, since the theorem counts the whole probability of a bad output and (ε, "
            "δ)-differential "
            "privacy asks only for what exceeds e^ε times the other world's."
        ),
    )
    return Reproduction([*rows, *exact_rows, *_monotone()], (drawing,), findings)


def _monotone() -> list[Row]:
    """Return what section 3.3 says of the table's trends."""
    table = {
        beta: [strongly_safe_delta(k=K, sampling=float(beta), epsilon=float(e)) for e in EPSILONS] for beta in PRINTED
    }
    falls = all(a > b for line in table.values() for a, b in itertools.pairwise(line))
    lines = list(table.values())
    rises = all(a < b for one, next_ in itertools.pairwise(lines) for a, b in zip(one, next_, strict=True))
    return [
        Row(
            "delta decreases as epsilon increases",
            "decreases",
            "decreases" if falls else "does not",
            falls,
            '"with fixed k and β, δ decreases as ε increases": over every row of the table',
        ),
        Row(
            "delta decreases as beta decreases",
            "decreases",
            "decreases" if rises else "does not",
            rises,
            '"with fixed k and ε, δ decreases as β decreases": over every column of the table',
        ),
    ]


TABLE_2 = Entry("lqs-table2", "LQS", "Table 2: δ of suppression below k = 20 after sampling", reproduce)
