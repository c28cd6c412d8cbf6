"""The visual reward's data, scale, homes, caches and labels: what it is made of, and where."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import sims
from reward_models.base import Segment, from_dict
from reward_models.goals import parse
from reward_models.vision import tiny_clip
from reward_models.vision.clip_score import ClipScore, FrameEmbedder, progress
from reward_models.vision.config import DistillConfig
from reward_models.vision.encoders import EmbeddedClip, make_encoder
from reward_models.vision.graded_captions import caption_words
from reward_models.vision.table_captions import table_captions
from reward_models.vision.train import caption_targets, grade
from robo_rl.commands.reward.score import distance_correlation
from robo_rl.commands.train import parse_train
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import SettledConfig, TrainConfig, from_json
from robo_rl.goals.goal_task import make_goal_task
from robo_rl.goals.reading import judged_goal, read_goal
from robo_rl.labelling.store import labelled_scene
from robo_rl.learners import PPOConfig
from robo_rl.learners.learner import make_learner
from robo_rl.learners.training_loop import learn
from robo_rl.rewards import REWARDS, ClipConfig, check_settings, make_reward
from robo_rl.rewards.clip import (
    FRAMES,
    IMITATED,
    captions_of,
    describe_captions,
    select_training_scene,
)
from robo_rl.runs.run_dir import RunDir, jsonable
from robo_rl.training.on_policy_labels import OnPolicyLabels
from robo_rl.vision.caption_data import captions_of_task, outside_frame
from robo_rl.vision.caption_gate import judged_states, truths
from robo_rl.vision.distilled_scene import (
    SceneConfig,
    _arm_aside,
    load_or_distill,
    objects_hash,
    scene_key,
)
from robo_rl.vision.recoloring import recolorings
from robo_rl.vision.state_collection import collect_states
from sims.envs.batch_env import BatchEnv
from sims.tasks.reach import Reach

BARE = {"half_cheetah", "walker2d"}  # no relation of the table is seen there
TINY = SceneConfig(
    frames=160,
    holdout=40,
    distill=DistillConfig(members=2, width=16, steps=20, refit_steps=5, batch=32),
)


@dataclass(frozen=True, kw_only=True)
class Lone(Reach):
    """Somebody's own task, which no expert solves and nobody registered."""

    name: ClassVar[str] = "lone"
    has_expert: ClassVar[bool] = False

    def expert(self, v, rng):
        raise AssertionError("an expert was asked")


@dataclass(frozen=True, kw_only=True)
class Heavy(Lone):
    """The same with another scene."""

    name: ClassVar[str] = "heavy"

    def spec(self):
        spec = super().spec()
        spec.worldbody.add_geom(name="weight", size=(0.01, 0.01, 0.01), pos=(0.2, 0.2, 0.05))
        return spec


@pytest.fixture(scope="module")
def encoder() -> EmbeddedClip:
    return EmbeddedClip(dtype=torch.float32)


# What it is made of.
@pytest.mark.parametrize("draw", [collect_states, judged_states])
def test_caption_states_are_collected_without_an_expert(draw) -> None:
    env = BatchEnv(Lone(), 16, seed=3)
    states, signals = draw(env, 100, 11)
    assert states.shape == (100, env.nstate) and len(signals["tip"]) == 100
    again, _ = draw(BatchEnv(Lone(), 16, seed=3), 100, 11)
    np.testing.assert_array_equal(states, again)


def test_caption_states_depend_only_on_the_seed() -> None:
    used, new = BatchEnv(Lone(), 16, seed=1), BatchEnv(Lone(), 16, seed=2)
    used.reset()
    first = collect_states(new, 60, 7)[0]
    np.testing.assert_array_equal(collect_states(used, 60, 7)[0], first)
    assert not np.array_equal(collect_states(used, 60, 8)[0], first)


def test_random_motions_touch_and_push() -> None:
    env = sims.make("reach", 64, seed=0)
    states, _ = collect_states(env, 320, 5, rollouts=1.0)
    env.set_state(states[:64])
    assert env.task.surface_distance(env.views, 0).min() < 0.005
    pushed = np.abs(env.batch.qvel[:, -18:]).max(axis=1) > 0.01  # some thing is in motion
    assert pushed.mean() > 0.05


