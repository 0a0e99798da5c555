"""DAVE-ML files and calls that are refused: each says where and why, and nothing is fetched."""

from __future__ import annotations

import re
import socket

import numpy as np
import pytest

from archimedes import xml_elements
from archimedes.vehicles import dave_ml

from . import dave_ml_files as F

X = F.variable("x", marks="Input")
Z = F.variable("z")
GRID = F.breakpoints("A", [0.0, 1.0, 2.0])
VALUES = F.gridded(["A"], [1.0, 2.0, 3.0])


def made(expression):
    return [X, F.variable("z", expression)]


def looked_up(attributes="", table=VALUES, output="z", extra="", grid=GRID):
    return [X, Z, grid, extra, F.function(output, [("x", attributes)], table)]


def shots(inputs, outputs):
    case = F.shot("s", inputs, outputs)
    return [*made(("abs", "x")), f"<checkData>{case}</checkData>"]


def points(*rows):
    inside = "".join(f"<dataPoint>{row}</dataPoint>" for row in rows)
    return f'<ungriddedTableDef utID="U">{inside}</ungriddedTableDef>'


def scattered(*rows, more=""):
    inputs = [("x", more), ("y", more)]
    table = F.function("z", inputs, '<ungriddedTableRef utID="U"/>')
    return [X, F.variable("y", marks="Input"), Z, points(*rows), table]


