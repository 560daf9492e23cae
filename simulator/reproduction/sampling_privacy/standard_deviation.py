"""sp-sec1-sigma and sp-fig1: standard deviations of randomized response, and the area of a 32-bit location."""

import math

import numpy as np
from numpy.typing import NDArray

from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.monte_carlo import rmse_interval, simulate_errors
from simulator.streams import Streams

FIRST_COIN, SECOND_COIN, THERE = 0.85, 0.3, 100
PRINTED = {10_000: 21, 1_000_000: 212}
PRINTED_DIVISOR = 0.8
REPEATS = 2000
DRAWN = [10**power for power in (3, 4, 5, 6, 7)]


def reproduce_standard_deviation(*, seed: int) -> Reproduction:
    """Compute √((1 − .85)·.3·N), and the quantities it may denote, at N = 10⁴ and 10⁶ (SP sec 1)."""
    from mechanisms.local import RandomizedResponse, SamplingPrivacy  # noqa: PLC0415  imports wait until needed

    response = RandomizedResponse(cells=1, first_coin=FIRST_COIN, second_coin=SECOND_COIN)
    p1, p0 = response.true_yes, response.false_yes

    def count_error(devices: int) -> float:
        return math.sqrt(THERE * p1 * (1 - p1) + (devices - THERE) * p0 * (1 - p0))

    def estimate_error(devices: int) -> float:
        return float(response.std_error(_truth(devices))[0])

    rows, simulated = [], {}
    for devices, printed in PRINTED.items():
        formula, count, error = math.sqrt(p0 * devices), count_error(devices), estimate_error(devices)
        draws = simulate_errors(
            response, _truth(devices), repeats=REPEATS, rng=Streams(seed).of("sp-sec1-sigma", devices)
        )
        simulated[devices] = rmse_interval(draws[:, 0])
        found, low, high = simulated[devices]
        rows += [
            Row(
                f"N={devices:,}: √((1−.85)·.3·N)", printed, formula, round(formula) == printed, "to the printed digits"
            ),
            Row(
                f"N={devices:,}: σ of the count of Yes",
                printed,
                count,
                round(count) == printed,
                "to the printed digits"
                if round(count) == printed
                else "√(mean) is the σ of a Poisson count; a coin's has a factor 1 − p₀ = .955 under the root",
            ),
            Row(
                f"N={devices:,}: σ of the estimate",
                printed,
                error,
                round(error) == printed,
                "the estimate is the count divided by flip1 = .85, and so is its error",
            ),
            Row(
                f"N={devices:,}: RMSE of the estimate, simulated",
                None,
                found,
                None,
                f"{REPEATS:,} queries, interval {low:.1f} to {high:.1f}: "
                f"{'holds' if low <= error <= high else 'misses'} theory's {error:.1f}",
            ),
        ]
    truthful, asked = 60, 100
    yes = truthful * p1 + (asked - truthful) * p0
    rows += [
        Row(
            "divisor of the estimator at flip1 = .85",
            PRINTED_DIVISOR,
            FIRST_COIN,
            PRINTED_DIVISOR == FIRST_COIN,
            "the text says to divide by 0.8; it must be flip1",
        ),
        Row(
            "60 truthful of 100, estimated as the text says",
            None,
            (yes - p0 * asked) / PRINTED_DIVISOR,
            None,
            f"the text's example (footnote 1): divided by 0.8 the estimate is biased by a factor {0.85 / 0.8:.4f}; "
            f"divided by flip1 it is {(yes - p0 * asked) / FIRST_COIN:g}",
        ),
    ]
    constant = float(SamplingPrivacy(cells=1, sampling=0.45).std_error(_truth(10_000))[0])
    drawing = Drawing(
        "Error of an estimate of 100 vehicles",
        "devices asked, N",
        "standard deviation, vehicles",
        [
            Curve("√((1−.85)·.3·N)", list(PRINTED), list(PRINTED.values()), kind="points", published=True),
            Curve("σ of the count", DRAWN, [count_error(n) for n in DRAWN]),
            Curve("σ of the estimate", DRAWN, [estimate_error(n) for n in DRAWN]),
            Curve("Sampling Privacy, π_s = .45", DRAWN, [constant] * len(DRAWN)),
            Curve(
                "RMSE of the estimate, simulated",
                list(simulated),
                [found for found, _, _ in simulated.values()],
                kind="points",
                low=[low for _, low, _ in simulated.values()],
                high=[high for _, _, high in simulated.values()],
            ),
        ],
        log_x=True,
        log_y=True,
    )
    findings = [
        (
            "The printed 21 and 212 are √(N(1 − flip1)·flip2), the square root of the mean number of forced Yes. That "
            f"is the σ of a Poisson count; the count's own is {count_error(10_000):.1f} and "
            f"{count_error(1_000_000):.1f}, and the error of the estimate, which is what the sentence goes on to speak "
            f"of, is {estimate_error(10_000):.1f} and {estimate_error(1_000_000):.1f}: the text understates randomized "
            f"response’s error by {1 - 212 / estimate_error(1_000_000):.0%}."
        ),
        (
            "The text divides by 0.8 where flip1 is .85: its own example of 60 truthful answers in 100 would be "
            f"estimated as {(yes - p0 * asked) / PRINTED_DIVISOR:.2f}."
        ),
        (
            "The text says that the number of data owners “is private and needs to be estimated”, but the estimator "
            "subtracts (1 − flip1)·flip2·N: it cannot be computed without N (nor can eq 5)."
        ),
    ]
    return Reproduction(rows=rows, drawings=[drawing], findings=findings)


