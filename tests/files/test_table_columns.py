"""Tables of delimited text: columns by number, and columns that stay text."""

import pandas as pd
import pytest

from simulator.files.errors import InputError
from simulator.files.tables import Table, TextFormat, column_names, find_columns, identifiers


@pytest.mark.parametrize("header", [0, None])
def test_a_numbered_column_of_text_loses_no_digit(tmp_path, header):
    file = tmp_path / "a.csv"
    file.write_text(("place,count,code\n" if header == 0 else "") + "007,08,3\n009,010,4\n", encoding="utf-8")
    table = Table.from_file(file, columns={"id": 1, "count": 2, "code": 3}, text=["id"], header=header)
    assert table.texts("id") == ["007", "009"]
    assert table.numbers("count").tolist() == [8, 10]
    assert table.integers("code").tolist() == [3, 4]


@pytest.mark.parametrize(
    "text",
    [
        "place;count;lon\nA;1.234,5;10,01\nNA;12;-0,5\n",
        "\ufeffplace;count;lon\nA;1.234,5;10,01\nNA;12;-0,5\n",
        "place\tcount\tlon\nA\t1234,5\t10,01\nNA\t12\t-0,5\n",
        "place|count|lon\nA|1234.5|10.01\nNA|12|-.5\n",
        'place,count,lon\nA,"1234,5","10,01"\nNA,"12","-0,5"\n',
        '"place","count","lon"\n"A",1234.5,10.01\n"NA",12,-0.5\n',
    ],
)
def test_separators_and_decimal_commas_are_recognized(tmp_path, text):
    file = tmp_path / "a.csv"
    file.write_text(text, encoding="utf-8")
    assert column_names(file) == ["place", "count", "lon"]
    for as_text in (["count"], []):
        table = Table.from_file(file, columns=["place", "count", "lon"], text=as_text, identifiers=["place"])
        assert table.texts("place") == ["A", "NA"]
        assert table.checked_numbers("count").tolist() == [1234.5, 12]
        assert table.checked_numbers("lon").tolist() == [10.01, -0.5]
        table.check()


