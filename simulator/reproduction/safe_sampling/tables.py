"""lqs-table1 and lqs-table2: amplification by sampling, and δ of k-anonymity after sampling (LQS theorems 1 and 5)."""

import itertools
import math
from dataclasses import dataclass

from mechanisms.privacy import pair_epsilon, resampled_privacy, strongly_safe_delta, worst_crowd_delta
from mechanisms.privacy.audit import clopper_pearson
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row

# Probability that a correct theory lies outside the interval by which a row is judged; rows show a 95 % interval.
ALPHA = 1e-6


def same_digits(computed: float, printed: str) -> bool:
    """Return whether a number, rounded to the published digits ("6.83e-10", "0.159"), equals the published value."""
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not exponent:
        return f"{computed:.{decimals}f}" == printed
    shown = f"{computed:.{decimals}e}"
    return float(shown) == float(printed)


@dataclass(frozen=True)
class Rate:
    """Success rate of an attack.

    Parameters
    ----------
    hits, trials
        Number of successes, and of independent trials.
    """

    hits: int
    trials: int

    @property
    def share(self) -> float:
        """The success rate."""
        return self.hits / self.trials

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the exact (Clopper-Pearson) interval, which misses with probability at most `alpha`."""
        low, high = clopper_pearson(self.hits, self.trials, alpha=alpha / 2)
        return float(low), float(high)

    def agrees_with(self, theory: float) -> bool:
        """Return whether theory lies in the interval that misses with probability one in a million."""
        low, high = self.interval(ALPHA)
        return low - 1e-12 <= theory <= high + 1e-12

    def exceeds(self, allowed: float) -> bool:
        """Return whether the rate is above a bound, with an error probability of one in a million."""
        return self.interval(ALPHA)[0] > allowed

    def __str__(self) -> str:
        """Return the rate, its 95 % interval and the number of trials."""
        low, high = self.interval()
        return f"{self.share:.4f} (95 % interval {low:.4f} to {high:.4f}, {self.trials:,} trials)"


def allowed_success(epsilon: float, delta: float) -> float:
    """Return the best success rate in distinguishing two equally likely worlds under (ε, δ): (e^ε + δ)/(1 + e^ε).

    A test that is right with probability a in one world and b in the other has a ≤ e^ε(1 − b) + δ and
    b ≤ e^ε(1 − a) + δ. The sum of both gives (a + b)/2 ≤ (e^ε + δ)/(1 + e^ε).
    """
    factor = math.exp(epsilon)
    return min(1.0, (factor + delta) / (1.0 + factor))


# β, e^ε, ε and δ as published, for an algorithm that satisfies (ln 11, 1e-5) without sampling.
ONE = (("1", "11", "2.40", "1e-5"), ("0.1", "2", "0.69", "1e-6"), ("0.01", "1.1", "0.095", "1e-7"))
# β and ε, for an algorithm that satisfies (1, 0).
OTHER = (("1", "1"), ("0.1", "0.159"), ("0.01", "0.017"))
DIGITS = "Rounded to the digits printed."


def reproduce_amplification_table(*, seed: int = 0) -> Reproduction:
    """Recompute Table 1 and the text's statements about it; the result does not depend on `seed`."""
    del seed
    rows: list[Row] = []
    for beta, factor, printed, delta in ONE:
        epsilon, small = resampled_privacy(epsilon=math.log(11), delta=1e-5, sampling=1.0, to=float(beta))
        key = f"e^epsilon=11, beta={beta}"
        rows += [
            Row(f"{key}, e^epsilon", float(factor), math.exp(epsilon), same_digits(math.exp(epsilon), factor), DIGITS),
            Row(f"{key}, epsilon", float(printed), epsilon, same_digits(epsilon, printed), DIGITS),
            Row(f"{key}, delta", float(delta), small, same_digits(small, delta), DIGITS),
        ]
    for beta, printed in OTHER:
        epsilon, _ = resampled_privacy(epsilon=1.0, delta=0.0, sampling=1.0, to=float(beta))
        rows.append(Row(f"epsilon=1, beta={beta}", float(printed), epsilon, same_digits(epsilon, printed), DIGITS))
    rows += [*_text(), _attained()]
    betas = [0.001 * 10 ** (step / 20) for step in range(61)]
    curves = [
        Curve(
            f"unsampled ε = {epsilon:g}",
            betas,
            [resampled_privacy(epsilon=epsilon, delta=0.0, sampling=1.0, to=min(beta, 1.0))[0] for beta in betas],
        )
        for epsilon in (0.5, 1.0, math.log(11))
    ]
    printed_points = [
        Curve("Table 1", [float(b) for b, _ in OTHER], [float(e) for _, e in OTHER], "points", published=True)
    ]
    drawing = Drawing(
        "ε after sampling", "sampling probability β", "ε", curves + printed_points, log_x=True, log_y=True
    )
    findings = (
        "Theorem 1 is tight: randomised response on whether the device is in the sample attains it to the last digit.",
        (
            "In the proof of theorem 1 a denominator is printed 1 − β + e^(β−ε1); it is 1 − β + βe^(−ε1), as two lines "
            "above."
        ),
    )
    return Reproduction(rows, (drawing,), findings)


