"""docs/reference/keys.md and the JSON Schema beside the shipped scenarios are those of the current schema."""

import json
import re
from pathlib import Path

import scenarios
from scenarios.keys_page import SCHEMA_FILE, keys_page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "keys.md"
REMEDY = "run python -m scenarios.keys_page docs/reference/keys.md"


def test_page_and_schema_file_are_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == keys_page(), REMEDY
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == scenarios.schema(), REMEDY


def test_every_key_is_described_and_every_link_has_a_target():
    page = keys_page()
    anchors = {re.sub(r"[^a-z_ -]", "", title.lower()) for title in re.findall(r"(?m)^#+ (.*)$", page)}
    for target in re.findall(r"\]\(#([^)]*)\)", page):
        assert target in anchors, target
    selectors = ("`kind`", "`source`", "`engine`", "`name`")
    for row in re.findall(r"(?m)^\| `.*$", page):
        key, *_, meaning = re.split(r"(?<!\\) \| ?", row.strip("| "))
        assert meaning or key in selectors, row


def test_scenarios_name_the_schema_for_editors(tmp_path):
    for shipped in scenarios.shipped():
        assert shipped.path.read_text(encoding="utf-8").startswith("#:schema schema.json\n"), shipped.name
    scenarios.write_template(tmp_path / "mine.toml")
    first = (tmp_path / "mine.toml").read_text(encoding="utf-8").split("\n")[0]
    assert first == f"#:schema {SCHEMA_FILE.as_uri()}"
