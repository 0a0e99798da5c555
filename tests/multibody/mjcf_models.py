"""MJCF models that together have every element which moves something, each a few lines.

`MODELS` are the texts by name, and `write_model` writes one with the files that it includes.
Contact is switched off where they are compared, so that shapes are only masses.
"""

from __future__ import annotations

__all__ = ["MODELS", "write_model"]

#: An arm of two links, in whose tags further attributes go.
ARM = """<worldbody>{world}
<body name="upper" pos="0 0 1"><joint name="j" axis="0 1 0" {j}/>
 <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
 <site name="s" pos=".1 0 .06"/><site name="e" pos=".25 .02 .03"/>
 <body name="lower" pos=".3 0 0"><joint name="k" axis="0 1 .3" {k}/>
  <geom type="box" size=".1 .02 .03" pos=".1 0 0" mass=".7"/><site name="t" pos=".2 0 .02"/>
 </body>
</body></worldbody>"""


def arm(more="", j="", k="", world="", option=""):
    """Return a model of the arm with more elements."""
    inner, attributes = (option, "") if option.startswith("<") else ("", option)
    head = f'<compiler angle="radian"/><option timestep="0.002" {attributes}>{inner}</option>'
    return f"<mujoco>{head}{ARM.format(j=j, k=k, world=world)}{more}</mujoco>"


def body(inner, more="", option="", before=""):
    """Return a model of what is in the world."""
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="0.002" {option}/>{before}'
        f"<worldbody>{inner}</worldbody>{more}</mujoco>"
    )


ANCHORS = '<site name="a" pos=".1 0 1.2"/><site name="b" pos=".5 .05 1.1"/>'
SPATIAL = """<tendon><spatial name="w" {}><site site="a"/>{}<site site="t"/></spatial></tendon>"""
LINK = '<geom type="capsule" fromto="0 0 0 {0} 0 0" size=".02" mass=".4"/>'
FOUR_BAR = """<body name="crank"><joint name="j" axis="0 1 0"/>
 <geom type="capsule" fromto="0 0 0 0 0 .2" size=".02" mass=".4"/>
 <body name="rod" pos="0 0 .2"><joint name="k" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass=".4"/><site name="p" pos=".4 0 0"/>
 </body></body>
 <body name="rocker" pos=".4 0 0"><joint name="l" axis="0 1 0"/>
 <geom type="capsule" fromto="0 0 0 0 0 .2" size=".02" mass=".4"/><site name="r" pos="0 0 .2"/>
 </body>"""
BLOCKS = """<body name="one" pos="0 0 1"><freejoint/><geom type="box" size=".1 .07 .05" mass="1"/>
 <site name="p" pos=".1 0 0" euler=".2 .1 0"/></body>
 <body name="two" pos=".3 0 1.1" euler="0 .4 .2"><freejoint/>
 <geom type="box" size=".1 .02 .05" mass=".6"/><site name="r" pos="-.1 0 0"/></body>"""
HINGES = """<body><joint name="j" axis="0 0 1" {}/><geom type="box" size=".1 .05 .02" mass="1"/>
 <body pos=".3 0 0"><joint name="k" axis="0 1 0" {}/><geom type="box" size=".1 .05 .02" mass="1"/>
 </body></body>"""
FLUID = 'density="{}" viscosity="{}" wind="{}"'
FLYER = """<body pos="0 0 1" euler=".1 .2 .3"><freejoint/>
 <geom type="{}" size=".2 .15 .05" mass=".5" {}/>
 <body pos=".25 0 0"><joint axis="0 1 0" damping=".01"/><geom type="{}" size=".1 .1 .01"
 pos=".1 0 0" mass=".05" {}/></body></body>"""

