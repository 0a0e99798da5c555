"""Files that are no FMU, or that could do harm: each is refused, with a message that says why."""

from __future__ import annotations

import io
import os
import stat
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest

import archimedes as arc
from archimedes.interchange.fmi import fmu_archive
from tests.interchange.fmi import plant_fmu
from tests.interchange.fmi.plant_fmu import description, write_archive


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "hostile.fmu"


def refused(path: Path, message: str, error: type[Exception] = ValueError, trust: bool = True):
    """Import a file that must be refused, and see that nothing was unpacked anywhere."""
    before = set(Path(tempfile.gettempdir()).glob("archimedes-fmu-*"))
    with pytest.raises(error, match=message):
        arc.import_fmu(path, trust=trust)
    assert set(Path(tempfile.gettempdir()).glob("archimedes-fmu-*")) <= before


def archive_with(path: Path, *entries: zipfile.ZipInfo | str, content: bytes = b"x") -> Path:
    """Write an archive with a description and further entries, whatever they are called."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", description())
        for entry in entries:
            archive.writestr(entry, content)
    return path


# ---- archives ----------------------------------------------------------------------------------


def test_a_text_file(path):
    path.write_text("this is no archive", encoding="utf-8")
    refused(path, r"hostile.fmu: not a zip archive, so no FMU")


def test_an_empty_archive(path):
    refused(write_archive(path, {}), r"there is no modelDescription.xml in it: not an FMU")


def test_a_folder(tmp_path):
    refused(tmp_path, "is not a file: give the path of an .fmu file")


@pytest.mark.parametrize("name", ["../evil.so", "resources/../../evil", "a/.."])
def test_names_that_leave_the_folder(path, name):
    refused(archive_with(path, name), r"leads out of its folder")


@pytest.mark.parametrize("name", ["/etc/evil", "C:/evil", "\\\\server\\evil", "c:evil"])
def test_absolute_names(path, name):
    refused(archive_with(path, name), r"is an absolute name: it would be written outside")


def test_a_backslash(path):
    refused(archive_with(path, "resources\\evil"), "has a backslash")


@pytest.mark.parametrize("name", ["a//b", "./a", "evil. ", "resources/evil."])
def test_names_that_systems_read_differently(path, name):
    refused(archive_with(path, name), "means different files on different systems")


def test_control_characters(path):
    refused(archive_with(path, "evil\x01name"), "has characters that no file should have")


def test_a_name_cut_by_a_nul(path):
    archive_with(path, "resources/evilXname")
    path.write_bytes(path.read_bytes().replace(b"evilXname", b"evil\0name"))
    refused(path, "has characters that no file should have")


def test_a_name_that_is_no_text(path):
    archive_with(path, "resources/\N{GREEK SMALL LETTER PI}")
    path.write_bytes(path.read_bytes().replace("\N{GREEK SMALL LETTER PI}".encode(), b"\xff\xff"))
    refused(path, "it has names that are no text")


def test_a_very_long_name(path):
    refused(archive_with(path, "a/" * 2000 + "b"), "a name of 4001 characters; at most 1000")


@pytest.mark.parametrize(("kind", "what"), [(stat.S_IFLNK, "a link"), (stat.S_IFIFO, "neither")])
def test_links_and_pipes(path, kind, what):
    entry = zipfile.ZipInfo("resources/passwords")
    entry.create_system, entry.external_attr = 3, (kind | 0o777) << 16
    refused(archive_with(path, entry, content=b"/etc/passwd"), f"is {what}")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice(path):
    refused(archive_with(path, "modelDescription.xml"), "'modelDescription.xml' is there twice")


def test_a_name_twice_but_for_case(path):
    refused(archive_with(path, "modeldescription.XML"), "is there twice, also as")


def test_a_file_that_is_a_folder(path):
    refused(archive_with(path, "resources", "resources/a"), "is a file and the folder of")


def test_a_zip_bomb(path):
    archive_with(path, "resources/zeros", content=bytes(20_000_000))
    refused(path, r"grows from \d+ to 20000000 bytes, more than 250 times \(a zip bomb\?\)")


def test_a_bomb_of_many_files(path, monkeypatch):
    monkeypatch.setattr(fmu_archive, "MOST_UNPACKED", 100_000)
    archive_with(path, *(f"resources/{k}" for k in range(30)), content=os.urandom(5000))
    refused(path, "unpacked it would have .* bytes; at most 100000")


def test_too_many_entries(path, monkeypatch):
    monkeypatch.setattr(fmu_archive, "MOST_ENTRIES", 10)
    refused(archive_with(path, *map(str, range(20))), "21 entries are too many; at most 10")


def test_entries_over_each_other(path):
    """As in Fifield's zip bomb: many entries of the table of contents share the same bytes."""
    archive_with(path, "resources/aaaa", "resources/bbbb", content=os.urandom(1000))
    data = bytearray(path.read_bytes())
    first, second = (data.index(b"PK\x03\x04", k) for k in (1, data.index(b"resources/bbbb") - 31))
    at = data.rindex(b"resources/bbbb") - 46
    data[at + 42 : at + 46] = struct.pack("<I", first)
    assert first < second
    path.write_bytes(data)
    refused(path, "lies over another entry")