def test_captions_follow_colours_and_absent_objects_are_false() -> None:
    env = BatchEnv(sims.make_task("reach"), 32, seed=0)
    _, signals = collect_states(env, 120, 0)
    card = from_dict(env.card)
    captions, paints = table_captions(card), recolorings(env.task)
    assert len(paints) == 6 and len({tuple(p.colours.values()) for p in paints}) == 6
    painted = captions.repainted(paints[-1].colours)
    assert painted.texts[0] == f"the gripper touches the {paints[-1].colours['red_cube']} cube"
    np.testing.assert_array_equal(painted.truth(signals), captions.truth(signals))
    first, last = ({n: s[part] for n, s in signals.items()} for part in (slice(60), slice(60, 120)))
    made = caption_targets([grade(captions, card, first), grade(painted, painted.card, last)])
    assert made.truth.shape == (120, len(made.captions))
    own = [made.captions.index(text) for text in captions.texts]
    assert (made.weight[:60, own] == 1.0).all() and made.truth[:60].min() > 0
    only = [made.captions.index(t) for t in painted.texts if t not in captions.texts]
    assert (made.weight[:60, only] < 0.5).all() and (made.truth[:60, only] < 0.01).all()
    assert set(made.words) >= {"gripper", "between", "cylinder", "blue"}
    assert set(made.words) == {word for text in made.captions for word in caption_words(text)}
    # A read-out by colour and by shape: there is one of each in both halves.
    assert made.there.all() and np.abs(made.targets.mean(axis=0)).max() < 0.2


def test_keypoint_targets_omit_absent_objects() -> None:
    parts = []
    for name, robot in (("lift", None), ("reach", None), ("lift", "fr3")):  # of more joints
        env = BatchEnv(sims.make_task(name, robot=robot), 8, seed=0)
        card = from_dict(env.card)
        parts.append(grade(table_captions(card), card, collect_states(env, 30, 0)[1]))
    made, told = caption_targets(parts), [part.shown for part in parts]
    told_of = [{(name, v.shape[1]) for name, v in one.items()} for one in told]
    signals = list(dict.fromkeys((name, v.shape[1]) for one in told for name, v in one.items()))
    for part, known in enumerate(told_of):
        there = np.concatenate([np.full(signal[1], signal in known) for signal in signals])
        rows = made.there[30 * part : 30 * (part + 1)]
        np.testing.assert_array_equal(rows, np.tile(there, (30, 1)))
    assert "colour red" in told[0] and "colour blue" in told[1]
    assert "colour blue" not in told[0] and not made.targets[made.there == 0].any()


def test_out_of_frame_hand_is_inferred_from_the_arm() -> None:
    env = BatchEnv(sims.make_task("lift"), 8, seed=0)
    card, signals = from_dict(env.card), collect_states(env, 40, 0)[1]
    far = {"tip": signals["tip"] + 5.0, "red_cube_pos": signals["red_cube_pos"] + 5.0}
    found = outside_frame(env.camera(None), card, signals | far, None)
    assert found["red_cube_pos"].all() and "tip" not in found


def test_out_of_frame_objects_have_false_captions() -> None:
    env = BatchEnv(sims.make_task("reach"), 8, seed=0)
    card = from_dict(env.card)
    captions, signals = table_captions(card), collect_states(env, 40, 0)[1]
    hidden = {"red_cube_pos": np.arange(40) % 2 == 0, "tip": np.zeros(40, bool)}
    seen, plain = grade(captions, card, signals, hidden), grade(captions, card, signals)
    about = np.array(["red cube" in text for text in captions.texts])
    assert about.any() and not about.all()
    assert (seen.truth[::2][:, about] <= 0.005).all()
    assert (seen.truth[1::2] == plain.truth[1::2]).all()
    assert (seen.truth[:, ~about] == plain.truth[:, ~about]).all()
    assert np.isnan(seen.shown["colour red"][::2]).all() and np.isnan(seen.shown["tip"]).sum() == 0
    made = caption_targets([seen])
    assert (made.there.sum(axis=1)[::2] < made.there.sum(axis=1)[1::2]).all()
    assert np.isfinite(made.targets).all()


