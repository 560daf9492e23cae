"""lqs-noncomposition: privacy that rests on the sample does not compose (LQS secs 2.2, 2.6 and 2.7), attacked."""

from simulator.reproduction.entry import Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.banded import banded_rows
from simulator.reproduction.safe_sampling.majority import majority_rows
from simulator.reproduction.safe_sampling.parity import parity_rows


def reproduce(*, seed: int = 0) -> Reproduction:
    """Sample databases, run the algorithms on them together and apart, and count how often an attacker is right."""
    rows, drawing = banded_rows(seed + 2)
    findings = (
        (
            "LQS sec 2.6's A1, \"more male than female\" XOR a tuple's presence, is not (β, ε, δ)-DPS as the "
            "text says: on an "
            "all-male database it publishes the presence, and δ ≥ β. Its conclusion stands: with the parity of "
            "⌊|T|/64⌋ in "
            "the predicate's place A1 is private for every database, A2 is, and both on one sample are not."
        ),
        'LQS sec 2.2 says the two algorithms together leak "r(D)"; they leak s(D).',
        (
            "LQS sec 2.6 writes D and D' as two databases of 10,000 each, of which one has t: not the pair D, D "
            "− t of its "
            "proofs. The rows replace another man by t, as printed."
        ),
    )
    return Reproduction([*parity_rows(seed), *majority_rows(seed + 1), *rows, *_fresh()], (drawing,), findings)


def _fresh() -> list[Row]:
    """Return what section 2.7 says of fifty fresh samples."""
    beta, times, epsilon = 0.2, 50, 0.02
    once = 1 - (1 - beta) ** times
    return [
        Row(
            "section 2.7: epsilon of 50 fresh samples",
            1.0,
            times * epsilon,
            abs(times * epsilon - 1.0) < 1e-12,
            '"publishing the 50 outputs still satisfies (ε, δ)-DP for ε = 1, δ = 0": basic composition of 50 at '
            "ε = .02.",
        ),
        Row(
            "section 2.7: a tuple is in one of 50 samples",
            "with high probability",
            once,
            once > 0.99,
            '"With high probability, each tuple is included in at least one of the sampled datasets": of one tuple.',
        ),
        Row(
            "section 2.7: every one of 100,000 tuples is in one of 50 samples",
            "no tuple is thrown away",
            once**100_000,
            once**100_000 > 0.99,
            '"in some sense, no tuple is thrown away": of all tuples at once that holds up to about '
            f"{int(0.01 / (1 - once)):,} of them with probability .99, not of large data sets.",
        ),
    ]


NONCOMPOSITION = Entry("lqs-noncomposition", "LQS", "Secs 2.2 and 2.6: two private algorithms on one sample", reproduce)