def test_a_table_that_lies_about_sizes(path):
    """The table says 10 bytes where 1000 are packed: only 10 are read, and the checksum fails."""
    archive_with(path, content=b"")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("resources/more", os.urandom(1000))
    data = bytearray(path.read_bytes())
    at = data.rindex(b"resources/more") - 46
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is damaged: Bad CRC-32"):
        fmu_archive.FmuArchive(path).read("resources/more")


def test_a_table_with_another_name_than_the_entry(path):
    archive_with(path, "resources/aaaa")
    data = path.read_bytes()
    at = data.rindex(b"resources/aaaa")
    path.write_bytes(data[:at] + b"resources/bbbb" + data[at + 14 :])
    with pytest.raises(ValueError, match="is damaged: File name in directory"):
        fmu_archive.FmuArchive(path).read("resources/bbbb")


def test_a_truncated_archive(path, plant):
    path.write_bytes(plant.read_bytes()[:5000])
    refused(path, "not a zip archive")


def test_encryption(path):
    archive_with(path, "resources/secret")
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.rindex(mark) + offset] |= 1
    path.write_bytes(data)
    refused(path, "'resources/secret' is encrypted")


def test_an_unusual_method(path):
    entry = zipfile.ZipInfo("resources/packed")
    entry.compress_type = zipfile.ZIP_LZMA
    refused(archive_with(path, entry), "is packed by method 14; the standard allows stored")


