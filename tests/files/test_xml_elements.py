"""XML is read element by element with line numbers; entities are not expanded, and every fault is an InputError."""

import gzip
from xml.etree import ElementTree as ET

import pytest

from simulator.files.errors import InputError
from simulator.files.xml_elements import MOST_DEPTH, Element, elements_of, root_of

WHOLE = '<?xml version="1.0"?>\n<a x="1">\n  <n:b y="2 &amp; 3"/>text<!-- none -->\n  <c><b/></c>\n</a>\n'


@pytest.fixture
def file(tmp_path):
    return tmp_path / "t.xml"


def read(path):
    return list(elements_of(path))


def fault_of(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        read(path)
    (fault,) = caught.value.faults
    assert fault.startswith(f"{path}: ")
    return fault.removeprefix(f"{path}: ")


@pytest.mark.parametrize("packed", [False, True])
def test_elements_have_begin_end_and_line(file, packed):
    file.write_bytes(gzip.compress(WHOLE.encode()) if packed else WHOLE.encode())
    found = read(file)
    assert found == [
        Element("a", {"x": "1"}, 2),
        Element("n:b", {"y": "2 & 3"}, 3),
        Element("n:b", None, 3),
        Element("c", {}, 4),
        Element("b", {}, 4),
        Element("b", None, 4),
        Element("c", None, 4),
        Element("a", None, 5),
    ]
    assert [element.local_name for element in found[:3]] == ["a", "b", "b"]
    assert [element.ends for element in found[:3]] == [False, False, True]
    assert root_of(file) == "a"


def test_long_file_is_read_like_the_standard_library_reads_it(file):
    file.write_text("<r>\n" + "".join(f'<e i="{i}"><f/></e>\n' for i in range(20_000)) + "</r>")
    found = [(e.name, dict(e.attributes)) for e in elements_of(file) if e.attributes is not None]
    assert found == [(e.tag, e.attrib) for e in ET.parse(file).iter()]  # noqa: S314 - made above


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        (gzip.compress(b"", mtime=0), "it is empty"),
        (" \n", "line 2: not well-formed XML: no element found"),
        ("once upon", "line 1: not well-formed XML: "),
        (WHOLE[:-7], "line 4: not well-formed XML: unclosed token"),
        (WHOLE + "<a/>", "line 6: not well-formed XML: junk after document element"),
        (f"{'<d>' * (MOST_DEPTH + 1)}", "line 1: elements must be nested in at most 256 others"),
        ('\n<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>', "line 2: must not declare a document type or entities"),
        ('<!DOCTYPE a SYSTEM "file:///etc/hostname"><a/>', "line 1: must not declare a document type or entities"),
        ("<a>&b;</a>", "line 1: not well-formed XML: undefined entity"),
        ('<?xml version="1.0" encoding="none"?><a/>', "line 1: its declared encoding cannot be read: unknown encoding"),
        ('<?xml version="1.0" encoding="utf-8"?><a b="\xe9"/>'.encode("latin-1"), "line 1: not well-formed XML"),
    ],
)
def test_invalid_xml_is_refused(file, content, message):
    assert message in fault_of(file, content)


@pytest.mark.parametrize("declared", ["", ' [<!ENTITY b "bb">]', " [<!ELEMENT a ANY>]"])
def test_document_type_may_be_named_where_allowed(file, declared):
    file.write_text(f'<!DOCTYPE a SYSTEM "http://example.org/a.dtd"{declared}><a b="1"/>')
    if declared:
        with pytest.raises(InputError, match="must not declare a document type or entities"):
            list(elements_of(file, doctype=True))
    else:
        assert [element.attributes for element in elements_of(file, doctype=True, ends=False)] == [{"b": "1"}]


def test_tag_length_is_limited(file, monkeypatch):
    monkeypatch.setattr("simulator.files.xml_elements.LONGEST_BYTES", 1 << 21)
    file.write_bytes(b'<a x="' + b"y" * (1 << 21) + b'"/>')
    assert len(read(file)) == 2
    for content in (b'<a x="' + b"y" * (1 << 23), b"<a>" + b" " * (1 << 23), b"<a><!--" + b"x" * (1 << 23)):
        assert fault_of(file, content) == "line 1: must have a tag in every 2,097,152 bytes; is this XML?"


def test_decompression_bomb_is_refused_by_the_memory_it_needs(file, monkeypatch):
    for module in ("resources", "compressed_io"):
        monkeypatch.setattr(f"simulator.files.{module}.NEGLIGIBLE", 1)
        monkeypatch.setattr(f"simulator.files.{module}.available_nbytes", lambda: 1 << 20)
    assert "memory needed to hold the" in fault_of(file, gzip.compress(b"<a>" + b"<b/>" * (1 << 22) + b"</a>"))


def test_elements_before_a_fault_are_returned_first(file):
    file.write_text("<a>\n<b/>\n<")
    elements = elements_of(file)
    assert [next(elements).name for _ in range(3)] == ["a", "b", "b"]
    with pytest.raises(InputError, match="line 3: not well-formed XML"):
        next(elements)
    assert root_of(file) == "a"
    file.write_text("no XML")
    assert root_of(file) is None
    assert root_of(file.parent / "none.xml") is None