MODELS = {
    # ---- joints
    "hinge": arm(),
    "slide": body('<body><joint type="slide" axis="1 0 1"/><geom size=".1"/></body>'),
    "ball": body(
        '<body pos="0 0 1"><joint type="ball" pos=".1 0 .2" damping=".02" stiffness=".5"/>'
        '<geom type="box" size=".1 .2 .3"/></body>'
    ),
    "free": body(BLOCKS),
    "free with armature, springs": body(
        '<body pos="0 0 1"><joint type="free" damping=".1" armature=".02"/>'
        '<geom type="ellipsoid" size=".1 .2 .3"/></body>'
    ),
    "free with dry friction": body(
        '<body pos="0 0 1"><joint type="free" frictionloss=".3" solreffriction=".05 .8"/>'
        '<geom type="ellipsoid" size=".1 .2 .3" pos=".1 0 .2"/></body>'
    ),
    "three joints in a body": body(
        '<body euler=".3 .2 .1"><joint type="slide" axis="1 0 0"/>'
        '<joint pos="0 0 .2" axis="0 1 0"/><joint pos=".1 0 0" axis="1 1 0"/>'
        '<geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>'
    ),
    "springs and references": arm(
        j='ref=".2" springref=".5" stiffness="3" damping=".1"', k='armature=".05" stiffness="2"'
    ),
    "springdamper": arm(j='springdamper=".3 .8"', k='springdamper=".2 1.1"'),
    "polynomial springs": arm(
        j='stiffness="3 .5 2" damping=".1 .05 .2"', k='stiffness="2" damping="0 .1"'
    ),
    # ---- limits and dry friction
    "limits": arm(j='range="-.3 .2"', k='range="-.2 .1" solreflimit=".03 .7"'),
    "limits with impedances": arm(
        j='range="-.3 .2" solimplimit="0 .99 .01"',
        k='range="-.2 .1" solimplimit=".8 .97 .05 .3 3" margin=".02"',
    ),
    "limits by stiffness": arm(j='range="-.3 .2" solreflimit="-900 -25"', k='range="-.2 .1"'),
    "limit of a ball": body(
        '<body pos="0 0 1"><joint type="ball" range="0 .3" solimplimit=".5 .9 .01"/>'
        '<geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>'
    ),
    "dry friction": arm(j='frictionloss=".4"', k='frictionloss=".1"'),
    "dry friction with impedances": arm(
        j='frictionloss=".4" solreffriction=".05 1" solimpfriction=".5 .5 .01"',
        k='frictionloss=".1" solimpfriction=".99 .99 .01"',
    ),
    # ---- actuators
    "motors": arm(
        '<actuator><motor joint="j" gear="3" ctrlrange="-1 1"/>'
        '<motor joint="k" forcerange="-.5 .5"/></actuator>'
    ),
    "servos": arm(
        '<actuator><position joint="j" kp="20" kv="1" ctrlrange="-1 1"/>'
        '<velocity joint="k" kv=".5"/><damper joint="k" kv=".2" ctrlrange="0 1"/>'
        '<intvelocity joint="j" kp="5" actrange="-.5 .5"/></actuator>'
    ),
    "general actuators": arm(
        '<actuator><general joint="j" gainprm="4" biastype="affine" biasprm=".1 -4 -.3"/>'
        '<general joint="k" gaintype="affine" gainprm="1 .2 .1"/>'
        '<general joint="k" dyntype="filter" dynprm=".05" actrange="-.1 .1" actlimited="true"/>'
        '<general joint="j" dyntype="filterexact" dynprm=".02" actearly="true"/></actuator>'
    ),
    "position servo of a time constant": arm(
        '<actuator><position joint="j" kp="20" dampratio="1" timeconst=".05"/>'
        '<position joint="k" kp="2" inheritrange=".8"/></actuator>', k='range="-1 1"',
    ),
    "cylinder": arm(
        '<actuator><cylinder joint="j" timeconst=".1" area=".5" bias=".1 -1 -.1"/></actuator>'
    ),
    "muscle": arm('<actuator><muscle joint="j" force="20" lengthrange="-1.5 1.5"/></actuator>'),
    "muscle of a tendon": arm(
        SPATIAL.format("", "") + '<actuator><muscle tendon="w" scale="20"/></actuator>',
        world=ANCHORS, j='range="-.6 .6"', k='range="-1 1"',
    ),
    "thrust": body(
        '<body pos="0 0 1"><freejoint/><geom type="box" size=".1 .1 .02" mass="1"/>'
        '<site name="p" pos=".1 0 0"/><site name="r" pos="-.1 0 0"/></body>',
        '<actuator><motor site="p" gear="0 0 1 0 0 .02"/><motor site="r" gear="0 0 1 0 0 -.02"/>'
        "</actuator>",
    ),
    "servo of a site": arm(
        '<actuator><position site="t" refsite="s" kp="30" gear="1 0 .5 0 .1 0"/></actuator>'
    ),
    "ball and free in parent": body(
        '<body pos="0 0 1"><joint name="j" type="ball"/><geom type="box" size=".1 .2 .3"/></body>'
        '<body><freejoint name="k"/><geom type="box" size=".1 .2 .3"/></body>',
        '<actuator><motor jointinparent="j" gear="1 2 3"/><motor joint="j" gear="3 1 2"/>'
        '<motor jointinparent="k" gear="1 2 3 4 5 6"/><motor joint="k" gear="1 0 2 0 3 0"/>'
        "</actuator>",
    ),
    "slider and crank": arm(
        '<actuator><motor cranksite="t" slidersite="a" cranklength=".6" gear="2"/></actuator>',
        world='<site name="a" pos="0 0 .6"/>',
    ),
    "limits of what actuators give": arm(
        '<actuator><motor joint="j"/><position joint="j" kp="20"/><motor joint="k"/></actuator>',
        j='actuatorfrcrange="-.2 .3"', k='actuatorfrcrange="-.1 .1"',
    ),
    "gravity compensation": arm(
        '<actuator><motor joint="j"/></actuator>', j='actuatorgravcomp="true"',
    ).replace('name="lower"', 'name="lower" gravcomp=".8"'),
    "actuators in a group that is off": arm(
        '<actuator><motor joint="j" group="2"/><motor joint="k" group="1"/></actuator>',
        option='actuatorgroupdisable="2"',
    ),
    "DC motor": arm(
        '<actuator><dcmotor joint="j" motorconst="0.05" resistance="2" gear="10"/></actuator>'
    ),
    "damping and armature of actuators": arm(
        '<tendon><fixed name="w"><joint joint="k" coef=".4"/></fixed></tendon>'
        '<actuator><motor joint="j" gear="3" damping=".05" armature=".01"/>'
        '<position joint="j" kp="2" gear="2" damping=".02"/>'
        '<motor tendon="w" gear="3" damping=".3"/></actuator>'
    ),
    "delay": arm('<actuator><position joint="j" kp="20" nsample="4" delay=".01"/></actuator>'),
    "adhesion": arm('<actuator><adhesion body="lower" ctrlrange="0 1" gain="5"/></actuator>'),
    # ---- tendons
    "fixed tendon": arm(
        '<tendon><fixed name="w" stiffness="8" damping=".2" range="-.2 .3" springlength="0 .1">'
        '<joint joint="j" coef=".5"/><joint joint="k" coef="-.7"/></fixed></tendon>'
        '<actuator><motor tendon="w"/></actuator>'
    ),
    "tendon with friction and limits": arm(
        SPATIAL.format('frictionloss=".5" range="0 .55" solimplimit=".5 .95 .01" stiffness="4"', "")
        + '<actuator><position tendon="w" kp="5"/></actuator>', world=ANCHORS,
    ),
    "tendon over a pulley": arm(
        SPATIAL.format(
            'stiffness="20" damping=".5" springlength=".4"',
            '<site site="e"/><pulley divisor="2"/><site site="b"/>',
        ),
        world=ANCHORS,
    ),
    "tendon around a cylinder and a sphere": arm(
        SPATIAL.format(
            'stiffness="50" springlength=".1"',
            '<geom geom="c"/><site site="s"/><geom geom="d" sidesite="u"/>',
        ),
        world=ANCHORS
        + '<geom name="c" type="cylinder" size=".04 .2" pos=".1 0 1.12" quat="1 1 0 0"/>'
        '<geom name="d" type="sphere" size=".05" pos=".25 0 1.02"/>'
        '<site name="u" pos=".25 0 1.2"/>',
    ),
    "armature of a tendon": arm(
        SPATIAL.format('armature=".3"', "")
        + '<actuator><motor tendon="w" gear="2"/></actuator>', world=ANCHORS,
    ),
    "limits of what actuators give a tendon": arm(
        '<tendon><fixed name="w" actuatorfrcrange="-.1 .1"><joint joint="j" coef=".5"/>'
        '</fixed></tendon><actuator><motor tendon="w" gear="5"/></actuator>'
    ),
    # ---- equality
    "coupled joints": arm(
        '<equality><joint joint1="j" joint2="k" polycoef=".1 .5 .2 0 0"/></equality>'
    ),
    "a joint held": arm(
        '<equality><joint joint1="k" polycoef=".2 0 0 0 0" solref=".05 1"/></equality>'
    ),
    "coupled tendons": arm(
        '<tendon><fixed name="w"><joint joint="j" coef="1"/></fixed>'
        '<fixed name="x"><joint joint="k" coef="2"/></fixed></tendon>'
        '<equality><tendon tendon1="w" tendon2="x" polycoef="0 1 0 0 0"/></equality>'
    ),
    "connected bodies": body(
        BLOCKS, '<equality><connect body1="one" body2="two" anchor=".15 0 0"/></equality>'
    ),
    "connected sites": body(FOUR_BAR, '<equality><connect site1="p" site2="r"/></equality>'),
    "a loop with impedances": body(
        FOUR_BAR,
        '<equality><connect body1="rod" body2="rocker" anchor=".4 0 0" solref=".01 1"'
        ' solimp=".95 .99 .01"/></equality>',
    ),
    "welded bodies": body(
        BLOCKS, '<equality><weld body1="one" body2="two" torquescale=".5"/></equality>'
    ),
    "welded to the world": body(BLOCKS, '<equality><weld body1="two" solref=".1 1"/></equality>'),
    "welded sites": body(BLOCKS, '<equality><weld site1="p" site2="r"/></equality>'),
    "welded to a mocap body": body(
        BLOCKS + '<body name="hand" mocap="true" pos=".1 0 1.2"><geom size=".02"/></body>',
        '<equality><weld body1="hand" body2="one" relpose="0 0 -.2 1 0 0 0"/></equality>',
    ),
    "an equality that is off": arm(
        '<equality><joint joint1="j" joint2="k" active="false"/></equality>'
    ),
    # ---- the ways in which files say it
    "keyframe": arm(
        '<actuator><position joint="j" kp="20"/></actuator>'
        '<keyframe><key name="home" qpos=".3 -.4" qvel=".1 0" ctrl=".2"/></keyframe>'
    ),
    "defaults": body(
        '<body childclass="a"><joint/><geom class="b"/><body pos=".2 0 0"><joint class="b"/>'
        "<geom/></body></body>",
        before='<default><joint damping=".3"/><default class="a"><joint axis="0 1 0"/>'
        '<geom type="box" size=".1 .05 .02"/></default><default class="b"><joint axis="1 0 0"'
        ' range="-.1 .1"/><geom size=".1"/></default></default>',
    ),
    "frames": body(
        '<frame pos="0 0 1" euler=".2 0 0"><body><frame pos="0 .1 0"><joint axis="0 1 0"/>'
        '<geom type="box" size=".1 .2 .3" pos=".1 0 0"/></frame></body></frame>'
    ),
    "replicate": body(
        '<replicate count="3" offset=".3 0 0" euler="0 0 .2"><body><joint axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02"/></body></replicate>'
    ),
    "include": '<mujoco><include file="arm.xml"/><statistic center="0 0 1"/></mujoco>',
    "attach": '<mujoco><asset><model name="arm" file="arm.xml"/></asset><worldbody>'
    '<body pos="1 0 0"><joint type="slide" axis="0 0 1"/><geom size=".1"/>'
    '<attach model="arm" body="upper" prefix="left_"/></body></worldbody></mujoco>',
    "compiler": '<mujoco><compiler angle="degree" eulerseq="zyx" boundmass=".1" settotalmass="5"'
    ' balanceinertia="true" autolimits="true"/><worldbody><body euler="30 20 10"><inertial'
    ' pos="0 0 .1" mass="1" fullinertia=".1 .2 .25 .01 0 0"/><joint axis="0 1 0" range="-20 40"/>'
    '<body pos="0 0 .3"><joint type="ball"/><geom type="cylinder" size=".05 .2"/></body></body>'
    "</worldbody></mujoco>",
    "meshes": body(
        '<body><freejoint/><geom type="mesh" mesh="m" pos=".1 0 0"/></body>',
        before='<asset><mesh name="m" vertex="0 0 0 .2 0 0 0 .3 0 0 0 .1"/></asset>',
    ),
    "height field": body(
        '<geom type="hfield" hfield="h"/><body pos="0 0 1"><freejoint/><geom size=".1"/></body>',
        before='<asset><hfield name="h" nrow="3" ncol="3" size="1 1 .2 .1"'
        ' elevation="0 0 0 0 1 0 0 0 0"/></asset>',
    ),
    "no gravity, no springs": arm(
        j='stiffness="5" damping="1"', option='<flag gravity="disable" spring="disable"/>'
    ),
    "implicit steps": arm(
        '<actuator><velocity joint="j" kv="5"/></actuator>', option='integrator="implicitfast"'
    ),
    # ---- the fluid around
    "boxes in a fluid": body(
        FLYER.format("box", "", "ellipsoid", ""), option=FLUID.format("30", ".02", "1 0 .5")
    ),
    "ellipsoids in a fluid": body(
        FLYER.format("ellipsoid", 'fluidshape="ellipsoid"', "box",
                     'fluidshape="ellipsoid" fluidcoef=".4 .2 1.2 .8 .9"'),
        option=FLUID.format("1.2", "2e-4", "1 0 .5"),
    ),
    # ---- what is seen, sensed, or touched
    "scenery": arm(
        '<sensor><jointpos joint="j"/><framepos objtype="site" objname="t"/></sensor>'
        '<contact><exclude body1="upper" body2="lower"/></contact>'
        '<asset><texture name="x" type="2d" builtin="checker" width="8" height="8"/>'
        '<material name="y" texture="x" rgba="1 .5 0 1"/></asset>',
        world='<light pos="0 0 3"/><camera pos="1 1 1"/><geom type="plane" size="1 1 .1"'
        ' material="y"/>',
    ),
}  # fmt: skip


def write_model(name, folder):
    """Write a model, with the arm that some include, and return its file."""
    (folder / "arm.xml").write_text(arm('<actuator><motor joint="j"/></actuator>'))
    file = folder / "model.xml"
    file.write_text(MODELS[name])
    return file