@pytest.mark.parametrize("name", sims.TASKS)
def test_every_described_task_has_captions(name: str) -> None:
    task = sims.make_task(name)
    card = from_dict(task.card())
    try:
        captions = table_captions(card)
    except ValueError as error:
        assert "no relation of the goal language" in str(error) and name in BARE
        return
    assert name not in BARE and len(set(captions.texts)) == len(captions.texts)
    env = BatchEnv(task, 16, seed=1)
    states, signals = collect_states(env, 32, 1)
    truth = captions.softened(signals).truth(signals)
    assert truth.shape == (32, len(captions.texts)) and ((truth > 0) & (truth < 1)).all()
    every = captions_of_task(task)  # a verdict on each
    assert truths(env, states, every).shape == (32, len(every.texts))
    # What grades the lessons and who judges share no code, and mean the same.
    if card.entities[0].kind == "gripper":
        judged, far = truths(env, states, captions), captions.missing(signals) > 0.003
        assert not (judged & far).mean() > 0.005
    env.close()


def test_lifted_caption_grade_rises_with_height() -> None:
    """Though elsewhere the hand is decimetres away: each condition has its own softness."""
    env = BatchEnv(sims.make_task("lift"), 256, seed=1)
    card = from_dict(env.card)
    _, signals = collect_states(env, 256, 1)
    captions = table_captions(card).softened(signals)
    held = captions.truth(signals)[:, captions.texts.index("the red cube is grasped")].argmax()
    heights = np.arange(0.0, 0.05, 0.01)
    raised = {
        name: np.repeat(v[held : held + 1], len(heights), axis=0) for name, v in signals.items()
    }
    low = raised["red_cube_pos"][0, 2] - env.task.objects[0].height
    for name in ("red_cube_pos", "tip", "grip"):
        raised[name][:, 2] += heights - low
    lifted = captions.truth(raised)[:, captions.texts.index("the red cube is lifted")]
    assert (lifted[1:] > 1.25 * lifted[:-1]).all() and lifted[0] < 0.06


# Its scale.
@given(st.floats(0.0, 20.0), st.floats(1e-3, 5.0))
def test_progress_is_strictly_monotonic(share: float, more: float) -> None:
    low, high = progress(np.array([share, share + more]))
    assert low < high
    assert progress(np.array([-0.3]))[0] == 0.0 and progress(np.array([0.4]))[0] == 0.4
    assert high - low <= more + 1e-9


def test_arm_aside_pose_is_raised_for_every_arm() -> None:
    for robot in ("so101", "ur5e"):
        env = sims.make("reach", 64, seed=0, robot=robot)
        _, signals = collect_states(env, 256, 3)
        aside = _arm_aside(env, signals)
        assert {"qpos", "gripper", "tip", "pointing"} <= set(aside) and "red_cube_pos" not in aside
        assert (signals["tip"][:, 2] < aside["tip"][2]).mean() > 0.95


# Where it belongs.
def test_clip_is_refused_in_another_scene(encoder: EmbeddedClip) -> None:
    for task in (sims.make_task("reach"), sims.make_task("push", robot="fr3"), Lone()):
        for camera, found in (("", "front"), ("front", "front"), ("top", "top")):
            select_training_scene(encoder, task, camera=camera)
            assert encoder.camera == found
    select_training_scene(encoder, sims.make_task("lift"))
    for task, way_out in (
        (sims.make_task("reach", robot="koch"), "--task reach --robot koch --out FILE"),
        (Heavy(), "trained on reach, lift, .*, push with the so101, .*; here is heavy"),
    ):
        with pytest.raises(ValueError, match=way_out):
            select_training_scene(encoder, task)
    with pytest.raises(ValueError, match="of reach this CLIP knows the cameras front, top, not"):
        select_training_scene(encoder, sims.make_task("reach"), camera="wrist")


def test_clip_is_refused_on_a_table_with_other_objects(encoder: EmbeddedClip) -> None:
    usual = sims.make_task("tabletop")
    here = types.SimpleNamespace(homes=(tiny_clip.TrainingScene("tabletop", usual.robot, "front"),))
    select_training_scene(here, usual)
    own = sims.make_task("tabletop", things="yellow ball, two red cubes")
    with pytest.raises(ValueError, match="trained on tabletop .*--things 'yellow ball, two red"):
        select_training_scene(here, own)
    theirs = tiny_clip.TrainingScene("tabletop", usual.robot, "top", objects_hash(own))
    here.homes += (theirs,)
    select_training_scene(here, own)
    assert here.camera == "top"
    select_training_scene(here, usual)
    assert here.camera == "front"
    with pytest.raises(
        ValueError, match=rf"trained on tabletop .*; tabletop \(of things {theirs.things}"
    ):
        select_training_scene(here, sims.make_task("tabletop", things="yellow ball"))


