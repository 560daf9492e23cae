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
    for name, section in scenarios.schema()["properties"].items():
        page = keys_pages()[f"keys/{name}.md"]
        models = re.findall(r"#/\$defs/(\w+)", json.dumps(section))
        for key in {key for model in models for key in scenarios.schema()["$defs"][model]["properties"]}:
            assert f"| `{key}` |" in page or re.search(f"`{key} = |`{key}` is ", page), (name, key)
    assert page.count("| `link_interval_s` | number above 0, in s |") == 1
    attacks = keys_pages()["keys/attacks.md"]
    assert attacks.count("\n| `coalition` |") == 1
    assert attacks.index("\n| `coalition` |") < attacks.index("## `kind")


def test_scenarios_name_the_schema_for_editors(tmp_path):
    for shipped in scenarios.shipped():
        assert shipped.path.read_text(encoding="utf-8").startswith("#:schema schema.json\n"), shipped.name
    scenarios.write_template(tmp_path / "mine.toml")
    first = (tmp_path / "mine.toml").read_text(encoding="utf-8").split("\n")[0]
    assert first == f"#:schema {SCHEMA_FILE.as_uri()}"
