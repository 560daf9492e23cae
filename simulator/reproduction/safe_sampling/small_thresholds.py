"""lqs-fig5: what the smallest k are worth, at β = .025 (LQS sec 3.3)."""

from mechanisms.privacy import strongly_safe_delta, worst_crowd_delta
from simulator.reproduction.entry import Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.suppression_curves import epsilons, inverse_curve

BETA = 0.025
KS = (1, 2, 3, 4, 5)


def reproduce(*, seed: int = 0) -> Reproduction:
    """Draw Fig 5, and check what the text says of it; nothing is drawn by chance, whatever the `seed`."""
    del seed
    least = min(strongly_safe_delta(k=1, sampling=BETA, epsilon=e) for e in epsilons(BETA, 4.0, 200))
    rows = [
        Row(
            "k=1: least delta over epsilon",
            "less than 0.025",
            least,
            least < BETA * (1 - 1e-12),
            '"when k = 1, the privacy protection is entirely from the sampling effect, as the obtained δ value is less '
            'than β". It never is: n = 1 alone gives P[Bin(1, β) ≥ 1] = β at every ε, and below ε = .67 theorem 5 '
            "gives more. Definition 3 asks for β > δ, so k = 1 satisfies it nowhere.",
        ),
        Row(
            "k=1, epsilon=2: exact delta",
            "less than 0.025",
            worst_crowd_delta(k=1, sampling=BETA, epsilon=2.0),
            worst_crowd_delta(k=1, sampling=BETA, epsilon=2.0) < BETA * (1 - 1e-12),
            "The exact worst crowd says the same: δ = β, what sampling alone gives (the first half of the sentence "
            "is right).",
        ),
    ]
    for k in KS[1:]:
        delta = strongly_safe_delta(k=k, sampling=BETA, epsilon=2.0)
        rows.append(
            Row(
                f"k={k}, epsilon=2: delta",
                "below 0.001",
                delta,
                delta < 1e-3,
                '"when k ≥ 2, we start seeing privacy protection effect from k-anonymization, with δ (< 0.001) '
                f'significantly smaller than β = 0.025 when ε = 2"; it is β^{k} = {BETA**k:.4g}: all {k} of {k} '
                "sampled.",
            )
        )
    curves = [inverse_curve(f"k = {k}", k, BETA) for k in KS]
    findings = (
        (
            "LQS says that at k = 1, β = .025 the δ of theorem 5 is less than β. It is at least β for every ε, "
            "and β from "
            "ε = .67 on."
        ),
    )
    return Reproduction(rows, (Drawing("1/δ against ε, β = 0.025", "ε", "1/δ", curves, log_y=True),), findings)


FIG_5 = Entry("lqs-fig5", "LQS", "Fig 5: 1/δ against ε for k = 1 … 5 at β = .025", reproduce)