def test_clip_weights_name_their_scenes(tmp_path: Path) -> None:
    model = tiny_clip.load()
    assert model.homes[0] == tiny_clip.TrainingScene("reach", "so101", "front")
    model.homes = ()
    with pytest.raises(ValueError, match="set its Home"):
        tiny_clip.save(model, tmp_path / "a.safetensors", {})
    assert not list(tmp_path.iterdir())


# Caches.
def test_encoder_name_depends_on_weights_not_file(tmp_path: Path) -> None:
    model = tiny_clip.load()
    names = []
    for folder, change in (("a", 0.0), ("b", 0.0), ("c", 0.25)):
        with torch.no_grad():
            model.clip.logit_scale += change
        path = tmp_path / folder / "same.safetensors"
        tiny_clip.save(model, path, {})
        # Whoever may read the card may read the weights.
        assert path.stat().st_mode == path.with_suffix(".json").stat().st_mode
        names.append(EmbeddedClip(path).name)
    assert names[0] == names[1] == EmbeddedClip().name != names[2]


def test_distilled_scene_cache_key_is_complete(encoder: EmbeddedClip) -> None:
    task = sims.make_task("push")
    key = scene_key(task, encoder, TINY)
    other_goal = sims.make_task("push", goal="green_cylinder_next_to_blue_ball")
    assert scene_key(other_goal, encoder, TINY) == key  # drawn alike, whatever is asked of it
    for said in ("touch(gripper, red_cube)", "hold(touch(gripper, red_cube), seconds=1)"):
        wanted = make_goal_task(task, parse(said))
        assert scene_key(wanted, encoder, TINY) == key  # a copy of a CLIP sees no account
    others = [
        scene_key(task, EmbeddedClip(dtype=torch.bfloat16), TINY),
        scene_key(task, encoder, dataclasses.replace(TINY, seed=78)),
        scene_key(dataclasses.replace(task, tip_step=0.01), encoder, TINY),
        scene_key(sims.make_task("reach"), encoder, TINY),
    ]
    assert len({key, *others}) == 5


# Made, and asked on.
@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROBO_RL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr("robo_rl.vision.distilled_scene.ROWS", 32)  # few states are collected
        yield


def test_scene_without_expert_is_distilled_and_cached(cache, encoder: EmbeddedClip) -> None:
    first, again = (load_or_distill(Lone(), encoder, TINY) for _ in range(2))
    assert (first.report["frames"], again.report["frames"]) == (160, 0)
    assert first.report["dtype"] == again.report["dtype"] == "float32"
    a, b = (scene.surrogate.state_dict() for scene in (first, again))
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize("task", ["lift", "drawer", "button"])
def test_scene_with_hidden_points_is_distilled(cache, task: str) -> None:
    scene = load_or_distill(sims.make_task(task), make_encoder("embedded"), TINY)
    assert "grip" in {doc.name for doc in sims.make_task(task).signal_docs()}
    assert {"tip", "finger_middles"} <= set(scene.surrogate.points)
    assert "grip" not in scene.surrogate.points