FILES = {
    "no variables": ([], "the model defines no variable"),
    "no varID": (["<variableDef name='a'/>"], "<variableDef> has no attribute varID"),
    "empty varID": ([F.variable("")], "varID is empty"),
    "twice": ([X, X], "varID 'x' is defined twice"),
    "unknown element": ([X, "<dynamics/>"], "<dynamics> in <DAVEfunc> is not known"),
    "unknown inside": ([F.variable("x", inside="<array/>")], "<array> in <variableDef>"),
    "two calculations": (
        [F.variable("x", ("abs", 1.0), inside="<calculation/>")],
        "a second <calculation> in <variableDef>",
    ),
    "bad number": (
        [F.variable("x", initialValue="1_000")],
        "of <variableDef> is '1_000'",
    ),
    "not finite": ([F.variable("x", initialValue="inf")], "'inf', which is not a finite number"),
    "limits": ([F.variable("x", minValue="3", maxValue="2")], "minValue 3.0 is above maxValue 2.0"),
    "computed input": ([F.variable("x", 1.0, "Input")], "is an input and has a calculation"),
    # MathML
    "no math": ([F.variable("x", inside="<calculation/>")], "<calculation> has no <math>"),
    "empty math": (made(""), "<ci> is empty"),
    "no expression": (
        [F.variable("z", inside="<calculation><math/></calculation>")],
        "must be a <math> with one expression",
    ),
    "presentation": (made("<mrow/>"), "MathML <mrow> is not one of"),
    "operation": (made(("factorial", "x")), "MathML operation 'factorial' is not one of"),
    "symbol": (made(("<csymbol>hypot</csymbol>", "x")), "MathML operation 'hypot'"),
    "empty apply": (made("<apply/>"), "<apply> is empty"),
    "two in an apply": (
        made("<apply><ci>x</ci><cn>1</cn></apply>"),
        "<apply> around <ci> holds it alone, got <cn> too",
    ),
    "too few": (made(("divide", "x")), "divide takes 2 arguments, got 1"),
    "too many": (made(("minus", "x", "x", "x")), "minus takes 1 to 2 arguments, got 3"),
    "no number": (made("<cn>two</cn>"), "<cn> is 'two', which is not a finite number"),
    "base": (made("<cn base='16'>ff</cn>"), "other bases than 10 are not read"),
    "type": (made("<cn type='complex-polar'>1</cn>"), "<cn> of type 'complex-polar'"),
    "rational": (made("<cn type='rational'>1<sep/>0</cn>"), "a denominator of zero"),
    "empty piecewise": (made("<piecewise/>"), "<piecewise> has no <piece>"),
    "half a piece": (
        made("<piecewise><piece><cn>1</cn></piece></piecewise>"),
        "got <piece> with 1 elements",
    ),
    "empty semantics": (made("<semantics/>"), "<semantics> is empty"),
    "undefined": (made(("abs", "v")), "'z' reads 'v', which no variableDef defines"),
    "itself": (made(("plus", "z", 1.0)), "variables depend on themselves: z <- z"),
    "circle": (
        [
            F.variable("a", ("abs", "b")),
            F.variable("b", ("abs", "c")),
            F.variable("c", ("abs", "a")),
        ],
        "variables depend on themselves: a <- b <- c <- a",
    ),
    # tables
    "no points": ([X, "<breakpointDef bpID='A'/>"], "<breakpointDef> has no <bpVals>"),
    "empty points": ([X, F.breakpoints("A", [])], "breakpoints 'A' holds no numbers"),
    "points twice": ([X, GRID, GRID], "bpID 'A' is defined twice"),
    "falling": ([X, F.breakpoints("A", [0, 2, 1])], "breakpoints 'A' must increase strictly"),
    "no gtID": ([X, GRID, VALUES], "<griddedTableDef> has no attribute gtID or utID"),
    "word": (
        looked_up(table=VALUES.replace("2.0", "2.0D0")),
        "table '': entry 2 is '2.0D0', which is not a finite number",
    ),
    "size": (looked_up(table=F.gridded(["A"], [1.0])), "1 values for 3 breakpoints"),
    "axes": (
        looked_up(table=F.gridded(["A", "A"], np.ones(9))),
        "has 1 variables, its table 2 axes",
    ),
    "no such points": (looked_up(table=F.gridded(["B"], [1.0])), "breakpoints 'B' are not defined"),
    "no such table": (looked_up(table="<griddedTableRef gtID='G'/>"), "table 'G' is not defined"),
    "no table": (looked_up(table=""), "<functionDefn> must hold one table"),
    "no such output": (looked_up(output="w"), "makes 'w', which no variableDef defines"),
    "input made": (looked_up(output="x"), "'x' is an input and made by function 'x table'"),
    "made twice": (
        [*looked_up(), F.function("z", [("x", "")], VALUES)],
        "variable 'z' is computed twice: also by function 'z table'",
    ),
    "rule": (looked_up('extrapolate="all"'), "extrapolate='all' is not one of neither, min, max"),
    "spline": (
        looked_up('interpolate="quadraticSpline"'),
        "interpolate='quadraticSpline' is not one of linear, discrete, floor, ceiling, cubicSpline",
    ),
    "short spline": (looked_up('interpolate="cubicSpline"'), "needs at least 4 points"),
    "two methods": (
        [
            *(X, F.variable("y", marks="Input"), Z, GRID),
            F.function(
                "z",
                [("x", 'interpolate="cubicSpline"'), ("y", "")],
                F.gridded(["A", "A"], np.ones(9)),
            ),
        ],
        "is linear in one variable and cubic in another",
    ),
    "range": (looked_up('min="2" max="1"'), "min 2.0 is above max 1.0"),
    "scattered": (
        looked_up(table='<ungriddedTableRef utID="U"/>', extra=points("0 0 1", "1 1 2", "2 0 3")),
        "has 1 variables, its table 2 axes",
    ),
    "point twice": (
        looked_up(table='<ungriddedTableRef utID="U"/>', extra=points("0 1", "0 2")),
        "ungridded table 'U': a point is given twice",
    ),
    "ragged": (
        looked_up(table='<ungriddedTableRef utID="U"/>', extra=points("0 1", "0 2 3")),
        "table 'U' needs <dataPoint>s of coordinates and one value each",
    ),
    "many variables": (
        [
            *(X, Z, F.breakpoints("A", [0.0, 1.0])),
            F.function("z", [("x", "")] * 13, F.gridded(["A"] * 13, np.zeros(2**13))),
        ],
        "a value needs 8192 points of its table; at most 4096",
    ),
    "a line": (scattered("0 0 1", "1 1 2", "2 2 3"), "its points do not span the space"),
    "steps between scattered points": (
        scattered("0 0 1", "1 1 2", "2 0 3", more='interpolate="floor"'),
        "scattered points are interpolated linearly",
    ),
    # check data
    "no tol": (shots([F.signal("x", 1.0)], [F.signal("z", 1.0)]), "<signal> has no <tol>"),
    "no signal name": (
        shots(["<signal><signalValue>1</signalValue></signal>"], []),
        "<signal> has neither <signalName> nor <varID>",
    ),
    "no value": (shots(["<signal><varID>x</varID></signal>"], []), "has no <signalValue>"),
    "negative tol": (
        shots([F.signal("x", 1.0)], [F.signal("z", 1.0, -1)]),
        "tol of 'z' is negative",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_wrong_are_refused_with_file_and_line(case, tmp_path):
    parts, message = FILES[case]
    path = tmp_path / "model.dml"
    path.write_text(F.document(*parts))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        dave_ml.read(path)
    assert re.match(r"model\.dml:\d+: ", str(caught.value))


def test_lines_are_those_of_the_file(tmp_path):
    path = tmp_path / "model.dml"
    path.write_text(F.document(X, "", F.variable("z", ("abs", "v"))))
    line = path.read_text().splitlines().index(F.variable("z", ("abs", "v"))) + 1
    with pytest.raises(ValueError, match=rf"model\.dml:{line}: "):
        dave_ml.read(path)


# --- hostile files ----------------------------------------------------------------------------

BODY = "<DAVEfunc><variableDef varID='x' name='x' units='nd'>{}</variableDef></DAVEfunc>"
LAUGHS = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10))
HOSTILE = {
    "billion laughs": (
        f"<!DOCTYPE DAVEfunc [<!ENTITY a0 'ha'>{LAUGHS}]>" + BODY.format("&a9;"),
        "the DOCTYPE has declarations of its own",
    ),
    "file": (
        "<!DOCTYPE DAVEfunc [<!ENTITY f SYSTEM 'file:///etc/passwd'>]>" + BODY.format("&f;"),
        "the DOCTYPE has declarations of its own",
    ),
    "parameter entity": (
        "<!DOCTYPE DAVEfunc [<!ENTITY % p SYSTEM 'http://127.0.0.1/p.dtd'> %p;]>" + BODY.format(""),
        "the DOCTYPE has declarations of its own",
    ),
    "attribute list": (
        "<!DOCTYPE DAVEfunc [<!ATTLIST variableDef minValue CDATA '5'>]>" + BODY.format(""),
        "the DOCTYPE has declarations of its own",
    ),
    "entity of the DTD": (
        "<!DOCTYPE DAVEfunc SYSTEM 'http://127.0.0.1/DAVEfunc.dtd'>" + BODY.format("&alpha;"),
        "entity &alpha; is not defined here",
    ),
    "entity of nothing": (BODY.format("&alpha;"), "not well-formed XML: undefined entity"),
    "XInclude": (
        BODY.format(
            "<i:include xmlns:i='http://www.w3.org/2001/XInclude' href='file:///etc/hosts'/>"
        ),
        "XInclude is not followed",
    ),
    "deep": ("<DAVEfunc>" + "<a>" * 100_000, "more than 100 elements inside each other"),
    "deep math": (
        BODY.format("<calculation><math>" + "<apply><abs/>" * 5000),
        "more than 100 elements inside each other",
    ),
    "half": ("<DAVEfunc><variableDef", "not well-formed XML"),
    "nothing": ("", "not well-formed XML: no element found"),
    "another root": ("<html/>", "a DAVE-ML model starts with <DAVEfunc>, this file with <html>"),
    "another namespace": ("<DAVEfunc xmlns='urn:x'/>", "this file with <{urn:x}DAVEfunc>"),
    "unbound prefix": ("<m:DAVEfunc/>", "not well-formed XML: unbound prefix"),
    "zero bytes": ("<DAVEfunc>\0</DAVEfunc>", "not well-formed XML"),
    "unknown encoding": ("<?xml version='1.0' encoding='klingon'?><DAVEfunc/>", "unknown encoding"),
    "huge number": (
        "<DAVEfunc><variableDef varID='x' initialValue='" + "9" * 100_000 + "'/></DAVEfunc>",
        "which is not a finite number",
    ),
}


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused(case, tmp_path, no_network):
    text, message = HOSTILE[case]
    path = tmp_path / "model.dml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        dave_ml.read(path)
    assert len(str(caught.value)) < 500


