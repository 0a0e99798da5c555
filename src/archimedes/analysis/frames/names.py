"""Monogram names: what ``R_BE``, ``v_air_B`` and ``p_AB_C`` say of their frames.

A name is a head (``v``, ``R``, ``wind``), words in lower case, frames in capitals, and words that
change nothing (``w_B_ref``, ``v_B_0``). A frame is one capital, a capital with lower-case letters
or digits (``B1``, ``Bcm``), or one of `FRAME_WORDS`; other words are frames only where a rotation
names them (``R_UP_NED``).
"""

from __future__ import annotations

import re
from functools import lru_cache

from archimedes.records import record

__all__ = ["FRAME_WORDS", "MonogramName", "are_compatible", "parse_name", "words"]


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


#: Frames with more than one letter, and the letters by which they are also known.
FRAME_WORDS = {
    "NED": "NLG",
    "ENU": "NLGE",
    "NWU": "NL",
    "ECEF": "EF",
    "ECI": "IE",
    "ITRF": "EF",
    "GCRF": "I",
    "ICRF": "I",
    "EME": "I",
    "TEME": "I",
    "LVLH": "OLH",
    "RTN": "OR",
    "RSW": "OR",
    "LLA": "",
    "FRD": "B",
    "FLU": "B",
}

#: Heads of what takes coordinates from one frame to another; C and T are often something else.
MAPS = {
    **dict.fromkeys(words("R rot rotation dcm DCM"), "R"),
    **dict.fromkeys(words("q quat quaternion att attitude"), "Q"),
    **dict.fromkeys(words("X transform transformation pose tf"), "X"),
    "C": "C",
    "T": "T",
}
TENSORS = {"J", "I", "P", "inertia", "cov", "covariance"}
STRONG = words(
    "p r v a w g f F M pos position vel velocity acc accel acceleration omega Omega om "
    "gravity force moment torque tau wind thrust drag lift weight momentum offset lever arm "
    "gyro point corner axis axes direction normal velocities"
)
#: Heads of relative positions and rates, whose two letters add up like steps of a path.
PATHS = words("p r pos position w omega")
#: Lists of vectors by their first letters.
SEVERAL = words("ps rs vs ws fs Fs")
#: What has a size and no direction, and what is no number at all.
NEVER = words(
    "mass time dt N K S Q U Y Z O D rho mu lat lon alt phi theta psi speed "
    "temperature temp energy power cost gain index idx id name frame to from in at on is "
    "has num count size path file key label body link part state model eta gamma sigma nu "
    "eps i j R C q X volume area charge voltage current resistance capacitance density "
    "pressure loss error_rate"
)
#: Numbers unless they are used as vectors: mass or magnetic field, time or tangent.
NUMBERS = words("m t k n c")
#: With these heads, N, W, L, D and T are kinds of forces or components unless the file has frames.
FORCES = words("F M a f T")
QUALIFIERS = words(
    "k dot ddot prev next new old ref cmd des desired est hat meas measured true nom goal "
    "target start end init initial final pred bar tilde mean i j n km1 kp1 raw sum total "
    "now last first list array"
)
POINT_WORDS = {"CM", "CG", "COM", "CoM", "CoG", "IMU"}

_UNIT = re.compile(r"[A-Z][a-z0-9]*")
_SUFFIX = re.compile(r"[A-Z][A-Za-z0-9]*")


@record
class MonogramName:
    """What a name says; whether its letters are frames, the scope decides.

    ``kind`` is "vector" or "map" (rotation, transformation, inertia: what is multiplied from the
    left). ``to`` is the frame of the result, or of the vector; ``frm`` that of the operand.
    """

    head: str
    kind: str
    to: str = ""
    frm: str = ""
    points: tuple[str, str] | None = None
    style: str = ""
    strong: bool = False
    many: bool = False


def are_compatible(a: str, b: str) -> bool:
    """Return whether two names may mean one frame: N may be short for NED, E0 be E at the start."""
    if a == b or b in FRAME_WORDS.get(a, "") or a in FRAME_WORDS.get(b, ""):
        return True
    digits = "0123456789"
    return (a[-1:] in digits) != (b[-1:] in digits) and a.rstrip(digits) == b.rstrip(digits)


