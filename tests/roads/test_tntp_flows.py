"""Published equilibrium flows, in the header styles that files have."""

import pytest

from simulator.files.errors import InputError
from simulator.formats.tntp.files import read_flows

ROWS = [(1, 2, 4494.65, 6.0), (1, 3, 8119.0, 4.25)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("From \tTo \tVolume \tCost \n1 \t2 \t4494.65 \t6 \n1 \t3 \t8119 \t4.25 \n", id="header"),
        pytest.param("1 2 4494.65 6\n1 3 8119 4.25", id="no header"),
        pytest.param(
            "<NUMBER OF LINKS> -1\n<ORIGINAL HEADER>Tail Head\n<END OF METADATA>\n\n"
            "Tail \tHead \tVolume \tCost \t;\n\t1 \t2 \t4494.65 \t6 \t;\n\t1 \t3 \t8119 \t4.25 \t;\n",
            id="metadata",
        ),
        pytest.param("~ From To : Volume Cost ;\n1 2 : 4494.65 6 ;\n1 3 : 8119 4.25 ;\n", id="colons"),
        pytest.param("init_node term_node cost flow\n1 2 6 4494.65\n1 3 4.25 8119\n", id="other order"),
        pytest.param("<END OF METADATA>\nA B Vol Capacity Time\n1 2 4494.65 9 6\n1 3 8119 9 4.25\n", id="more columns"),
    ],
)
def test_flow_file_styles(text, tmp_path):
    (tmp_path / "flow.tntp").write_text(text, encoding="utf-8")
    flows = read_flows(tmp_path / "flow.tntp")
    assert list(flows.itertuples(index=False, name=None)) == ROWS
    assert flows.dtypes.astype(str).to_dict() == {
        "from": "int64",
        "to": "int64",
        "volume": "float64",
        "cost": "float64",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("From To Volume Cost\n", "it holds no flow"),
        (
            "From To Volume\n1 2 3\n",
            "line 1: the header must name from, to, volume and cost once each; missing or repeated: cost",
        ),
        ("1 2 3\n", "line 1: a flow must have the fields from, to, volume and cost"),
        ("1,2,3,4\n", "line 1: the header must name"),
        ("From To Volume Cost\n1 2 -3 4\n", "line 2: volume must be a finite number, 0 or more, got '-3'"),
        ("From To Volume Cost\n1 2.5 3 4\n", "line 2: to must be a whole number, 0 or more, got '2.5'"),
        ("From To Volume Cost\n1 2 3 nan\n", "line 2: cost must be a finite number"),
        ("<NUMBER OF LINKS> 5\n1 2 3 4\n", "line 2: must have the form <NAME> value"),
    ],
)
def test_invalid_flow_files_are_refused(text, message, tmp_path):
    (tmp_path / "flow.tntp").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_flows(tmp_path / "flow.tntp")
    assert f"flow.tntp: {message}" in str(caught.value)