def _truth(devices: int) -> NDArray[np.int64]:
    return np.array([devices - THERE, THERE], dtype=np.int64)


STANDARD_DEVIATION = Entry(
    "sp-sec1-sigma",
    "SP",
    "Sec 1: the standard deviation of randomized response, 21 and 212",
    reproduce_standard_deviation,
)

BITS, SQUARE_MILES_SIDE, SECTION_MILES = 32, 9_500, 0.15
PRINTED_LOCATIONS, PRINTED_AREA = 4e9, 90e6
CITIES = {"Paris": 41, "London": 607, "New York City": 305, "Beijing": 6_336}


def reproduce_discretisation(*, seed: int) -> Reproduction:  # noqa: ARG001 - nothing is drawn
    """Check the arithmetic of SP sec 4: identifiers, sections and square miles."""
    identifiers = 2**BITS
    sections = (SQUARE_MILES_SIDE / SECTION_MILES) ** 2
    area = float(SQUARE_MILES_SIDE**2)
    quote = "“4 billion possible locations”, to the printed digit"
    rows = [
        Row("identifiers of 32 bits", PRINTED_LOCATIONS, identifiers, round(identifiers / 1e9) == 4, quote),
        Row(
            "sections of 0.15 miles in a 9,500-mile square",
            PRINTED_LOCATIONS,
            sections,
            round(sections / 1e9) == 4,
            quote,
        ),
        Row(
            "square miles covered", PRINTED_AREA, area, round(area / 1e6) == 90, "“a total of 90 million square miles”"
        ),
    ]
    for city, miles in CITIES.items():
        note = f"the text gives {miles:,} square miles and no number of sections"
        rows.append(Row(f"sections over {city}", None, round(miles / SECTION_MILES**2), None, note))
    findings = [
        (
            f"The sections fit the identifiers with {1 - sections / identifiers:.1%} to spare. With so many cells "
            "equal blanks are about 10⁻¹⁰ each, and eq 29 then gives ε = 22: Sampling Privacy's printed ε needs few "
            "cells."
        ),
    ]
    return Reproduction(rows=rows, findings=findings)


DISCRETISATION = Entry(
    "sp-fig1", "SP", "Fig 1 and sec 4: a 32-bit location identifier and the ground it covers", reproduce_discretisation
)