def test_a_dtd_that_is_only_named_is_not_fetched(tmp_path, no_network):
    path = tmp_path / "model.dml"
    path.write_text(F.document(*made(("abs", "x"))))
    assert dave_ml.read(path)(x=-1.0) == {"z": 1.0}


def test_many_elements_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "model.dml"
    path.write_text("<DAVEfunc>" + "<a/>" * 2000)
    monkeypatch.setattr(xml_elements, "MOST", 1000)
    with pytest.raises(ValueError, match=r"model\.dml:1: more than 1000 elements"):
        dave_ml.read(path)


def test_large_files_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "model.dml"
    path.write_text(F.document(*made(("abs", "x"))))
    monkeypatch.setattr(xml_elements, "LARGEST", 100)
    with pytest.raises(ValueError, match="are too much for a model; at most 100"):
        dave_ml.read(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError):
        dave_ml.read(tmp_path / "none.dml")
    with pytest.raises(ValueError, match="is not a file"):
        dave_ml.read(tmp_path)


def test_damaged_files_are_read_or_refused(tmp_path):
    """Tags and texts lost, doubled, exchanged, misspelt: a model, or an error with the file."""
    rng = np.random.default_rng(7)
    shot = F.shot("s", [F.signal("x", 1.0)], [F.signal("z", 1.0, 1e-9)])
    pieces = {"if": [(("divide", "w", "x"), ("gt", "x", 0.5))], "else": 2.0}
    parts = [X, F.variable("w"), F.variable("z", pieces, "Output", minValue="-9"), GRID]
    text = F.document(
        *parts, F.function("w", [("x", "")], VALUES), f"<checkData>{shot}</checkData>"
    )
    words = re.findall(r"<[^>]*>|[^<]+", text)
    path = tmp_path / "model.dml"
    outcomes = set()
    for _ in range(300):
        now = list(words)
        k, j = rng.integers(len(now), size=2)
        how = rng.integers(4)
        if how == 0:
            del now[k]
        elif how == 1:
            now.insert(j, now[k])
        elif how == 2:
            now[k], now[j] = now[j], now[k]
        else:
            at = rng.integers(len(now[k]))
            now[k] = now[k][:at] + rng.choice(list("<>&'/ 0-e.x")) + now[k][at + 1 :]
        path.write_text("".join(now))
        try:
            got = dave_ml.read(path)
            outcomes.add("read")
            got(dict.fromkeys(got.inputs, 1.0))
            got.check()
        except ValueError as error:
            assert str(error).startswith("model.dml"), error
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


