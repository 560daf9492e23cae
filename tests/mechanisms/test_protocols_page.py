"""The examples on the page about the algebra print the documented output."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "algebra.md"


def test_page_examples_print_the_documented_output():
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert len(examples.examples) > 20
    output = []
    result = doctest.DocTestRunner().run(examples, out=output.append)
    assert result.failed == 0, "".join(output)
