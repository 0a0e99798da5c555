"""Names of the modes of aircraft, against published models and what the books call their modes."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.control import StateSpace, modes
from archimedes.vehicles import F16, FlatEarth, FlightState, linearize, load, trim

FOOT = 0.3048
#: Stevens and Lewis, Aircraft Control and Simulation: the F-16 in level flight, 502 ft/s, sea
#: level, xcg = 0.35; examples 4.4-1 (V in ft/s, alpha, theta, q) and 5.3-1 (beta, phi, p, r).
F16_LONGITUDINAL = [
    [-1.9311e-2, 8.8157, -32.170, -0.57499],
    [-2.5389e-4, -1.0189, 0.0, 0.90506],
    [0.0, 0.0, 0.0, 1.0],
    [2.9465e-12, 0.82225, 0.0, -1.0774],
]
F16_LATERAL = [
    [-0.3220, 0.0640, 0.0364, -0.9917],
    [0.0, 0.0, 1.0, 0.0037],
    [-30.6492, 0.0, -3.6784, 0.6646],
    [8.5396, 0.0, -0.0254, -0.4764],
]
#: Etkin and Reid, Dynamics of Flight, 3rd edition: Boeing 747-100 at 40,000 ft and Mach 0.8,
#: equations 6.2,1 and 6.7,1 (ft, s, rad), with the eigenvalues that the book prints.
B747_LONGITUDINAL = [
    [-0.006868, 0.01395, 0.0, -32.2],
    [-0.09055, -0.3151, 773.98, 0.0],
    [0.0001187, -0.001026, -0.4285, 0.0],
    [0.0, 0.0, 1.0, 0.0],
]
B747_LATERAL = [
    [-0.0558, 0.0, -774.0, 32.2],
    [-0.003865, -0.4342, 0.4136, 0.0],
    [0.001086, -0.006112, -0.1458, 0.0],
    [0.0, 1.0, 0.0, 0.0],
]
#: Nelson, Flight Stability and Automatic Control: the Navion (beta, p, r, phi).
NAVION_LATERAL = [
    [-0.254, 0.0, -1.0, 0.182],
    [-16.02, -8.40, 2.19, 0.0],
    [4.488, -0.350, -0.760, 0.0],
    [0.0, 1.0, 0.0, 0.0],
]


def table(A, states):
    n = len(A)
    return modes(StateSpace(A, np.zeros((n, 1)), np.eye(n), np.zeros((n, 1)), states=states))


def named(A, states):
    return {mode.name: mode for mode in table(A, states)}


def steady(xcg=0.30, course=0.0, speed=502.0 * FOOT, world=None):
    plane = load("f16", xcg=xcg, world=world or FlatEarth())
    v_NED = speed * np.array([np.cos(course), np.sin(course), 0.0])
    level = FlightState(0.0, 0.0, 0.0, v_NED, np.array([0.0, 0.04, course]), np.zeros(3))
    found = trim(plane, level, F16.Input(0.15, -0.02))
    assert found.success
    return plane, found


@pytest.mark.parametrize(
    ("A", "states", "poles"),
    [
        (
            B747_LONGITUDINAL,
            "u w q theta",
            {"short period": -0.3719 + 0.8875j, "phugoid": -0.003289 + 0.06723j},
        ),
        (
            B747_LATERAL,
            "v p r phi",
            {"Dutch roll": -0.033011 + 0.94655j, "roll": -0.56248, "spiral": -0.0072973},
        ),
        (
            NAVION_LATERAL,
            "beta p r phi",
            {"Dutch roll": -0.487 + 2.335j, "roll": -8.435, "spiral": -0.00877},
        ),
    ],
    ids=["747 along", "747 aside", "Navion"],
)
def test_modes_in_print_have_the_names_of_the_books(A, states, poles):
    found = named(A, states.split())
    assert set(found) == set(poles)
    for name, pole in poles.items():
        assert abs(found[name].pole - pole) < 6e-3 * abs(pole) + 2e-4, name


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [2, 3, 1, 0]])
def test_names_do_not_depend_on_order_and_units_of_states(order):
    states, scale = np.array(["beta", "phi", "p", "r"]), np.diag([57.3, 1.0, 1e-3, 57.3])
    A = scale @ F16_LATERAL @ np.linalg.inv(scale)
    found = named(A[np.ix_(order, order)], states[order].tolist())
    assert set(found) == {"Dutch roll", "roll", "spiral"}


def test_modes_of_the_f16_are_those_in_print():
    """xcg = 0.35: relaxed stability, short period and phugoid mix into a third oscillation."""
    plane, found = steady(0.35)
    ours = {mode.name: mode.pole for mode in modes(linearize(plane, found))}
    aside = named(F16_LATERAL, ["beta", "phi", "p", "r"])
    along = named(F16_LONGITUDINAL, ["V", "alpha", "theta", "q"])
    assert set(along) == {"short period", "third oscillatory", "pitch divergence"}
    for name, within in {"Dutch roll": 2e-3, "roll": 3e-3, "short period": 3e-3}.items():
        book = {**aside, **along}[name].pole
        assert abs(ours[name] - book) < within * abs(book), name
    # The book leaves out how the air changes with altitude, which slow modes feel.
    assert ours["spiral"].real == pytest.approx(aside["spiral"].pole.real, abs=2.5e-3)
    assert ours["third oscillatory"] == pytest.approx(along["third oscillatory"].pole, abs=1e-2)
    assert ours["pitch divergence"] == pytest.approx(along["pitch divergence"].pole, abs=1e-2)


CLASSICAL = ["heading", "altitude", "spiral", "phugoid", "", "short period", "Dutch roll", "roll"]


@pytest.mark.parametrize("course", [0.0, 0.7, -2.0, np.pi / 2])
def test_f16_modes_are_named_whatever_the_course(course):
    """A stumble: at zero sideslip, to the bit, the lateral derivatives were missing."""
    plane, found = steady(course=course)
    of_north = modes(linearize(*steady()))
    here = modes(linearize(plane, found))
    assert [mode.name for mode in here] == CLASSICAL
    for mode in here:
        if mode.name not in ("heading", ""):
            assert mode.pole == pytest.approx(of_north[mode.name].pole, rel=1e-6), mode.name


def test_the_table_has_the_names():
    plane, found = steady()
    text = str(modes(linearize(plane, found)))
    lines = text.splitlines()
    assert lines[0].startswith("mode") and [line.split("  ")[0].strip() for line in lines[1:5]] == [
        *("heading", "altitude", "spiral", "phugoid")
    ]
    assert modes(linearize(plane, found))["Dutch roll"].damping == pytest.approx(0.135, abs=1e-3)
    with pytest.raises(KeyError, match=r"'dutch' is not one of .*'Dutch roll'"):
        modes(linearize(plane, found))["dutch"]


def test_the_plot_has_the_names():
    pytest.importorskip("matplotlib")
    figure = arc.plot(linearize(*steady()))
    texts = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert all(name in texts for name in ("short period", "Dutch roll", "roll", "phugoid"))


@pytest.mark.parametrize(
    ("A", "states"),
    [
        ([[0.0, 1.0], [-4.0, -0.4]], ["angle", "rate"]),
        ([[0.0, 1.0], [-4.0, -0.4]], ["q", "p"]),  # of mechanics
        ([[0.0, 1.0], [-4.0, -0.4]], ["p", "r"]),
    ],
)
def test_other_systems_have_no_names(A, states):
    assert {mode.name for mode in table(A, states)} == {""}
    assert str(table(A, states)).lstrip().startswith("pole")


def test_short_models():
    assert set(named([[-1.0, 1.0], [-4.0, -1.0]], ["alpha", "q"])) == {"short period"}
    two = table([[-1.01887, 0.90506], [0.82225, -1.07741]], ["alpha", "q"])
    assert [mode.name for mode in two] == ["short period", "short period"]
    assert set(named([[-0.3, -1.0], [8.5, -0.5]], ["beta", "r"])) == {""}
    # Roll and spiral may join.
    joined = [
        *([-0.2, 0.06, 0.0, -1.0], [0.0, 0.0, 1.0, 0.0]),
        *([-2.0, -0.5, -0.3, 0.1], [4.0, 0.0, 0.0, -0.4]),
    ]
    assert {"Dutch roll", "lateral phugoid"} == set(named(joined, ["beta", "phi", "p", "r"]))


# ---- stumbles ------------------------------------------------------------------------------------


def test_trim_without_rest_starts_from_the_state_of_the_vehicle():
    """A stumble: State.__init__() missing 'power'."""
    plane, found = steady()
    given = trim(plane, found.flight, F16.Input(0.15, -0.02), {"power": 10.0})
    assert found.input.throttle == pytest.approx(given.input.throttle, rel=1e-9)
    assert found.state.power == pytest.approx(given.state.power, rel=1e-9)


def test_a_vehicle_without_a_state_of_its_own_needs_rest():
    @arc.struct
    class Alike:
        mass: float = 1.0
        State = F16.State

    plane, found = steady()
    with pytest.raises(TypeError, match=r"trim: rest has no 'power', which F16.State.*in %"):
        trim(Alike(), found.flight, found.input)
    with pytest.raises(ValueError, match=r"trim: rest='powr' is not one of 'power'"):
        trim(plane, found.flight, found.input, {"powr": 1.0})


def test_linearize_takes_what_trim_returns():
    plane, found = steady()
    rest = {"power": found.state.power}
    whole = linearize(plane, found.flight, found.input, rest)
    np.testing.assert_array_equal(linearize(plane, found).A, whole.A)
    with pytest.raises(TypeError, match=r"linearize: rest has no 'power'.*trim returned"):
        linearize(plane, found.flight, found.input)
    with pytest.raises(TypeError, match="linearize: u is missing"):
        linearize(plane, found.flight)