def test_points_group_thousands_in_every_column_of_a_file_with_decimal_commas(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("place;count;lon\nA;1.234;10,5\nB;850;10,25\n", encoding="utf-8")
    assert Table.from_file(file, text=()).numbers("count").tolist() == [1234, 850]


@pytest.mark.parametrize(("decimal", "value"), [(",", 1.234), (".", None)])
def test_given_decimal_sign_settles_what_a_comma_means(tmp_path, decimal, value):
    file = tmp_path / "a.csv"
    file.write_text("place;count\nA;1,234\n", encoding="utf-8")
    with pytest.raises(InputError, match="may be decimal, or group thousands"):
        Table.from_file(file)
    table = Table.from_file(file, format_=TextFormat(decimal=decimal))
    numbers = table.checked_numbers("count")
    assert (table.broken == []) == (value is not None)
    assert numbers.tolist() == ([value] if value else pytest.approx([float("nan")], nan_ok=True))


@pytest.mark.parametrize("name", ["NA", "null", "None", "nan", "N/A", "NaN", "?"])
def test_identifiers_may_be_any_text_and_numbers_may_be_missing(tmp_path, name):
    file = tmp_path / "a.csv"
    file.write_text(f"place,count\nA,1\n{name},{name}\n,3\n", encoding="utf-8")
    table = Table.from_file(file, columns=["place", "count"], identifiers=["place"])
    assert table.texts("place") == ["A", name, None]
    numbers = table.checked_numbers("count", optional=True)
    table.check()
    assert numbers[[0, 2]].tolist() == [1, 3]
    assert numbers[1] != numbers[1]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_unread_columns_of_numbers_are_found(tmp_path, suffix):
    file = tmp_path / f"a{suffix}"
    frame = pd.DataFrame({"place": ["a"], "n": [3], "trip_id": [7], "x_start": [1.5], "share": [0.25], "name": ["7b"]})
    frame.to_csv(file, index=False) if suffix == ".csv" else frame.to_parquet(file, index=False)
    table = Table.from_file(file, columns=["place"])
    assert table.unread == ["n", "trip_id", "x_start", "share"]
    table.refuse_unread({"share"}, remedy="name it, or ignore {0}")
    assert table.broken == [f"{file}: column 'n' holds numbers that are not read: name it, or ignore [\"n\"]"]


def test_given_decimal_comma_makes_points_group_thousands(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("self;count\nA;1.234\nB;5\n", encoding="utf-8")
    assert Table.from_file(file, text=["self"]).numbers("count").tolist() == [1.234, 5]
    assert Table.from_file(file, text=["self"], format_=TextFormat(decimal=",")).numbers("count").tolist() == [1234, 5]


def test_the_likeliest_name_of_a_column_is_found_and_each_column_once():
    spellings = {"from": ("origin", "from"), "to": ("dest", "from", "to")}
    assert find_columns(["TO", "From_", "x"], spellings) == {"from": "From_", "to": "TO"}
    assert find_columns(["from", "to"], spellings, given={"to": "from"}) == {"to": "from"}
    assert find_columns(["origin", "from"], spellings) == {"from": "origin", "to": "from"}
    assert find_columns(["Origin", "origin"], spellings) == {"from": "Origin"}


def test_a_column_with_several_equally_likely_names_is_not_found():
    spellings = {"vehicle": (("taxi", "cab"), ("id",))}
    assert find_columns(["id", "taxi"], spellings) == {"vehicle": "taxi"}
    assert find_columns(["id", "taxi", "cab"], spellings) == {}
    assert find_columns(["id", "taxi", "cab"], spellings, given={"other": "cab"}) == {"other": "cab", "vehicle": "taxi"}


def test_an_unread_column_of_integers_too_large_for_64_bits_holds_numbers(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(f"place,n,m\na,{10**30},{10**30}\nb,2,x\n", encoding="utf-8")
    assert Table.from_file(file, columns=["place"], text=["place"]).unread == ["n"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([7, 12], ["7", "12"]),
        ([7.0, None, -12.0], ["7", "", "-12"]),
        (["7.0", None, "12.0"], ["7", "", "12"]),
        ([7.0, 7.5], ["7.0", "7.5"]),
        (["7.0", "7.1"], ["7.0", "7.1"]),
        (["7", "7.0"], ["7", "7"]),
        (["7.00", "8.0", "9"], ["7", "8", "9"]),
        (["007", "7", "7.0"], ["007", "7", "7"]),
        (["007", "8.0"], ["007", "8"]),
        (["A", "7.0"], ["A", "7.0"]),
        (["007", "1e3", "1.2e+03"], ["007", "1e3", "1.2e+03"]),
        ([" A ", "A", "", " "], ["A", "A", "", ""]),
        ([True, False], ["True", "False"]),
        ([float(2**54), None], ["1.8014398509481984e+16", ""]),
    ],
)
def test_identifiers_are_the_same_in_text_and_in_parquet(tmp_path, values, names):
    frame = pd.DataFrame({"id": values, "n": 1})
    found = identifiers(frame["id"])
    assert [found.categories[code] if code >= 0 else "" for code in found.codes] == names
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    for name in ("a.csv", "a.parquet"):
        table = Table.from_file(tmp_path / name, columns=["id"], identifiers=["id"])
        assert table.identifiers("id") == names
        assert table.identifiers("other") == [""] * len(names)


@pytest.mark.parametrize("other", ["A", "7.5"])
def test_a_number_written_in_two_ways_beside_text_is_refused(tmp_path, other):
    file = tmp_path / "a.csv"
    file.write_text(f"id,n\n{other},1\n8,1\n1.0,1\n1,1\n", encoding="utf-8")
    table = Table.from_file(file, columns=["id"], identifiers=["id"])
    with pytest.raises(InputError) as refused:
        table.identifiers("id")
    assert len(refused.value.faults) == 1
    assert f"{file}: rows 3, 4: id " in refused.value.faults[0]


def test_identifiers_of_lists_are_their_text_and_of_bytes_what_they_encode():
    assert [*identifiers([[1, 2], [1, 2], None])][:2] == ["[1, 2]"] * 2
    assert [*identifiers([b"a7", (1, 2)])] == ["a7", "(1, 2)"]


def test_rows_without_an_identifier_of_their_own_are_refused(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("id,n\n7,1\n7 ,1\n,1\n8,1\n", encoding="utf-8")
    table = Table.from_file(file, columns=["id"], identifiers=["id"])
    assert table.unique_identifiers("id") == ["7", "7", "", "8"]
    assert [fault.removeprefix(f"{file}: ") for fault in table.broken] == [
        "row 3: id must be an identifier, got NaN or nothing",
        "rows 1, 2: id must be an identifier no other row has, got '7'",
    ]
