"""Sine and cosine of float where doubles are software: integers with the same bits."""

from __future__ import annotations

import math
import re

import numpy as np

from archimedes.backends.c.helpers import library
from archimedes.embedded import codegen, report, run_in_qemu
from archimedes.embedded.boards import BOARDS
from archimedes.graph.elementary.trigonometric import LIMBS, TWO_OVER_PI_BITS

from ..embedded.toolchain import needs
from .every_angle import differing


@needs("gcc")
def test_integers_have_the_bits_of_double_rounded():
    tried, wrong = differing(1021)
    assert tried > 4_000_000 and wrong == 0


def turned(x, y):
    return np.cos(x), np.sin(y), np.sin(x)


@needs(*BOARDS["cortex-m4"].programs)
def test_a_board_without_doubles_needs_none_of_their_arithmetic():
    angles = np.array([0.3, -2.0, 1e-5, 12345.678, -3e30, 0.7853982], dtype=np.float32)
    project = codegen(turned, (angles[0], angles[1]), float_type=np.float32)
    figures = report(project, optimize="size")
    assert figures.code + figures.constants < 1200
    args = [(x, y) for x in angles for y in angles[::-1]]
    run = run_in_qemu(project, args, board="cortex-m4", optimize="-Os")
    for (x, y), found in zip(args, run.outputs):
        expected = [
            np.float32(f(np.float64(a))) for f, a in ((np.cos, x), (np.sin, y), (np.sin, x))
        ]
        np.testing.assert_array_equal(np.array(list(found)), np.array(expected))
    assert max(run.instructions) < 3000


def test_one_of_the_two_is_a_call_of_its_own():
    text = codegen(lambda x: np.sin(x), (1.0,), name="f", float_type=np.float32).files["f.c"]
    assert re.search(r"out_y0?\[?0?\]?.* = arc_sinf\(x\);", text)


def test_the_digits_in_the_text_are_those_of_two_over_pi_and_of_factorials():
    """The numbers of ``text/angles.c`` stand there as such: they are derived here."""
    helpers = library()
    digits = [int(x) for x in re.findall(r"\d+(?=[,\n])", helpers["arc_two_over_pi"])]
    assert digits == list(LIMBS)
    words = [int(x, 16) for x in re.findall(r"0x([0-9a-f]{8})U[,\n]", helpers["arc_angle"])]
    bits = [(TWO_OVER_PI_BITS >> (1248 - 32 * k)) & 0xFFFFFFFF for k in range(1, 9)]
    assert words[:10] == [0, 0, *bits]
    terms = [int(x, 16) for x in re.findall(r"C\(0x([0-9a-f]+)\)[,\n]", helpers["arc_angle"])]
    assert terms[:18] == [(2**65 // math.factorial(n) + 1) // 2 for n in range(2, 20)]
