"""Somebody's own MJCF round an arm: what the card says holds, and what is wrong is one error."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sims
from reward_models.base import from_dict
from reward_models.goals import fill, parse
from reward_models.goals.formula import to_data
from reward_models.goals.margins import MarginEvaluator, formula_margins
from robo_rl.cli import main
from robo_rl.goals.reading import judged_goal
from robo_rl.runs.run_dir import RunDir
from sims.robots import robots_for_task
from sims.tasks.scene import mjcf
from sims.tasks.scene.mjcf import SceneError, packed_scene
from sims.tasks.scene.user_scene import read_user_scene
from sims.truth import SuccessJudge

ARMS = pytest.mark.parametrize("robot", robots_for_task("tabletop"))

LOOSE = '<body name="{name}" pos="{pos}"><freejoint/>{geoms}</body>'
CUBE = '<geom type="box" size=".02 .02 .02"/>'
BALL = '<geom type="sphere" size=".02"/>'
CABINET = """
<body name="cabinet" pos="0 0.11 0">
  <geom type="box" size=".05 .004 .03" pos="0 .05 .03"/>
  <body name="box">
    <joint type="slide" axis="0 -1 0" range="0 0.06" damping="4"/>
    <geom type="box" size=".04 .04 .003" pos="0 0 .01"/>
    <geom name="front" type="box" size=".04 .003 .015" pos="0 -.04 .02"/>
    <site name="grip" pos="0 -.05 .02"/>
  </body>
