"""Tables of delimited text: columns by number, and columns that stay text."""

import pytest

from simulator.files.tables import Table


@pytest.mark.parametrize("header", [True, False])
def test_a_numbered_column_of_text_loses_no_digit(tmp_path, header):
    file = tmp_path / "a.csv"
    file.write_text(("place,count,code\n" if header else "") + "007,08,3\n009,010,4\n", encoding="utf-8")
    table = Table.from_file(file, columns={"id": 1, "count": 2, "code": 3}, text=["id"], header=header)
    assert table.values("id") == ["007", "009"]
    assert table.values("count") == [8, 10]
    assert table.integers("code").tolist() == [3, 4]
