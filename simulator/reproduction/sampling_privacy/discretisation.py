"""sp-fig1: how much ground a 32-bit location identifier covers."""

from simulator.reproduction.entry import Entry, Reproduction, Row

BITS, SQUARE_MILES_SIDE, SECTION_MILES = 32, 9_500, 0.15
PRINTED_LOCATIONS, PRINTED_AREA = 4e9, 90e6
CITIES = {"Paris": 41, "London": 607, "New York City": 305, "Beijing": 6_336}


def reproduce(*, seed: int) -> Reproduction:  # noqa: ARG001 - nothing is drawn
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


ENTRY = Entry("sp-fig1", "SP", "Fig 1 and sec 4: a 32-bit location identifier and the ground it covers", reproduce)