def test_an_archive_in_an_archive_is_only_a_file(path, plant, libraries):
    """What an FMU holds is never opened: a bomb in its resources stays packed."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../evil", bytes(10_000_000))
    entries = plant_fmu.plant_entries("2.0", libraries["2.0"])
    write_archive(path, {**entries, "resources/inner.zip": inner.getvalue()})
    fmu = arc.import_fmu(path, trust=True)
    names = [p.name for p in fmu._binary.folder.rglob("*") if p.is_file()]
    assert sorted(names) == ["inner.zip", next(n for n in names if n.startswith("plant"))]


# ---- descriptions ------------------------------------------------------------------------------

BOMB = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<fmiModelDescription fmiVersion="2.0" modelName="&b;" guid="1"/>"""
EXTERNAL = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<fmiModelDescription fmiVersion="2.0" modelName="&a;" guid="1"/>"""


@pytest.mark.parametrize("text", [BOMB, EXTERNAL])
def test_entities(path, text):
    refused(write_archive(path, {"modelDescription.xml": text}), "the DOCTYPE has declarations")


def test_deep_elements(path):
    text = "<a>" * 200 + "</a>" * 200
    refused(write_archive(path, {"modelDescription.xml": text}), "more than 100 elements inside")


def test_xml_that_is_cut_off(path):
    text = description()[:2000]
    refused(write_archive(path, {"modelDescription.xml": text}), "not well-formed XML")


def test_another_root(path):
    text = "<html/>"
    refused(write_archive(path, {"modelDescription.xml": text}), "the root is <html>, expected")


#: What is changed in the description of the plant, and what is said about it.
FAULTS_2 = [
    ('fmiVersion="2.0"', 'fmiVersion="1.0"', r"fmiVersion is '1.0': FMI 2.0 and 3.0 can be read"),
    ('fmiVersion="2.0"', 'fmiVersion="9"', r"fmiVersion is '9'"),
    ('guid="{plant-1}"', 'guid=""', "guid is empty"),
    ('guid="{plant-1}"', "", "has no attribute guid"),
    ('modelIdentifier="plant"', 'modelIdentifier="../../evil"', "it must be a name of C"),
    ('start="9.81"', 'start="nan"', r"start value of g is 'nan', which is not a finite number"),
    ('start="9.81"', 'start="INF"', r"start value of g is 'INF', which is not a finite number"),
    ('start="9.81"', 'start="1e999"', "start value of g is '1e999', which is not a finite"),
    ('start="9.81"', 'start="1 2"', "g: 2 start values for 1 numbers"),
    ('start="9.81"', 'start=""', "0 start values for 1 numbers"),
    ('min="0.01"', 'min="nan"', "min is 'nan'"),
    ('min="0" max="1"', 'min="2" max="1"', "e: min 2.0 lies above max 1.0"),
    ('name="angle"', 'name="rate"', "a second variable is called 'rate'"),
    ('name="angle"', 'name=""', "name '' is empty"),
    (
        'valueReference="0"',
        'valueReference="-1"',
        "valueReference is '-1', expected a whole number",
    ),
    ('valueReference="0"', 'valueReference="4294967296"', "valueReference is '4294967296'"),
    ('derivative="1"', 'derivative="99"', "derivative is '99', expected a whole number from 1 to"),
    ('derivative="1"', 'derivative="3"', "two derivatives of the same state"),
    ('<Unknown index="5"/>', '<Unknown index="0"/>', "index is '0'"),
    ('<Unknown index="5"/>', '<Unknown index="6"/>', "a variable is listed twice"),
    ('<Unknown index="5"/>', '<Unknown index="1"/>', "does not say of what"),
    ('Indicators="1"', 'Indicators="99999999999"', "numberOfEventIndicators is '99999999999'"),
    ('causality="input"', 'causality="evil"', "causality is 'evil', expected one of"),
    ('stopTime="2"', 'stopTime="-1"', "stopTime -1.0 lies before startTime"),
    ('stepSize="0.01"', 'stepSize="0"', "stepSize is 0.0, which must be positive"),
    ('stepSize="0.01"', 'stepSize="nan"', "stepSize is 'nan'"),
    ('<Boolean start="false"/>', '<Boolean start="maybe"/>', "expected true or false"),
    ('<Boolean start="false"/>', "", "a variable needs one of <Real>, <Integer>"),
    ('<File name="plant.c"/>', '<File name="../evil.c"/>', "'../evil.c' is not inside the FMU"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS_2)
def test_descriptions_that_contradict_themselves(path, old, new, message):
    assert old in description()
    text = description().replace(old, new)
    refused(write_archive(path, {"modelDescription.xml": text}), message, trust=False)


FAULTS_3 = [
    ('valueReference="0" causality', 'valueReference="1" causality', "has the valueReference 1"),
    ('start="1 2 3"', 'start="1 2"', "gain: 2 start values for 3 numbers"),
    ('start="1 2 3"', 'start="1 2 nan"', "start value of gain is 'nan'"),
    ('<Dimension start="3"/>', '<Dimension start="99999999999"/>', "start is '99999999999'"),
    ('<Dimension start="3"/>', '<Dimension start="9999999"/><Dimension start="99"/>', "more than"),
    ('<Dimension start="3"/>', '<Dimension valueReference="7"/>', "no structural parameter has"),
    ('<Output valueReference="0"/>', '<Output valueReference="777"/>', "no variable has the value"),
    ('<EventIndicator valueReference="60"/>', '<EventIndicator valueReference="61"/>', "no variab"),
    ('instantiationToken="{plant-1}"', "", "has no attribute instantiationToken"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS_3)
def test_descriptions_of_3_that_contradict_themselves(path, old, new, message):
    assert old in description("3.0")
    text = description("3.0").replace(old, new)
    refused(write_archive(path, {"modelDescription.xml": text}), message, trust=False)


# ---- binaries ----------------------------------------------------------------------------------


def test_nothing_runs_without_trust(plant):
    fmu = arc.import_fmu(plant)
    assert fmu.variables["g"].start == 9.81
    for run in (lambda: fmu.simulate((0.0, 1.0)), lambda: fmu.x0, lambda: fmu.dynamics(0.0, [0.0])):
        with pytest.raises(
            arc.interchange.FmuError, match=r"nothing of an FMU runs unless you say"
        ):
            run()


def test_a_binary_for_another_platform(path, libraries):
    entries = plant_fmu.plant_entries("2.0", libraries["2.0"])
    binary = entries.popitem()[1]
    write_archive(path, {**entries, "binaries/amiga/plant.so": binary})
    refused(
        path,
        r"no binary for this platform .* and no sources; it has binaries for: amiga",
        arc.interchange.FmuError,
    )


def test_a_binary_that_is_none(path, libraries):
    entries = plant_fmu.plant_entries("2.0", libraries["2.0"])
    name = list(entries)[-1]
    write_archive(path, {**entries, name: b"MZ this is for another system"})
    refused(path, r"the binary plant\.\w+ cannot be loaded here", arc.interchange.FmuError)


def test_no_binary_at_all(path):
    refused(
        write_archive(path, {"modelDescription.xml": description()}),
        "it has binaries for: none",
        arc.interchange.FmuError,
    )


def test_a_binary_of_another_model(path, libraries):
    text = description().replace("{plant-1}", "{plant-2}")
    write_archive(path, plant_fmu.plant_entries("2.0", libraries["2.0"], text))
    fmu = arc.import_fmu(path, trust=True)
    message = (
        r"refused to make an instance.*the token is not mine.*\(is the file's token '{plant-2}'"
    )
    with pytest.raises(arc.interchange.FmuError, match=message):
        fmu.simulate((0.0, 1.0))


def test_a_binary_without_functions(path, libraries):
    """The binary of FMI 3.0 has none of the functions of FMI 2.0."""
    write_archive(path, plant_fmu.plant_entries("2.0", libraries["3.0"]))
    fmu = arc.import_fmu(path, trust=True)
    with pytest.raises(arc.interchange.FmuError, match="has no function fmi2Instantiate"):
        fmu.simulate((0.0, 1.0))


# ---- sources -----------------------------------------------------------------------------------


def test_sources_that_are_not_there(path):
    write_archive(path, {"modelDescription.xml": description(), "sources/other.c": "int x;"})
    refused(path, "source file sources/plant.c is missing", arc.interchange.FmuError)


def test_sources_that_do_not_compile(path):
    write_archive(path, {"modelDescription.xml": description(), "sources/plant.c": "int x = ;"})
    refused(path, "its sources do not compile here", arc.interchange.FmuError)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="FMI" value="3"', 'name="X -fplugin=evil.so"', "expected a name of C"),
        ('<SourceFile name="plant.c"/>', '<SourceFile name="/etc/evil.c"/>', "not inside the FMU"),
        ('language="C99"', 'language="Rust"', "are not compiled here, only C"),
        (
            '<BuildConfiguration modelIdentifier="plant">',
            '<BuildConfiguration modelIdentifier="a"/><BuildConfiguration modelIdentifier="b">',
            "no BuildConfiguration for plant",
        ),
    ],
)
def test_builds_that_ask_for_more(path, old, new, message):
    assert old in plant_fmu.BUILD
    build = plant_fmu.BUILD.replace(old, new)
    entries = {"modelDescription.xml": description("3.0"), "sources/plant.c": "int x;"}
    write_archive(path, {**entries, "sources/buildDescription.xml": build})
    refused(path, message)


def test_a_source_that_looks_like_an_option(path):
    """A name that begins with "-" is given to the compiler as a path."""
    text = description().replace('<File name="plant.c"/>', '<File name="-oevil.c"/>')
    source = (Path(plant_fmu.HERE) / "plant.c").read_text(encoding="utf-8")
    source = "#define FMI 2\n" + source
    write_archive(path, {"modelDescription.xml": text, "sources/-oevil.c": source})
    fmu = arc.import_fmu(path, trust=True, kind="cs")
    assert fmu.simulate((0.0, 0.1)).success
