"""hdk-fig3 to hdk-fig5: effects that depend on the sampling rate alone and on no data."""

import math
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mechanisms.privacy.subsampling import population_privacy, sample_privacy
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row

SHARES = [float(f"{share:.4g}") for share in np.geomspace(1e-4, 1.0, 41)]
# The benchmark that a sampling variance is compared with; the published value is missing from the text.
BENCHMARK = 0.5
DIGITS = 80


def reproduce_amplification(*, seed: int) -> Reproduction:  # noqa: ARG001 - theory only
    """Draw ε_n against the sampling rate for several ε_N (HDK theorem 1)."""
    epsilons = (0.1, 0.5, 1.0, 2.0, 3.0)
    rows = [
        Row(
            f"epsilon={epsilon:g}, rate=1 %: epsilon of the sample",
            None,
            sample_privacy(epsilon=epsilon, share=0.01)[0],
            None,
            "“to achieve ε_N = … based on a 1 % simple random sample it would be sufficient to use ε_n = …”: lost",
        )
        for epsilon in (0.1, 1.0)
    ]
    sampled = [sample_privacy(epsilon=0.1, delta=1e-6, share=share)[1] * share / 1e-6 for share in SHARES]
    back = max(
        abs(population_privacy(epsilon=sample_privacy(epsilon=epsilon, share=share)[0], share=share)[0] / epsilon - 1.0)
        for epsilon in epsilons
        for share in SHARES
    )
    rows += [
        Row(
            "amplification of δ is linear in the rate",
            "always",
            f"δ_n·(n/N)/δ_N is 1 within {max(abs(one - 1.0) for one in sampled):.0e}",
            max(abs(one - 1.0) for one in sampled) < 1e-12,
            "“the amplification effects of δ are always linear in the sampling rate”",
        ),
        Row("theorem 1 and its inverse, greatest relative difference", None, back, None, "our own check"),
        Row(
            "amplification is substantial for small rates",
            "yes",
            f"ε_n = {sample_privacy(epsilon=0.1, share=0.01)[0]:.2f} where ε_N = 0.1, at 1 %",
            sample_privacy(epsilon=0.1, share=0.01)[0] > 10 * 0.1,
            "Rule: more than tenfold at 1 % and the smallest ε.",
        ),
    ]
    curves = [
        Curve(f"ε_N = {epsilon:g}", SHARES, [sample_privacy(epsilon=epsilon, share=share)[0] for share in SHARES])
        for epsilon in epsilons
    ]
    drawing = Drawing("What a sample may be released with", "sampling rate n/N", "ε_n", curves, log_x=True)
    return Reproduction(rows=rows, drawings=[drawing])


def variance_room(epsilon: float, share: float) -> float:
    """Return r = 1 − (ε_N/ε_n)²: a sampling variance below r·2Δ²/ε_N² may leave a gain (HDK sec 4.1)."""
    return 1.0 - (epsilon / sample_privacy(epsilon=epsilon, share=share)[0]) ** 2


