import numpy as np

from archimedes.tree import field, struct


@struct
class Quaternion:
    array: np.ndarray

    def __repr__(self):
        return f"Quaternion({self.array})"


@struct
class RigidBody:
    @struct
    class State:
        pos: np.ndarray = field(units="m")
        att: Quaternion
        v_B: np.ndarray = field(units="m/s")
        w_B: np.ndarray


def test_repr_as_in_the_document():
    x = RigidBody.State(
        pos=np.zeros(3),
        att=Quaternion(np.zeros(4)),
        v_B=np.array([0.0, 0.0, 0.98]),
        w_B=np.array([0.0, 0.1, 0.0]),
    )
    assert repr(x) == (
        "RigidBody.State(pos=array([0., 0., 0.]), att=Quaternion([0. 0. 0. 0.]), "
        "v_B=array([0.  , 0.  , 0.98]), w_B=array([0. , 0.1, 0. ]))"
    )
    assert repr(x) == str(x)


def test_numpy_scalars_print_as_numbers():
    @struct
    class Values:
        a: object
        b: object = field(repr=False, default=1.0)

    def text(value):
        return repr(Values(value))

    assert text(np.float64(0.5)) == "Values(a=0.5)"
    assert text(np.float32(0.1)) == "Values(a=0.1)"
    assert text(np.bool_(True)) == "Values(a=True)"
    assert text(np.int64(3)) == "Values(a=3)"
    assert text([np.float64(1.0), (np.float64(2.0),)]) == "Values(a=[1.0, (2.0,)])"
    assert text({"k": np.float64(1.0)}) == "Values(a={'k': 1.0})"
    assert text(("a", None)) == "Values(a=('a', None))"
    assert text(np.array(2.0)) == "Values(a=array(2.))"


def test_repr_of_a_struct_that_contains_itself():
    @struct
    class Loop:
        items: list

    loop = Loop([])
    loop.items.append(loop)
    assert repr(loop) == "Loop(items=[...])"


def test_html_has_names_shapes_units_and_escaped_values():
    @struct
    class Page:
        state: RigidBody.State
        note: str = field(units="<none>", default="<script>")
        hidden: float = field(repr=False, default=123.5)

    x = RigidBody.State(np.zeros(3), Quaternion(np.zeros(4)), v_B=np.zeros(3), w_B=np.zeros(3))
    text = Page(x)._repr_html_()
    assert text.count("<table>") == text.count("</table>") == 3
    for part in ("<caption>RigidBody.State</caption>", "<td>pos</td><td>(3,)</td><td>m</td>"):
        assert part in text
    assert "&lt;script&gt;" in text and "&lt;none&gt;" in text
    assert "<script>" not in text and "123.5" not in text