@pytest.mark.parametrize(("distill", "sees"), [(False, FRAMES), (True, IMITATED)])
def test_clip_reward_states_its_inputs_without_stepping(cache, distill: bool, sees: str) -> None:
    task = sims.make_task("reach")
    env = BatchEnv(task, 4, seed=0)
    env.reset()
    before = env.state_dict()
    settings = ClipConfig(distill=distill, scene=TINY)
    made = make_reward("clip", read_goal(task, "touch_red_cube"), env, settings)
    assert made.sees == sees and (made.scene is not None) == distill
    assert made.model.needs == ({"signals"} if distill else {"frames"})
    assert made.model.bias == EmbeddedClip().bias != 0.0
    assert made.about["dtype"] == "float32" and "embedded-" in made.about["encoder"]
    after = env.state_dict()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def test_relabelling_resumes_identically(cache, encoder: EmbeddedClip) -> None:
    class Still:
        buffer = None

        @staticmethod
        def act(obs: np.ndarray) -> np.ndarray:
            return np.zeros((len(obs), 3))

    def labels(seed: int) -> OnPolicyLabels:
        config = TrainConfig(labels=8, labels_every=2, labels_above=0.0)
        made = OnPolicyLabels(
            config, load_or_distill(Lone(), encoder, TINY), BatchEnv(Lone(), 4, seed=seed)
        )
        made.start(Still())
        return made

    whole, resumed = labels(5), labels(6)
    for _ in range(3):
        whole.row({})
    resumed.scene.surrogate.load_state_dict(whole.scene.surrogate.state_dict())
    resumed.load_state_dict({k: v.copy() for k, v in whole.state_dict().items()})
    for _ in range(3):
        whole.row({})
        resumed.row({})
    assert whole.frames == resumed.frames == 24 and whole.name == "labels"
    a, b = whole.scene.surrogate.state_dict(), resumed.scene.surrogate.state_dict()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_resumed_run_from_frames_is_identical(cache, tmp_path: Path) -> None:
    tuning = PPOConfig(num_envs=4, net=(16, 16), n_steps=10, minibatches=5, final_rate=1.0)
    run, steps = RunDir.create(tmp_path / "run", TrainConfig()), 160

    def trained(to: int, seed: int = 0, **options) -> dict[str, torch.Tensor]:
        env, data_env = (sims.make("reach", 4, seed=s) for s in (seed, seed + 50))
        goal = read_goal(env.task, "touch_red_cube")
        settings = ClipConfig(distill=False, scene=TINY)
        made = make_reward("clip", goal, data_env, settings)
        learner = make_learner(tuning, env, made.model, seed=seed)
        learn(learner, to, **options)
        return learner.algorithm.policy.state_dict()

    straight = trained(steps)
    trained(steps // 2, run=run, checkpoint_every=steps // 2)
    resumed = trained(steps, seed=1, run=run, resume=True)  # all of its state is the checkpoint's
    for name, weight in straight.items():
        assert torch.equal(weight, resumed[name]), name


# Rewards by name.
def test_reward_name_selects_the_settings() -> None:
    command = parse_train(["reach", "--clip.distill", "--clip.scene.frames", "100"])
    assert command.scoring == ClipConfig(distill=True, scene=SceneConfig(frames=100))
    assert type(parse_train(["push", "--reward", "task"]).scoring) is REWARDS["task"].settings
    with pytest.raises(SystemExit):
        parse_train(["reach", "--reward", "task", "--clip.distill"])
    with pytest.raises(ValueError, match="reward 'task' takes RewardConfig, got ClipConfig"):
        TrainConfig(reward="task", scoring=ClipConfig())
    typed = TrainConfig(scoring=ClipConfig(arm_aside=False))
    for config in map(with_presets, (TrainConfig(), typed, TrainConfig(reward="task"))):
        stored = json.loads(json.dumps(jsonable(config)))
        assert from_json(SettledConfig, stored) == config
    assert check_settings("clip", TrainConfig().scoring) == ClipConfig()


def test_goal_without_captions_is_refused_by_clip_but_parsed(capsys) -> None:
    from robo_rl.cli import main

    goal = read_goal(sims.make_task("push"), "push the red cube 5 cm to the left")
    with pytest.raises(ValueError, match="an action cannot be seen in one frame"):
        captions_of(goal, raw=False)
    assert main(["reward", "read", goal.text, "--task", "push"]) == 0
    said = capsys.readouterr().out
    assert "captions: none" in said
    truth = judged_goal(sims.make_task("push"), goal.text)[1].truth  # as train says it
    assert truth.startswith("judged by that: ") and truth in said
    assert main(["reward", "read", goal.text, "--task", "drawer", "--json"]) != 0  # no cube there


@pytest.mark.parametrize(
    ("task", "sentence", "steps"),
    [
        (
            "lift",
            "lift the red cube",
            [
                "the gripper touches the red cube",
                "the red cube is grasped",
                "the red cube is lifted",
            ],
        ),
        ("drawer", "open the drawer", ["the gripper touches the handle", "the drawer is open"]),
        (
            "push",
            "push the red cube to the blue ball",
            ["the gripper touches the red cube", "the red cube is next to the blue ball"],
        ),
        ("reach", "touch the ball", ["the gripper touches the blue ball"]),
        # No frame shows what lies in a shut drawer.
        (
            "drawer_then_place",
            "put the red cube in the drawer",
            [
                "the gripper touches the red cube",
                "the red cube is in the drawer",
                "the drawer is open",
            ],
        ),
        (
            "drawer_then_place",
            "put the red cube in the drawer and close the drawer",
            [
                "the gripper touches the red cube",
                "the red cube is in the drawer",
                "the drawer is open",
                "the gripper touches the handle",
                "the red cube is in the drawer",
                "the drawer is closed",
            ],
        ),
    ],
)
def test_caption_plan_lists_preceding_steps(task: str, sentence: str, steps: list[str]) -> None:
    goal = read_goal(sims.make_task(task), sentence)
    assert [c.text for step in captions_of(goal, raw=False) for c in step] == steps


def test_sequence_is_captioned_part_by_part() -> None:
    goal = read_goal(sims.make_task("reach"), "touch the red cube, then the blue ball")
    steps = captions_of(goal, raw=True)
    assert [c.text for step in steps for c in step] == [
        "the gripper touches the red cube",
        "the gripper touches the blue ball",
    ]
    one = read_goal(sims.make_task("reach"), "tap the red cube")
    assert captions_of(one, raw=True)[-1][0].text == "tap the red cube"
    held = read_goal(sims.make_task("reach"), "stay left of the blue ball for a second")
    assert captions_of(held, raw=True)[-1][0].text == "stay left of the blue ball for a second"
    drawer = read_goal(sims.make_task("drawer_then_place"), "put the red cube in the drawer")
    last = [caption.text for caption in captions_of(drawer, raw=True)[-1]]
    assert last == ["put the red cube in the drawer", "the drawer is open"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"baseline": "an arm"}, "baseline applies to --clip.formula goal_baseline, contrast and"),
        ({"alpha": 0.2}, "alpha applies to --clip.formula goal_baseline, got cosine"),
        ({"formula": "softmax", "alpha": 0.2, "negatives": ("a",)}, "alpha applies to"),
        ({"formula": "goal_baseline", "negatives": ("a",)}, "negatives applies to --clip.formula"),
    ],
)
def test_unused_clip_texts_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ClipConfig(**given)


