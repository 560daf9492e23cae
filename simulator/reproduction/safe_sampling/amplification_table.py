"""lqs-table1: what sampling does to a privacy parameter (LQS theorem 1)."""

import math

from mechanisms.privacy import pair_epsilon, resampled_privacy
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.agreement import same_digits

# β, e^ε, ε and δ as printed, of an algorithm that satisfies (ln 11, 1e-5) unsampled.
ONE = (("1", "11", "2.40", "1e-5"), ("0.1", "2", "0.69", "1e-6"), ("0.01", "1.1", "0.095", "1e-7"))
# β and ε, of an algorithm that satisfies (1, 0).
OTHER = (("1", "1"), ("0.1", "0.159"), ("0.01", "0.017"))
DIGITS = "Rounded to the digits printed."


def reproduce(*, seed: int = 0) -> Reproduction:
    """Recompute Table 1 and what the text says beside it; nothing is drawn, whatever the `seed`."""
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
    """Return what sections 1 and 2.4 say in words."""
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
    """Return the exact ε of randomised response on a device's presence, after sampling, beside theorem 1."""
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


TABLE_1 = Entry("lqs-table1", "LQS", "Table 1: ε and δ after sampling", reproduce)
