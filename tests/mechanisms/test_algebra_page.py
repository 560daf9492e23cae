"""The page about the algebra says what its examples print."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "algebra.md"


def test_every_example_prints_what_the_page_says():
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert len(examples.examples) > 20
    said = []
    result = doctest.DocTestRunner().run(examples, out=said.append)
    assert result.failed == 0, "".join(said)