@lru_cache(maxsize=20_000)
def parse_name(name: str) -> MonogramName | None:
    """Return what a name says of frames, None for a name without a suffix.

    >>> parse_name("R_BE").to, parse_name("v_air_B").to, parse_name("p_AB_C").points
    ('B', 'B', ('A', 'B'))
    >>> parse_name("speed_B"), parse_name("C_L"), parse_name("S_MAX")
    (None, None, None)
    """
    tokens = name.strip("_").split("_")
    while len(tokens) > 2 and (tokens[-1] in QUALIFIERS or tokens[-1].isdigit()):
        tokens.pop()
    suffixes: list[str] = []
    while len(tokens) > 1 and _SUFFIX.fullmatch(tokens[-1]):
        suffixes.insert(0, tokens.pop())
    if not suffixes or not tokens[0]:
        return None
    head, last = tokens[0].rstrip("0123456789"), tokens[-1].rstrip("0123456789")
    if head.startswith("d") and head[1:] in {*MAPS, *TENSORS, *STRONG, "h"}:
        head = head[1:]
    if head in ("get", "compute", "calc", "make") and len(tokens) > 1:
        head = tokens[1]
    if head in MAPS and (len(suffixes) > 1 or len(split_frames(suffixes[0])) == 2):
        return map_name(head, suffixes)
    if any(re.fullmatch(r"d[A-Za-z]+|by|per|wrt", t) for t in tokens[1:]):  # dF_dv_B
        return None
    if head in NEVER or last in NEVER or (len(head) > 1 and not any(map(str.islower, head))):
        return None
    if head in TENSORS:
        if len(suffixes) == 1 and len(split_frames(suffixes[0])) == 1:
            return MonogramName(
                head, "map", suffixes[0], suffixes[0], style="J", strong=head not in ("I", "P")
            )
        return None
    return vector_name(head, last, suffixes)


def map_name(head: str, suffixes: list[str]) -> MonogramName | None:
    """Read the frames of a rotation: ``R_BE``, ``R_BNED``, ``R_B_E`` or ``R_NED_ECEF``."""
    frames = split_frames(suffixes[0]) if len(suffixes) == 1 else suffixes
    if len(frames) != 2 or (frames[1] == "T" and len(suffixes) > 1):
        return None
    ambiguous = len(suffixes) > 1 and len(split_frames(frames[0])) > 1 and len(frames[1]) == 1
    if ambiguous or any(f in ("MAX", "MIN", "REF", "INV") for f in frames):
        return None
    return MonogramName(head, "map", frames[0], frames[1], style=MAPS[head], strong=True)


def vector_name(head: str, last: str, suffixes: list[str]) -> MonogramName | None:
    """Read the frame of a vector, and the points of a relative position or rate."""
    many = last.endswith("s") and len(last) > 3 and last not in ("bias", "axis", "thrus")
    many = many or last in SEVERAL
    strong = bool({head, last, last.rstrip("s")} & STRONG)
    pair: list[str] = []
    frame = suffixes[-1]
    if len(suffixes) == 3:
        pair = suffixes[:2]
    elif len(suffixes) == 2 and suffixes[0] not in POINT_WORDS:
        pair = split_frames(suffixes[0])
    elif len(suffixes) == 1 and len(split_frames(frame)) == 2:
        pair, frame = split_frames(frame), ""
    if len(suffixes) > 3 or (frame and len(split_frames(frame)) > 3):
        return None
    points = (pair[0], pair[1]) if len(pair) == 2 and head in PATHS else None
    if not frame and points is None:
        return None
    return MonogramName(head, "vector", frame, points=points, strong=strong, many=many)


def split_frames(text: str) -> list[str]:
    """Split capitals into frames: "BE" is two, "NED" one, "BNED" two."""
    if text in FRAME_WORDS:
        return [text]
    for word in FRAME_WORDS:
        if text.startswith(word) and len(text) > len(word):
            return [word, *split_frames(text[len(word) :])]
        if text.endswith(word) and len(text) > len(word):
            return [*split_frames(text[: -len(word)]), word]
    return _UNIT.findall(text)
