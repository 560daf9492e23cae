"""Makes docs/reference/validation_tables.md: the traffic engines beside kinematic wave theory, UXsim and SUMO.

SUMO is installed by pip install 'crowdveil[sumo]'; its scenarios are looked for in the folder sumo under
CROWDVEIL_DATA. UXsim is installed by pip install uxsim; the files of its example of Sioux Falls are looked for in the
folder uxsim. A part whose files are missing is left as it is.
"""

import argparse
import os
from pathlib import Path

from validation_routes import equilibria, sioux_falls
from validation_sumo import CASES, beside_sumo
from validation_theory import theory

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "validation_tables.md"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts", nargs="*", default=["theory", "sumo", "equilibria", "sioux-falls"], help="parts to make again"
    )
    parser.add_argument("--networks", nargs="*", default=[*CASES], help="SUMO's networks")
    chosen = parser.parse_args()
    data = Path(os.environ.get("CROWDVEIL_DATA", ""))
    tables = {
        "theory": theory,
        "sumo": lambda: beside_sumo(data, chosen.networks),
        "equilibria": lambda: equilibria(data),
        "sioux-falls": lambda: sioux_falls(data / "uxsim"),
    }
    for name in chosen.parts:
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if lines := tables[name]():
            before, rest = PAGE.read_text(encoding="utf-8").split(begin)
            page = "\n".join([before + begin, "", *lines, "", end + rest.split(end)[1]])
            PAGE.write_text(page, encoding="utf-8")  # at once: a fault in a later part loses nothing


if __name__ == "__main__":
    main()
