"""Faults to plant in privacy claims, of the kinds that reviews found or feared: each a replaced piece of source."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("mechanisms", "scenarios", "simulator")


class Planted(NamedTuple):
    """A fault: `old` stands exactly once in a file, or once in the whole source if the file has moved."""

    file: str
    old: str
    new: str


PRIVACY = "mechanisms/privacy"
PLANTED = {
    # Over several queries
    "epsilon-of-one-answer-for-all": Planted(
        f"{PRIVACY}/report_claims.py",
        "return Claim.exact(queries * epsilon, curve,",
        "return Claim.exact(epsilon, curve,",
    ),
    "delta-of-one-query-for-all": Planted(
        f"{PRIVACY}/sampling_privacy_claims.py",
        "ConstantDelta(at_least_once(sampling, queries)), basis)",
        "ConstantDelta(sampling), basis)",
    ),
    "delta-times-queries": Planted(
        f"{PRIVACY}/sampling_privacy_claims.py",
        "return -math.expm1(queries * math.log1p(-probability))",
        "return min(1.0, queries * probability)",
    ),
    "certain-outputs-of-one-query-only": Planted(
        f"{PRIVACY}/composition.py", "self.certain = at_least_once(one, queries)", "self.certain = one"
    ),
    "one-shuffling-for-all-queries": Planted(
        f"{PRIVACY}/shuffled.py", "fresh = 1 if single is None else view.queries", "fresh = 1"
    ),
    "blanket-of-one-query-for-all": Planted(
        f"{PRIVACY}/shuffled.py",
        "curve = composed(blanket, view.queries, limit=local.epsilon / view.queries)",
        "curve = blanket",
    ),
    # Signs, directions and factors
    "sign-of-the-loss": Planted(
        f"{PRIVACY}/report_claims.py",
        "max(0.0, -math.expm1(min(epsilon - self.epsilon, 0.0)))",
        "max(0.0, math.expm1(min(epsilon - self.epsilon, 0.0)))",
    ),
    "one-direction-of-a-pair": Planted(
        f"{PRIVACY}/hockey_stick.py",
        "return max(hockey_stick(p, q, epsilon=epsilon), hockey_stick(q, p, epsilon=epsilon))",
        "return hockey_stick(p, q, epsilon=epsilon)",
    ),
    "no-group-factor-for-the-second-step": Planted(
        f"{PRIVACY}/claim.py",
        "return math.exp(firsts[first]) * self.step(epsilon - firsts[first])",
        "return self.step(epsilon - firsts[first])",
    ),
    "epsilon-instead-of-its-exponential": Planted(
        f"{PRIVACY}/subsampling.py",
        "return math.log1p(share * math.expm1(epsilon)), share * delta",
        "return math.log1p(share * epsilon), share * delta",
    ),
    "claims-rounded-down": Planted(
        f"{PRIVACY}/rounding.py", "scaleb(-decimals), ROUND_CEILING)", 'scaleb(-decimals), "ROUND_FLOOR")'
    ),
    # Moves
    "leaving-bound-of-a-move-missing": Planted(
        f"{PRIVACY}/released.py", "return np.maximum(between, self.leaving.each(epsilons))", "return np.array(between)"
    ),
    "epsilon-of-one-step-for-a-move": Planted(
        f"{PRIVACY}/claim.py",
        'Claim(kind, 2.0 * self.epsilon, "bound", basis, TwoStepDelta(self.delta))',
        'Claim(kind, self.epsilon, "bound", basis, TwoStepDelta(self.delta))',
    ),
    "one-changed-count-of-a-move": Planted(f"{PRIVACY}/laplace_noise.py", "changed = min(2, cells)", "changed = 1"),
    "one-changed-bit-of-a-move": Planted(
        f"{PRIVACY}/memoised_bits.py",
        "single = changed * math.log((1.0 - bits.flip) / bits.flip)",
        "single = math.log((1.0 - bits.flip) / bits.flip)",
    ),
    "one-of-two-cells-of-a-move": Planted(f"{PRIVACY}/released.py", "        times *= 2\n", "        times *= 1\n"),
    "adjacency-of-reports-lost": Planted(
        f"{PRIVACY}/view_claims.py",
        "return self.claim_linked(LinkedReports(view.queries, adjacency=view.adjacency))",
        'return self.claim_linked(LinkedReports(view.queries, adjacency="enter_leave"))',
    ),
    "greater-crowd-of-a-move": Planted(
        f"{PRIVACY}/sampling_privacy_claims.py",
        "min(view.crowd or 1, view.other_crowd)",
        "max(view.crowd or 1, view.other_crowd)",
    ),
    # Crowds and thresholds, one too many or too few
    "crowd-of-one-more-device": Planted(
        f"{PRIVACY}/published_sums.py", "least = (view.crowd or 1) - 1", "least = view.crowd or 1"
    ),
    "one-more-device-counted": Planted(
        f"{PRIVACY}/published_sums.py",
        "counted = max(view.counted or 1, 2 * least + 1 if moves else least + 1)",
        "counted = max(view.counted or 1, 2 * least + 1 if moves else least + 1) + 1",
    ),
    "one-more-clone": Planted(
        f"{PRIVACY}/shuffled.py",
        "window(self.devices - 1, math.exp(-self.epsilon))",
        "window(self.devices, math.exp(-self.epsilon))",
    ),
    "threshold-one-too-high": Planted(
        f"{PRIVACY}/released.py", "np.asarray(n) - 1), least - 1)", "np.asarray(n) - 1), least)"
    ),
    "crowd-at-the-threshold-left-out": Planted(
        f"{PRIVACY}/released.py",
        "low, high = max(least, crowds[0]), crowds[1]",
        "low, high = max(least + 1, crowds[0]), crowds[1]",
    ),
    "worst-crowd-one-too-large": Planted(
        f"{PRIVACY}/subsampling.py",
        "n = np.maximum(np.ceil(above / gamma) - 1.0, above)",
        "n = np.maximum(np.ceil(above / gamma), above)",
    ),
    # Who is left out
    "outside-left-out-of-the-worst-blank": Planted(
        f"{PRIVACY}/sampling_privacy_claims.py", "worst = int(blanks.argmin())", "worst = 1 + int(blanks[1:].argmin())"
    ),
    "all-shares-reveal-nothing": Planted(
        f"{PRIVACY}/report_claims.py", "if view.colluding < view.servers:", "if view.colluding <= view.servers:"
    ),
    "noise-of-colluding-servers-counted": Planted(
        f"{PRIVACY}/published_sums.py",
        "honest = 0 if noise is None else (view.servers or 1) - (view.colluding or 0)",
        "honest = 0 if noise is None else (view.servers or 1)",
    ),
    "choice-on-the-sample-spends-once": Planted(
        f"{PRIVACY}/subsampling.py",
        '(2.0 if self.form == "chosen on the sample" else 1.0)',
        '(1.0 if self.form == "chosen on the sample" else 1.0)',
    ),
}


def source_files(root: Path) -> list[Path]:
    """Return the modules of the project below a folder."""
    modules = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    return sorted([root / "crowdveil.py", *modules])


def place_of(fault: Planted, root: Path) -> Path:
    """Return the file in which a fault can be planted.

    Raises
    ------
    LookupError
        If the old source does not stand exactly once in its file, nor exactly once in all files.
    """
    named = root / fault.file
    files = [named] if named.exists() and fault.old in named.read_text(encoding="utf-8") else source_files(root)
    counts = {path: path.read_text(encoding="utf-8").count(fault.old) for path in files}
    places = [path for path, count in counts.items() if count]
    if sum(counts.values()) != 1:
        raise LookupError(f"{fault.old!r} stands {sum(counts.values())} times in {fault.file} or the source, not once")
    return places[0]