def test_scene_label_includes_the_objects() -> None:
    two, three = (
        sims.make_task("tabletop", things=things)
        for things in ("red cube, blue ball", "red cube, blue ball, green can")
    )
    assert labelled_scene(two, "front") != labelled_scene(three, "front")
    assert labelled_scene(sims.make_task("reach"), "front") == "reach so101 front"


def test_goal_with_a_number_gets_its_own_caption() -> None:
    task = sims.make_task("lift")
    plain = captions_of_task(task)
    assert len(set(plain.texts)) == len(plain.texts)
    more = captions_of_task(task, ("lift the red cube by 12 cm",))
    [new] = set(more.texts) - set(plain.texts)
    asked = captions_of(read_goal(task, "lift the red cube by 12 cm"), raw=False)
    assert new == asked[-1][0].text and "12 cm" in new
    for goal, says in (
        ("the red cube has moved 5 cm to the left", "cannot be seen in one frame"),
        ("sing", "sing"),
    ):
        with pytest.raises(ValueError, match=says):
            captions_of_task(task, (goal,))


def test_distance_correlation_reports_sign_and_omissions() -> None:
    distance = np.array([0.3, 0.2, 0.1, 0.0, 0.0, 0.0])
    score = np.array([0.1, 0.2, 0.3, 0.5, 0.4, 0.6])
    assert distance_correlation(score, distance) == {
        "spearman_with_nearness": 1.0,
        "frames_at_distance_0": 3,
    }
    assert distance_correlation(-score, distance)["spearman_with_nearness"] == -1.0
    assert distance_correlation(score[3:], distance[3:])["spearman_with_nearness"] is None


def test_sequence_parts_become_plan_parts() -> None:
    task = sims.make_task("push")
    pushed = "push the red cube next to the blue ball"
    for said, parts in ((pushed, [0, 0]), (f"{pushed}, then touch the green cylinder", [0, 0, 1])):
        steps = captions_of(read_goal(task, said), raw=False)
        assert [step[0].part for step in steps] == parts


def test_never_and_hold_are_part_of_the_plan() -> None:
    task = sims.make_task("reach")
    never = read_goal(task, "touch the red cube, then the green can, without touching the ball")
    plan = captions_of(never, raw=False)
    assert describe_captions(plan) == (
        "never the gripper touches the blue ball; the gripper touches the red cube -> the gripper "
        "touches the green cylinder"
    )
    assert [step[0].part for step in plan if not step[0].shunned] == [0, 1]
    filled = judged_goal(task, never.text)[1]  # as a run has it, every number there
    assert describe_captions(captions_of(filled, raw=False)) == describe_captions(plan)
    with pytest.raises(ValueError, match="pretrained CLIP has no calibrated probability"):
        captions_of(never, raw=True)
    shut = read_goal(sims.make_task("drawer"), "open the drawer without touching the handle")
    assert describe_captions(captions_of(shut, raw=False)) == (
        "never the gripper touches the handle; the drawer is open"
    )
    held = read_goal(task, "touch the red cube, then stay left of the ball for a second")
    assert describe_captions(captions_of(held, raw=False)).endswith(
        " -> the gripper is left of the blue ball"
    )
    for text in (
        "stay left of the ball for a second, then touch the red cube",
        "touch the red cube or the blue ball",
        "do not touch the ball until you have touched the cube",
    ):
        with pytest.raises(ValueError, match="captions express a sequence of relations"):
            captions_of(read_goal(task, text), raw=False)