# --- calls ------------------------------------------------------------------------------------


@pytest.fixture
def lift(tmp_path):
    path = tmp_path / "model.dml"
    path.write_text(
        F.document(
            F.variable("alpha", name="angleOfAttack", units="deg", marks="Input"),
            F.variable("el", name="surface", units="rad", marks="Input"),
            F.variable("ail", name="surface", initialValue="0"),
            F.variable("lift", ("plus", "alpha", "el", "ail"), "Output"),
            "<checkData>",
            F.shot("half", [F.signal("alpha", 1.0)], [F.signal("lift", 1.0, 1e-9)]),
            "</checkData>",
        )
    )
    return dave_ml.read(path)


CALLS = {
    "text": ({"alpha": "5", "el": 0.0}, "input 'alpha' must be real numbers, got U1"),
    "complex": ({"alpha": 1j, "el": 0.0}, "input 'alpha' must be real numbers, got complex128"),
    "nothing": ({"alpha": None, "el": 0.0}, "input 'alpha' must be real numbers, got object"),
    "missing": ({"alpha": 1.0}, "the model needs values of its inputs el (rad)"),
    "unknown": (
        {"alhpa": 1.0},
        "no variable 'alhpa' (did you mean alpha?); its inputs are alpha, el",
    ),
    "computed": ({"lift": 1.0}, "'lift' is computed by the model and cannot be given"),
    "twice": ({"alpha": 1.0, "angleOfAttack": 1.0}, "input 'alpha' is given twice"),
    "two of a name": ({"surface": 1.0}, "the name 'surface' belongs to el, ail: give a varID"),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_are_wrong_say_what_to_give(case, lift):
    given, message = CALLS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        lift(given)
    with pytest.raises(ValueError, match=re.escape(message)):
        lift(**given)


def test_shots_that_leave_out_inputs_are_named(lift):
    with pytest.raises(ValueError, match=r"model\.dml:\d+: shot 'half': the model needs .* el"):
        lift.check()
