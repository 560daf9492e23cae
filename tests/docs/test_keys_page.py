"""docs/reference/keys.md, the pages of its sections and the JSON Schema are those of the current schema."""

import json
import re

import scenarios
from reference_pages import REFERENCE, SCHEMA_FILE, keys_pages

REMEDY = "run python docs/reference_pages.py"


def test_pages_and_schema_file_are_up_to_date():
    made = keys_pages()
    assert {file.name for file in (REFERENCE / "keys").iterdir()} == {name[5:] for name in made if "/" in name}
    for name, text in made.items():
        assert (REFERENCE / name).read_text(encoding="utf-8") == text, f"{name}: {REMEDY}"
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == scenarios.schema(), REMEDY


def test_every_key_is_described():
    rows = {row for text in keys_pages().values() for row in re.findall(r"(?m)^\| `.*$", text)}
    assert len(rows) > 300
    for row in rows:
        key, *_, meaning = re.split(r"(?<!\\) \| ?", row.strip("| "))
        assert meaning or key in ("`kind`", "`source`", "`engine`", "`name`"), row


def test_keys_of_every_kind_are_stated_once_and_numbers_have_units():
    whole, pages = scenarios.schema(), keys_pages()
    for name, section in whole["properties"].items():
        for model in re.findall(r"#/\$defs/(\w+)", json.dumps(section)):
            for key in whole["$defs"][model]["properties"]:
                assert re.search(f"`{key}`(?: \\|| is )|`{key} = ", pages[f"keys/{name}.md"]), (name, key)
    assert pages["keys/report.md"].count("| `link_interval_s` | number above 0, in s |") == 1
    attacks = pages["keys/attacks.md"]
    assert attacks.count("\n| `coalition` |") == 1
    assert attacks.index("\n| `coalition` |") < attacks.index("## `kind")


def test_scenarios_name_the_schema_for_editors(tmp_path):
    for shipped in scenarios.shipped():
        assert shipped.path.read_text(encoding="utf-8").startswith("#:schema schema.json\n"), shipped.name
    scenarios.write_template(tmp_path / "mine.toml")
    first = (tmp_path / "mine.toml").read_text(encoding="utf-8").split("\n")[0]
    assert first == f"#:schema {SCHEMA_FILE.as_uri()}"
