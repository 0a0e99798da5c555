"""A robot's dynamics in all that takes dynamics; robots of a hundred joints; extras left out."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.installation import install_command
from archimedes.simulate import Uniform

from .random_trees import random_inertia, random_state


def arm(base="fixed"):
    b, parent, rng = mb.Builder("arm"), "world", np.random.default_rng(0)
    if base == "floating":
        b.add_body("hull", 3.0, inertia=[0.1, 0.2, 0.25])
        parent = "hull"
    for k in range(2):
        b.add_body(f"link{k}", *random_inertia(rng))
        axis, place = np.eye(3)[k], [0.0, 0.1, -0.5]
        b.attach(f"link{k}", parent, joint=f"j{k}", axis=axis, position=place, damping=0.1)
        parent = f"link{k}"
    return b.build(base)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_linearised(base):
    """Rows of the accelerations are the analytic derivatives, in coordinates of q."""
    model = arm(base)
    q, v, u = random_state(model, 1)
    x, rates_of = mb.State(q, v), lambda x, u: model.dynamics(0.0, x, u)
    by_x, by_u = arc.jac(rates_of)(x, u), arc.jac(rates_of, argnums=1)(x, u)
    dq, dv, dtau = mb.aba_derivatives(model, q, v, u, passive=True)
    np.testing.assert_allclose(by_x.v.v, dv, atol=1e-9)
    np.testing.assert_allclose(by_u.v, dtau, atol=1e-10)
    along = arc.jac(lambda e: mb.integrate(model, q, e))(np.zeros(model.nv))
    np.testing.assert_allclose(by_x.v.q @ along, dq, atol=1e-9)
    rates = arc.jac(lambda v: mb.coordinate_rates(model, q, v))(v)
    np.testing.assert_allclose(by_x.q.v, rates, atol=1e-12)


@pytest.mark.long
def test_batches_are_single_solves():
    model = arm()
    starts = [mb.State(*random_state(model, k)[:2]) for k in range(3)]
    together = mb.State(*(np.stack([getattr(x, n) for x in starts]) for n in "qv"))
    solve = lambda x, **more: arc.solve_ode(model.dynamics, (0.0, 0.2), x, t_eval=[0.2], **more)
    many = solve(together, in_axes=0)
    for k, x in enumerate(starts):
        alone = solve(x)
        np.testing.assert_allclose(many.x.q[k, -1], alone.x.q[-1], rtol=1e-6, atol=1e-8)


@pytest.mark.long
def test_campaigns_vary_masses():
    model, start = arm(), mb.rest_state(arm(), [0.4, -0.3])

    def swing(params):
        heavy = model.replace(masses=params["scale"] * model.masses)
        return {"q": arc.odeint(heavy.dynamics, (0.0, 0.2), start).q}

    found = arc.monte_carlo(swing, {"scale": Uniform(0.5, 2.0)}, n=8, seed=3)
    assert not found.failed.any() if hasattr(found.failed, "any") else not found.failed
    for k in range(2):
        alone = swing({"scale": found.params["scale"][k]})["q"]
        np.testing.assert_allclose(found.results["q"][k], alone, rtol=1e-9, atol=1e-12)


@pytest.mark.long
def test_as_c():
    model = arm("floating")
    q, v, u = random_state(model, 2)
    step = arc.discretize(model.dynamics, 1e-2, method="rk4")

    def robot_step(x, u):
        return step(0.0, x, u)

    made = arc.codegen(robot_step, (mb.State(q, v), u), verify=True)
    assert any(str(name).endswith(".c") for name in made.files)


def tree(count):
    """A robot of five-joint limbs on a chain, `count` joints in all."""
    b, parent, rng = mb.Builder("tree"), "world", np.random.default_rng(0)
    for k in range(count):
        b.add_body(f"b{k}", *random_inertia(rng))
        b.attach(f"b{k}", parent, joint=f"j{k}", axis=np.eye(3)[k % 3], position=[0.2, 0, 0.05])
        parent = f"b{k}" if k % 5 else parent
    return b.build()


def c_size(model):
    z = np.zeros(model.nv)

    def accelerations(q, v, tau):
        return mb.aba(model, q, v, tau)

    made = arc.codegen(accelerations, (z, z, z), optimize="size")
    return sum(len(str(text)) for name, text in made.files.items() if str(name).endswith(".c"))


@pytest.mark.long
def test_a_hundred_joints_compile_in_seconds_and_c_grows_with_the_joints(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    model, z = tree(100), np.zeros(100)
    begin = time.process_time()
    forward = arc.compile(lambda q, v, tau: mb.aba(model, q, v, tau), backend="llvm")
    a = forward(z + 0.1, z + 0.2, z)
    assert time.process_time() - begin < 15.0  # 4.4 s here
    back = mb.rnea(model, z + 0.1, z + 0.2, a)
    assert np.abs(back).max() < 1e-9 * np.abs(mb.crba(model, z + 0.1) @ a).max()
    assert c_size(model) < 4.6 * c_size(tree(25))


def without(modules, code):
    """Run code where these packages cannot be imported; return what it prints."""
    hidden = f"import sys\nfor name in {modules!r}: sys.modules[name] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", hidden + code], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.long
def test_urdf_needs_no_other_package(tmp_path):
    file = tmp_path / "bob.urdf"
    file.write_text(
        '<robot name="bob"><link name="a"/><link name="b"><inertial><mass value="2"/><inertia '
        'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial><visual><geometry><mesh '
        'filename="a.stl"/></geometry></visual></link><joint name="j" type="continuous"><parent '
        'link="a"/><child link="b"/></joint></robot>'
    )
    code = "import numpy as np\nfrom archimedes import multibody as mb\n"
    hidden = ["mujoco", "trimesh", "scipy"]
    said = without(hidden, f"{code}print(mb.aba(mb.load({str(file)!r}), *np.ones((3, 1))))")
    assert "[1.]" in said, said
    (tmp_path / "bob.xml").write_text("<mujoco/>")
    said = without(hidden, f"{code}mb.load({str(tmp_path / 'bob.xml')!r})")
    assert f"MJCF files are read through MuJoCo's compiler: {install_command('robots')}" in said