</body>
"""
CUP = (
    '<geom type="cylinder" size=".02 .03" pos="0 0 .03"/>'
    '<geom type="capsule" size=".004 .012" pos=".026 0 .03"/>'
)


def world(*bodies: str, extra: str = "") -> str:
    return f"<mujoco>{extra}<worldbody>{''.join(bodies)}</worldbody></mujoco>"


def loose(name: str, geoms: str = CUBE, pos: str = "0 0 .02") -> str:
    return LOOSE.format(name=name, pos=pos, geoms=geoms)


def written(folder: Path, xml: str, card: str) -> Path:
    path = folder / "scene.xml"
    path.write_text(xml)
    path.with_suffix(".toml").write_text(card)
    return path


SCENE = world(
    loose("cup", CUP, ".01 -.06 0"),
    loose("brick"),
    loose("marble", BALL, ".03 0 .02"),
    CABINET,
    '<body name="wall" pos=".07 0 .02"><geom type="box" size=".005 .02 .02"/></body>',
)
CARD = """
[cup]
kind = "item"
[red_brick]
body = "brick"
kind = "cube"
colour = "red"
at = { x = [-0.05, -0.02], y = [-0.05, 0.0] }
[marble]
kind = "ball"
at = "drawn"
[drawer]
body = "box"
kind = "drawer"
[handle]
body = "box"
kind = "handle"
site = "grip"
"""


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    return written(tmp_path, SCENE, CARD)


def table(scene: Path | str, robot: str = "ur5e", rows: int = 64, seed: int = 1):
    return sims.make("tabletop", rows, seed=seed, robot=robot, scene=str(scene), num_threads=1)


# What there is.
@ARMS
def test_scene_body_sizes_match_the_card(scene: Path, robot: str) -> None:
    env = table(scene, robot, rows=8)
    card = from_dict(json.loads(json.dumps(env.card)))
    half = {e.name: e.half for e in card.entities}
    assert half["red_brick"] == (0.02, 0.02, 0.02) and half["marble"] == (0.02, 0.02, 0.02)
    assert np.allclose(half["cup"], (0.025, 0.02, 0.03))  # 2 cm to one side, 3 cm to the handle's
    assert {s.name for s in card.signals} >= {"cup_pos", "cup_up", "drawer_pos", "box_joint"}
    env.reset()
    settled = env.signals()["cup_pos"].copy()
    for _ in range(10):
        env.step(np.zeros((8, env.act_dim)))
    assert np.abs(env.signals()["cup_pos"] - settled).max() < 0.004  # it stands, and stays
    assert np.allclose(settled[:, 2], 0.03)


@ARMS
def test_scene_objects_start_in_their_regions(scene: Path, robot: str) -> None:
    env = table(scene, robot, rows=128)
    middle = env.task.middle()
    env.reset()
    signals = {name: value.copy() for name, value in env.signals().items()}
    brick = signals["red_brick_pos"][:, :2] - middle
    assert (brick >= (-0.05, -0.05)).all() and (brick <= (-0.02, 0.0)).all()
    assert np.ptp(brick, axis=0).min() > 0.01
    assert np.allclose(signals["marble_pos"][:, :2] - middle, (0.03, 0.0))
    assert np.ptp(signals["cup_pos"][:, 1]) > 0.05
    out = signals["box_joint"][:, 0]
    assert out.min() < 0.01 and out.max() > 0.05
    place = (0.0, 0.11) + middle - np.outer(out, (0, 1))
    assert np.allclose(signals["handle_pos"][:, :2], place - (0, 0.05), atol=1e-6)
    gap = np.linalg.norm(signals["cup_pos"][:, :2] - signals["red_brick_pos"][:, :2], axis=1)
    assert gap.min() > 0.025 + 0.02


def test_tilted_off_centre_body_keeps_its_pose(tmp_path: Path) -> None:
    lying = '<body name="rod" pos="0 0 .01" euler="0 90 0"><freejoint/>{}</body>'
    rod = '<geom type="cylinder" size=".01 .03" pos="0 0 .05"/>'
    path = written(tmp_path, world(lying.format(rod)), '[rod]\nkind = "item"\nat = "drawn"\n')
    env = table(path, rows=4)
    env.reset()
    (thing,) = env.task.objects
    assert np.allclose(thing.half, (0.03, 0.01, 0.01))
    assert np.allclose(env.signals()["rod_pos"][0, :2] - env.task.middle(), (0.05, 0.0))
    points = np.array([[0.03, 0, 0], [0.04, 0, 0], [0, 0, 0.02]])
    assert np.allclose(thing.distance(points), (0.0, 0.01, 0.01))
    for _ in range(10):
        env.step(np.zeros((4, env.act_dim)))
    assert np.allclose(env.signals()["rod_pos"][:, 2], 0.01, atol=0.003)


# What is meant.
GOALS = (
    "touch(gripper, cup)",
    "touch(gripper, red_brick)",
    "left_of(cup, marble)",
    "upright(cup)",
    "near(cup, red_brick, within=10cm)",
    "open(drawer)",
    "closed(drawer)",
    "inside(marble, drawer)",
    "next_to(red_brick, marble)",
    "far(gripper, handle)",
    "released(cup)",
    "lifted(cup)",
    "above(gripper, cup)",
    "touch(red_brick, marble)",
    "moved(cup, left=5cm)",
    "turned(red_brick, angle=45deg)",
)


@ARMS
def test_own_scene_margins_agree_with_the_judge(scene: Path, robot: str) -> None:
    env = table(scene, robot, rows=128)
    card = from_dict(env.card)
    env.reset()
    before = {name: value.copy() for name, value in env.signals().items()}
    of = [formula_margins(fill(parse(text), card), card) for text in GOALS]
    judges = [SuccessJudge(to_data(one.formula), env.task, env.batch, env.views) for one in of]
    env.scatter()
    held = {}
    for one, judge in zip(of, judges, strict=True):
        judge.step(np.zeros(128, bool))
        signals = {**env.signals(), **one.remembered(one.begun(before), one.chosen(before))}
        margin = MarginEvaluator(one)(signals, before)[0][one.formula].min(axis=1)
        differ = ((margin >= 0) != judge.success()) & (np.abs(margin) > 0.003)
        assert not differ.any(), one.formula
        held[one.formula.predicate] = judge.success().mean()
    assert min(held["touch"], held["open"], held["closed"], held["left_of"], held["near"]) > 0.0


@pytest.mark.slow
def test_run_stores_its_scene(scene: Path, tmp_path: Path, capsys) -> None:
    tiny = "--env-steps 640 --episodes 8 --eval-points 0 --tuning.num-envs 8 --tuning.n-steps 40"
    begin = f"train tabletop --scene {scene} --robot ur5e --name one --runs {tmp_path / 'runs'}"
    goal = ["--things", "blue can", "--goal", "push the red brick next to the can"]
    assert main([*begin.split(), *goal, *tiny.split()]) == 0, capsys.readouterr().err
    text, run = packed_scene(str(scene)), RunDir.open(tmp_path / "runs" / "one")
    assert run.config["scene"] == text and mjcf.scene_label(text) == run.result["scene"]
    assert mjcf.scene_label(text) in (run.path / "report.html").read_text()
    scene.write_text("gone")
    for again in (f"evaluate {run.path} --episodes 8", f"report {run.path}"):
        assert main(again.split()) == 0, capsys.readouterr().err
    scene.write_text(SCENE.replace(".02 .02 .02", ".021 .021 .021"))
    assert main(f"train --resume {run.path} --scene {scene}".split()) == 1
    assert (
        f"started with --scene {mjcf.scene_label(text)}, got scene.xml" in capsys.readouterr().err
    )


def test_own_scene_from_python_and_name_collisions(scene: Path) -> None:
    env = table(scene, rows=4)
    again = table(env.task.scene, rows=4)
    assert (env.reset() == again.reset()).all()
    both = sims.make_task("tabletop", scene=str(scene), things="red cube")
    assert [t.name for t in both.objects] == ["red_cube", "cup", "red_brick", "marble"]
    judged, goal = judged_goal(both, "put the marble in the drawer")
    assert goal.key and judged.formula[0] == "inside"


# What is wrong.
ONE = '[brick]\nkind = "cube"\n'
WRONG = {
    "not XML": ("<mujoco>", ONE, "scene.xml is not XML"),
    "not MJCF": ("<robot/>", ONE, "expected MJCF, <mujoco>, got <robot>"),
    "an entity": ('<!DOCTYPE a [<!ENTITY b "c">]><mujoco/>', ONE, "document type or entities"),
    "not TOML": (world(loose("brick")), "[brick\n", "scene.toml is not TOML"),
    "no card": (world(loose("brick")), "", "one table for each named object"),
    "no such body": (
        world(loose("brick")),
        '[brik]\nkind = "cube"\n',
        "scene.toml: \\[brik\\] body 'brik' is not in scene.xml; did you mean 'brick'",
    ),
    "no such kind": (
        world(loose("brick")),
        '[brick]\nkind = "cub"\n',
        "unknown kind 'cub'; did you mean 'cube'",
    ),
    "no kind": (world(loose("brick")), "[brick]\n", "must be a table that has the key kind"),
    "no such entry": (
        world(loose("brick")),
        ONE + "color = 'red'\n",
        "unknown key 'color'; available: aff",
    ),
    "no such affordance": (
        world(loose("brick")),
        ONE + 'affordances = ["lif"]\n',
        "unknown affordance 'lif'",
    ),
    "a wrong place": (world(loose("brick")), ONE + 'at = "there"\n', "at must be 'anywhere'"),
    "a body unnamed": (
        world(loose("brick"), loose("other")),
        ONE,
        '<body name="other"> .* so exactly one entry',
    ),
    "no cube": (world(loose("brick", BALL)), ONE, "of kind 'cube' must be one geom .* 'item'"),
    "a box on its edge": (
        world(loose("brick", '<geom type="box" size=".02 .02 .02" euler="45 0 0"/>')),
        ONE,
        "of kind 'cube' must be one geom",
    ),
    "fixed but loose": (
        world('<body name="brick">' + CUBE + "</body>"),
        ONE,
        "must have a free joint, but .* has none",
    ),
    "loose but fixed": (
        world(loose("brick")),
        '[brick]\nkind = "plate"\n',
        "has a free joint, so its kind",
    ),
    "no geoms": (world(loose("brick", "<inertial/>")), ONE, "<inertial> cannot be in a scene"),
    "an unknown shape": (
        world(loose("brick", '<geom type="ellipsoid" size=".01 .02 .02"/>')),
        ONE,
        "must be a box, sphere, cylinder or capsule",
    ),
    "a geom in the world": (world(CUBE), ONE, "<geom> must be inside a body"),
    "MuJoCo's own complaint": (
        world(loose("brick", '<geom type="box" size="0 1 1"/>')),
        ONE,
        "scene.xml: .*size 0 must",
    ),
    "the arm's name": (
        world(loose("base")),
        '[base]\nkind = "cube"\n',
        "'base' is already used by the arm",
    ),
    "two entries for one body": (
        world(loose("brick")),
        ONE + '[box]\nbody = "brick"\nkind = "cube"\n',
        "one entry must name it; got brick, box",
    ),
    "a name that another body has": (
        world(loose("cube"), '<body name="brick" pos=".1 0 0">' + CUBE + "</body>"),
        '[brick]\nbody = "cube"\nkind = "cube"\n',
        "scene.xml: .*repeated name 'brick'",
    ),
    "a card of brackets": (world(loose("brick")), "a = " + "[" * 5_000, "scene.toml is not TOML"),
    "a drawer that does not slide": (
        world('<body name="brick"><body name="b">' + CUBE + "</body>" + CUBE + "</body>"),
        '[b]\nkind = "drawer"\n',
        'must have one <joint type="slide"',
    ),
    "no room": (
        world(*(loose(f"brick{i}", '<geom type="box" size=".04 .04 .02"/>') for i in range(6))),
        "".join(f'[brick{i}]\nkind = "cube"\n' for i in range(6)),
        "do not fit side by side",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_scene_error_names_file_and_entry(tmp_path: Path, what: str) -> None:
    xml, card, said = WRONG[what]
    with pytest.raises(ValueError, match=said):
        table(written(tmp_path, xml, card), robot="so101")


MESH = '<asset><mesh name="m" file="{}"/></asset>'
TEXTURE = '<asset><texture name="t" type="2d" {}/></asset>'
HOSTILE = {
    "an absolute file": (MESH.format("/etc/hostname.obj"), "folder of the scene or below"),
    "a file above": (MESH.format("../../secret.obj"), "folder of the scene or below"),
    "a folder above": (
        '<compiler meshdir=".."/>' + MESH.format("secret.obj"),
        "folder of the scene or below",
    ),
    "a link out": (MESH.format("link.obj"), "outside the scene's folder"),
    "no such file": (MESH.format("none.obj"), "cannot find file 'none.obj'"),
    "another format": (MESH.format("passwd"), "must have a file that ends in .obj or .stl"),
    "an include": ('<include file="scene.toml"/>', "<include> cannot be in a scene"),
    "a plugin": ('<extension><plugin plugin="x"/></extension>', "<extension> cannot be in a scene"),
    "a model": ('<asset><model name="a" file="b.xml"/></asset>', "<model.* cannot be in a scene"),
    "an actuator": ("<actuator><motor/></actuator>", "<actuator> cannot be in a scene"),
    "a cube's six files": (TEXTURE.format('fileright="a.png"'), "cannot have 'fileright'"),
    "a vast texture": (
        TEXTURE.format('builtin="flat" width="99999" height="9"'),
        "a width of at most 2048",
    ),
    "a picture that is none": (TEXTURE.format('file="fake.png"'), "'fake.png' is not a PNG"),
    "a vast picture": (TEXTURE.format('file="vast.png"'), "at most 2048 pixels"),
    "deep elements": ("<default>" * 41 + "</default>" * 41, "1000 elements, 40 deep; got .*, 42"),
    "many elements": ("<default/>" * 1000, "expected at most 1000 elements"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_scene_with_plugins_or_outside_paths_is_refused(tmp_path: Path, what: str) -> None:
    extra, said = HOSTILE[what]
    (tmp_path / "secret.obj").write_text("v 0 0 0\n")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "link.obj").symlink_to(tmp_path / "secret.obj")
    (folder / "fake.png").write_text("none")
    (folder / "vast.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xff\0\0\xff\xff\0\0")
    with pytest.raises(SceneError, match=f"scene.xml: .*{said}"):
        table(written(folder, world(loose("brick"), extra=extra), ONE))


def test_packed_scene_with_outside_paths_is_refused() -> None:
    """What a run's config holds was perhaps downloaded."""
    xml = world(loose("brick"), extra=MESH.format("/etc/hostname.obj"))
    whole = {"name": "scene.xml", "xml": xml, "card": ONE, "files": {}}
    with pytest.raises(SceneError, match="folder of the scene or below"):
        read_user_scene(json.dumps(whole))
    whole["xml"] = world(loose("brick"), extra=MESH.format("here.obj"))
    with pytest.raises(SceneError, match="here.obj"):
        read_user_scene(json.dumps(whole))
    for text in ("{", "{}", '{"name": 1, "xml": "", "card": "", "files": {}}'):
        with pytest.raises(SceneError, match="not a serialised scene"):
            read_user_scene(text)