def reproduce_room(*, seed: int) -> Reproduction:  # noqa: ARG001 - theory only
    """Draw r against the sampling rate (HDK fig 4): the limit of the sampling variance over the noise variance."""
    epsilons = (3.0, 2.0, 1.0, 0.5, 0.1, 0.01)
    shares = [float(share) for share in np.round(np.linspace(0.005, 1.0, 200), 6)]
    room = {epsilon: np.array([variance_room(epsilon, share) for share in shares]) for epsilon in epsilons}
    flat = float(np.abs(room[0.1] - room[0.01]).max())
    square = float(np.abs(room[0.01] - (1.0 - np.square(shares))).max())
    linear = 1.0 - np.array(shares)
    slope = -np.gradient(room[3.0], shares)
    steep = max((share for share, one in zip(shares, slope, strict=True) if one > 1.0), default=0.0)
    small = (0.5, 0.1, 0.01)
    needed = {epsilon: _needed_share(epsilon) for epsilon in (3.0, 0.1)}
    rows = [
        Row(
            "variance of the noise at the smaller ε over that at the larger",
            900,
            (3.0 / 0.1) ** 2,
            round((3.0 / 0.1) ** 2) == 900,
            "to the printed digits; the text lost both ε: 900 = (3/0.1)², which fixes them",
        ),
        Row(
            "ε=3: less than linear as rates fall, but for very small ones",
            "yes",
            f"below the line at every rate; steeper than it only at rates under {steep:.1%}",
            bool((room[3.0][:-1] < linear[:-1]).all()) and steep < 0.2,
            "Rule: r < 1 − n/N everywhere, and its slope above 1 only at rates below 20 %.",
        ),
        Row(
            "ε≤1: the relationship is reversed",
            "yes",
            f"r at a rate of 50 %: {', '.join(f'{variance_room(one, 0.5):.2f} (ε = {one:g})' for one in small)}",
            all(_quick_then_slow(room[one], np.array(shares)) for one in small),
            "“increases quickly when sampling rates are large but the rate of increase slows down with decreasing "
            "sampling rates”. Rule: r > 1 − n/N at all rates from 10 to 99 %, its slope less at 10 % than at 99 %, for "
            "ε = 0.5, 0.1 and 0.01; which values the sentence names is lost. Not so for ε = 0.5 at rates up to 2 %, "
            "nor for ε = 1 up to 18 %, where r is below the line.",
        ),
        Row(
            "ε<0.1: the curve hardly changes",
            "yes",
            flat,
            flat < 0.05,
            "Greatest difference of r between ε = 0.1 and 0.01; rule: below 0.05.",
        ),
        Row(
            "small ε: r ≈ 1 − (n/N)²",
            "yes",
            square,
            square < 0.01,
            "Greatest difference at ε = 0.01; rule: below 0.01.",
        ),
        Row(
            f"rate that leaves r = {BENCHMARK:g}: smaller for ε=3 than for ε=0.1",
            "yes",
            f"{needed[3.0]:.3f} against {needed[0.1]:.3f}",
            needed[3.0] < needed[0.1],
            "“the same benchmark … could be achieved with a sampling rate of …”: the benchmark and both rates are lost",
        ),
        Row(
            "no gain, whatever the data, where the sampling variance exceeds 2Δ²/ε²",
            "never a gain",
            f"greatest r {max(float(of.max()) for of in room.values()):.4f}",
            all(bool((of < 1.0).all()) for of in room.values()),
            "r < 1, as ε_n is finite",
        ),
    ]
    curves = [Curve(f"ε = {epsilon:g}", shares, of.tolist()) for epsilon, of in room.items()]
    drawing = Drawing("Room for a sampling variance", "sampling rate n/N", "r, share of 2Δ²/ε²", curves)
    return Reproduction(rows=rows, drawings=[drawing])


def _quick_then_slow(room: NDArray[np.float64], shares: NDArray[np.float64]) -> bool:
    """Return whether r lies above the line 1 − n/N and, as rates fall, rises more slowly at 10 % than at 99 %."""
    looked = (shares >= 0.1) & (shares <= 0.99)
    slope = -np.gradient(room, shares)[looked]
    return bool((room > 1.0 - shares)[looked].all() and slope[0] < slope[-1])


def _needed_share(epsilon: float) -> float:
    """Return the rate at which r is the benchmark; r falls as the rate rises."""
    return float(brentq(lambda share: variance_room(epsilon, share) - BENCHMARK, 1e-6, 1.0))


def noise_shortfall(epsilon: float, share: float) -> float:
    """Return 1 − √R = 1 − (n/N)·ε_n/ε_N with 80 digits, where R is the noise ratio of means (HDK eq 8)."""
    with localcontext() as context:
        context.prec = DIGITS
        exact, rate = Decimal(epsilon), Decimal(share)
        return float(1 - rate * (1 + (exact.exp() - 1) / rate).ln() / exact)


