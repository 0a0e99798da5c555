"""Plots and views inside recorded code: there are no numbers yet to draw."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError
from archimedes.spatial import Quaternion, RigidBody
from archimedes.viewer import Arrow, Body, Chart, box
from tests.misuse.catalogue import entry

T = np.linspace(0.0, 1.0, 3)


def states(place):
    q = Quaternion(np.tile(np.array([1.0, 0.0, 0.0, 0.0]), (3, 1)))
    still = np.zeros((3, 3))
    return arc.Trajectory(T, RigidBody.State(place, q, still, still))


@entry("viewing", error=TraceError, says=["being recorded", "Return it"], line=False)
def a_body_whose_place_is_traced(run):
    def shown(place):
        Body("a", [box([1, 1, 1])], T, place, [1.0, 0.0, 0.0, 0.0])
        return place

    return run(shown)(np.zeros((3, 3)))


@entry("viewing", error=TraceError, says=["being recorded", "Return it"], line=False)
def a_chart_of_traced_numbers(run):
    def shown(values):
        Chart("c", T, values)
        return values

    return run(shown)(np.zeros(3))


@entry("viewing", error=TraceError, says=["being recorded", "Return it"], line=False)
def an_arrow_of_traced_numbers(run):
    def shown(values):
        Arrow("a", "body", T, values)
        return values

    return run(shown)(np.zeros((3, 3)))


@entry("viewing", error=TraceError, says=["being recorded", "Return it"], line=False)
def a_view_of_a_traced_trajectory(run):
    def shown(place):
        arc.view(RigidBody(), states(place))
        return place

    return run(shown)(np.zeros((3, 3)))


@entry("viewing", error=TraceError, says=["being recorded", "Return it"], line=False)
def a_plot_of_a_traced_trajectory(run):
    def shown(place):
        arc.plot(states(place), "pos")
        return place

    return run(shown)(np.zeros((3, 3)))