def test_scene_meshes_and_textures_are_rendered(tmp_path: Path) -> None:
    corners = [f"v {x} {y} {z}" for x in (0, 0.03) for y in (0, 0.03) for z in (0, 0.03)]
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "hull.obj").write_text("\n".join([*corners, "f 1 2 3", "f 5 6 7 8"]))
    seen = '<geom type="mesh" mesh="hull" contype="0" conaffinity="0" mass=".01"/>'
    extra = '<compiler meshdir="meshes"/><asset><mesh file="hull.obj"/></asset>'
    path = written(tmp_path, world(loose("brick", CUBE + seen), extra=extra), ONE)
    env = table(path)
    assert env.model.nmesh == 1 and env.task.objects[0].half == (0.02, 0.02, 0.02)
    solid = partial(str.replace, path.read_text(), 'contype="0" conaffinity="0"')
    path.write_text(solid(""))
    with pytest.raises(SceneError, match="for a purely visual geom set contype"):
        table(path)


def test_scene_keeps_its_own_skybox(tmp_path: Path) -> None:
    sky = '<texture type="skybox" builtin="flat" rgb1="{}" width="1" height="6"/>'
    looks = {"ours": "", "red": f"<asset>{sky.format('1 0 0')}</asset>"}
    for name, extra in looks.items():
        (tmp_path / name).mkdir()
        env = table(written(tmp_path / name, world(loose("brick"), extra=extra), ONE), rows=1)
        top = env.render(camera="front")[0, 0].mean(0)
        assert (top[0] > 2 * top[2]) == (name == "red")
        env.close()


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="<>/=\"' abodymujcgenrt0.\n[]", max_size=120), st.text(max_size=60))
def test_any_text_is_a_scene_or_a_scene_error(xml: str, card: str) -> None:
    whole = {"name": "scene.xml", "xml": xml, "card": card, "files": {}}
    with pytest.raises(SceneError):
        read_user_scene(json.dumps(whole))
