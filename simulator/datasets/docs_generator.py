"""Generator of the page of data sets: `python -m simulator.datasets.docs_generator docs/reference/data.md`."""

import sys
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from simulator.datasets.manifest import Manifest, read_manifest
from simulator.files.errors import InputError

BEGIN, END = "<!-- from the manifest: begin -->", "<!-- from the manifest: end -->"


def renewed(page: str, manifest: Manifest) -> str:
    """Return a page with the table of data sets and a section on each, between `BEGIN` and `END`, generated again.

    Raises
    ------
    InputError
        If the page does not have both, in this order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError([f"the page must have a line {BEGIN}, and after it a line {END}"])
    environment = Environment(trim_blocks=True, undefined=StrictUndefined)  # noqa: S701 - Markdown, not HTML
    template = environment.from_string(Path(__file__).with_name("data.md.j2").read_text(encoding="utf-8"))
    return f"{before}{BEGIN}\n{template.render(manifest=list(manifest))}{END}{after}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(renewed(file.read_text(encoding="utf-8"), read_manifest()), encoding="utf-8")