def plain_noise_ratio(epsilon: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return R in plain double arithmetic, by exp(ε) − 1 and log(1 + …), which loses all digits at tiny ε."""
    ratio: NDArray[np.float64] = (share * np.log(1.0 + (np.exp(epsilon) - 1.0) / share) / epsilon) ** 2
    return ratio


def reproduce_mean_ratio(*, seed: int) -> Reproduction:  # noqa: ARG001 - theory only
    """Search for the ε below which sampling reduces the noise on a mean (HDK fig 5)."""
    tried = np.geomspace(1e-14, 10.0, 1501)
    shares = [float(share) for share in np.geomspace(1e-4, 0.9, 33)]
    rounding = [float(tried[plain_noise_ratio(tried, share) >= 1.0].max()) for share in shares]
    smallest = min(noise_shortfall(epsilon, share) for epsilon in (1e-20, 1e-12, 1e-8, 0.1, 3.0) for share in shares)
    samples = [sample_privacy(epsilon=one, share=share)[0] for one, share in zip(rounding, shares, strict=True)]
    turn = shares[int(np.argmin(samples))]
    rows = [
        Row(
            "there is an ε>0 below which the noise ratio R reaches 1",
            "yes, the curve of the figure",
            "no: R < 1 for every ε > 0 and n < N",
            agrees=False,
            note="(n/N)·ln(1 + (N/n)(e^ε − 1)) starts at 0 with slope 1, and its slope q·e^ε/(e^ε − 1 + q), q = n/N, "
            f"is below 1 ever after. 1 − √R is positive in 80 digits ({smallest:.1e} at least, at ε ≥ 1e-20).",
        ),
        Row(
            "R approaches 1 as ε goes to 0",
            "yes",
            f"1 − √R = {noise_shortfall(1e-12, 0.1):.3e} at ε = 1e-12, n/N = 0.1",
            0.0 < noise_shortfall(1e-12, 0.1) < 1e-11,
            "from below: 1 − √R ≈ ε(1 − q)/(2q)",
        ),
        Row(
            "ε needed at a sampling rate of 0.0001",
            "extremely small",
            f"none; plain doubles first round R up to 1 at ε = {rounding[0]:.1e}, ε_n = {samples[0]:.1e}",
            agrees=False,
            note="The figure's curve, whose values are lost, can only be where rounding, or a solver's tolerance, "
            "takes R to 1: with exp(ε) − 1 and log(1 + …) in doubles there is such a curve, near ln ε = −18 to −23.",
        ),
        Row(
            "the ε_n of the curve rises again below a rate of 10 %",
            "yes",
            f"that of the rounding curve is least at {turn:.0%}, and rises below it",
            samples[0] > samples[int(np.argmin(np.abs(np.array(shares) - 0.1)))] > min(samples),
            "Rule: higher at 0.0001 than at 10 %, and there than at its least. It is a property of rounding errors, "
            "about 1e-16/ε against ε(1 − q)/q.",
        ),
        Row(
            "accuracy gains for a mean, by this criterion",
            "unlikely",
            "impossible",
            agrees=True,
            note="R < 1: the sample's noise alone exceeds the population's at every ε. The conclusion stands.",
        ),
    ]
    logs = [math.log(one) for one in rounding]
    drawings = [
        Drawing(
            "Where double precision rounds the noise ratio up to 1",
            "sampling rate n/N",
            "ln ε",
            [Curve("greatest ε with R ≥ 1 in plain doubles; exactly, there is none", shares, logs)],
            log_x=True,
        ),
        Drawing(
            "The same, as the sample's ε",
            "sampling rate n/N",
            "ε_n",
            [Curve("by rounding", shares, samples)],
            log_x=True,
            log_y=True,
        ),
        Drawing(
            "How far the noise ratio is from 1",
            "ε",
            "1 − √R, exact",
            [
                Curve(f"n/N = {share:g}", list(_DRAWN), [noise_shortfall(e, share) for e in _DRAWN])
                for share in (0.5, 0.1, 0.01)
            ],
            log_x=True,
            log_y=True,
        ),
    ]
    finding = (
        "Figure 5 can only show rounding errors. The ratio of eq 8 is below 1 for every ε > 0 and n < N: sampling "
        "never reduces the Laplace noise on a mean, however small ε. Computed with exp(ε) − 1 in doubles it reaches 1 "
        "near ε = 1e-8 to 1e-10, the extremely small values that the figure is said to show."
    )
    return Reproduction(rows=rows, drawings=drawings, findings=[finding])


_DRAWN = (1e-8, 1e-6, 1e-4, 1e-2, 1.0, 3.0)

ENTRIES = (
    Entry("hdk-fig3", "HDK", "Fig 3: amplification of ε by the sampling rate", reproduce_amplification),
    Entry("hdk-fig4", "HDK", "Fig 4: the most the sampling variance may be, by rate", reproduce_room),
    Entry("hdk-fig5", "HDK", "Fig 5: the ε below which sampling reduces the noise on a mean", reproduce_mean_ratio),
)