def test_occluded_object_is_scored_by_the_lowest_camera(cache) -> None:
    """A cube behind the arm, before a shut drawer: a policy put it there, for the front camera took
    it to be inside."""
    task = sims.make_task("drawer_then_place")
    goal = read_goal(task, "put the red cube in the drawer")
    with contextlib.closing(BatchEnv(task, 16, seed=4)) as env:
        env.reset()
        ids, v = np.arange(16), env.views
        task.place_thing(v, ids, 0, np.tile([0.13, -0.16], (16, 1)), np.linspace(0, 1, 16))
        env.batch.forward(ids)
        task.place_tip(v, ids, np.tile([0.265, -0.14, 0.02], (16, 1)))
        env.batch.forward(ids)
        behind = env.state()
        env.reset()
        rng = np.random.default_rng(0)
        for _ in range(160):
            step = env.step(task.expert(v, rng))
        there = env.state()[step.info["success"]]
        made = {
            cameras: make_reward("clip", goal, env, ClipConfig(camera=cameras, scene=TINY))
            for cameras in (("front",), ("top",), ("front", "top"))
        }

        def paid(states: np.ndarray) -> list[np.ndarray]:
            seen = {
                camera: np.stack([env.render_states(states, camera, size=(96, 96))] * 2)
                for camera in ("front", "top")
            }
            segment = Segment(
                {},
                lambda camera, where: seen[camera][where],
                np.zeros((1, len(states), 0)),
                np.ones((1, len(states)), bool),
            )
            return [one.model.score(segment).reward[0] for one in made.values()]

        for states in (behind, there):
            front, top, both = paid(states)
            np.testing.assert_array_equal(both, np.minimum(front, top))
            assert (top < front).any() if states is there else (front < top).any()
            if states is behind:
                assert max(front.max(), top.max()) < 0.2
        assert front.min() > 1.5 and np.median(both) > 1.0
    assert made["front", "top"].about["camera"] == "front, top"
    assert (
        made["front", "top"].sees == f"{FRAMES}; of front and top, as the one that sees least of it"
    )
    with pytest.raises(ValueError, match="distill makes a copy of what one camera sees"):
        ClipConfig(camera=("front", "top"), distill=True)
    assert ClipConfig(camera="top") == ClipConfig(camera=("top",))


def test_forbidden_state_costs_reward_while_seen() -> None:
    """Drawn frames of an arm that goes to the ball, and of one that stays where it began."""
    task = sims.make_task("reach", goal="touch_blue_ball")
    goal = read_goal(task, "touch the red cube, then the green can, without touching the ball")
    with contextlib.closing(sims.BatchEnv(task, 6, seed=4)) as env:
        env.reset()
        rng, states, near = np.random.default_rng(0), [env.state()], []
        for _ in range(40):
            env.step(np.where(np.arange(6)[:, None] % 2, 0.0, env.task.expert(env.views, rng)))
            states.append(env.state())
            near.append(env.signals()["blue_ball_fingers"][:, 0])
        frames = np.stack([env.render_states(s) for s in states])
    encoder, valid = EmbeddedClip(), np.ones((40, 6), bool)
    segment = Segment({}, lambda camera, where: frames[where], np.zeros((40, 6, 0)), valid)
    model = ClipScore(
        FrameEmbedder(encoder), captions_of(goal, raw=False), scale=encoder.scale, bias=encoder.bias
    )
    model.calibrate(segment)
    reward = model.score(segment).reward
    assert (reward[-1, ::2] == -2).all()  # each of two parts is worth 1
    costs, far = reward == -2, np.stack(near)
    assert far[costs].max() < 0.025 and far[~costs].min() > 0.01 and not costs[:, 1::2].any()