def _text() -> list[Row]:
    """Return rows on the statements of sections 1 and 2.4 in words."""
    abstract, _ = resampled_privacy(epsilon=math.log(2), delta=0.0, sampling=1.0, to=0.1)
    lemma, _ = resampled_privacy(epsilon=1.0, delta=0.0, sampling=1.0, to=0.1)
    widest = max(
        resampled_privacy(epsilon=1.0, delta=0.0, sampling=1.0, to=b / 1000)[0] / (b / 500) for b in range(1, 1001)
    )
    return [
        Row(
            "section 1: epsilon=ln 2, beta=0.1",
            0.095,
            abstract,
            same_digits(abstract, "0.095"),
            '"applying an algorithm that achieves (ln 2 ≈ 0.69)-differential privacy on dataset sampled with 0.1 '
            'probability can achieve overall (ln 1.1 ≈ 0.095)-differential privacy"',
        ),
        Row(
            "section 2.4: tighter than 2*beta at epsilon=1, beta=0.1",
            0.159,
            lemma,
            same_digits(lemma, "0.159") and lemma < 0.2,
            '"for the special case of ε = 1 and β = 0.1, we give a result of 0.159 as opposed to 2β = 0.2"',
        ),
        Row(
            "section 2.4: ln(1+beta(e-1))/(2*beta), greatest over beta",
            "below 1",
            widest,
            widest < 1.0,
            "Smith's lemma, (2β)-DP from ε = 1, follows from theorem 1 for every β.",
        ),
    ]


def _attained() -> Row:
    """Return the exact ε of sampled randomised response about a device's presence, beside that of theorem 1."""
    epsilon, beta = math.log(11), 0.1
    yes = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    absent = [1.0 - yes, yes]
    present = [(1 - beta) * a + beta * b for a, b in zip(absent, absent[::-1], strict=True)]
    exact = pair_epsilon(present, absent)
    bound, _ = resampled_privacy(epsilon=epsilon, delta=0.0, sampling=1.0, to=beta)
    return Row(
        "theorem 1 attained: exact epsilon of sampled randomised response, beta=0.1",
        "ln 2",
        exact,
        abs(exact - bound) < 1e-12,
        f"The whole law of the two outputs, with the device and without; theorem 1 gives {bound:.12g}.",
    )


TABLE_1 = Entry("lqs-table1", "LQS", "Table 1: ε and δ after sampling", reproduce_amplification_table)

K = 20
EPSILONS = ("0.25", "0.5", "0.75", "1.0", "1.5", "2.0")
PRINTED = {
    "0.05": ("6.83e-10", "2.50e-14", "3.19e-17", "1.76e-19", "3.97e-22", "2.00e-24"),
    "0.1": ("4.19e-06", "1.61e-09", "3.44e-12", "4.07e-14", "3.22e-16", "1.89e-18"),
    "0.2": ("2.16e-03", "8.02e-06", "1.89e-07", "6.03e-09", "4.79e-11", "1.59e-12"),
}


def reproduce_suppression_table(*, seed: int = 0) -> Reproduction:
    """Recompute Table 2, and the exact worst crowd beside it; the result does not depend on `seed`."""
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
    """Return rows on the statements of section 3.3 about the table's trends."""
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


TABLE_2 = Entry(
    "lqs-table2", "LQS", "Table 2: δ of suppression below k = 20 after sampling", reproduce_suppression_table
)
