"""Residual learners: the base as it is until something is learned, and one graph of both."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from point_mass import Nearness, PointMass
from test_learners import assert_same, success
from torch import nn

import robo_rl
import sims
from real_robot.policy.bundle import PolicyBundle
from robo_rl.arm.episodes import run_emulated
from robo_rl.bundles.export import check, deterministic_actor, to_onnx
from robo_rl.cli import main
from robo_rl.commands.train import parse_train
from robo_rl.config.train_config import TrainConfig
from robo_rl.learners import (
    LEARNERS,
    OffPolicyConfig,
    ResidualEnsembleConfig,
    ResidualPPOConfig,
    ResidualSACConfig,
    ResidualTD3Config,
)
from robo_rl.learners.base_policy import FrozenBase, load_base
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.training_loop import learn
from robo_rl.runs.policy import load_graph, load_policy
from robo_rl.runs.run_dir import CheckpointError, RunDir

SMALL = {"num_envs": 8, "net": (16, 16), "final_rate": 1.0}
OFF = {
    "learning_starts": 64,
    "buffer_size": 1024,
    "batch_size": 32,
    "gradient_steps": 2,
    "switch_on_steps": 256,
    "critic_updates": 20,
}
CONFIGS = [
    ResidualPPOConfig(**SMALL),
    ResidualSACConfig(**SMALL, **OFF),
    ResidualEnsembleConfig(**SMALL, **OFF),
    ResidualTD3Config(**SMALL, **OFF),
]
ODD = {"offset": 3.0, "scale": 20.0}  # of observations: whoever has no scale of them is lost
over_all = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)


def somewhere(count: int = 512) -> np.ndarray:
    """Observations (count, 4), some of them where nobody has been."""
    rng = np.random.default_rng(0)
    obs = (3.0 + 20.0 * rng.normal(size=(count, 4))).astype(np.float32)
    obs[:8] *= 100
    return obs


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that goes to the goal fast along x and slowly along y, so that it comes near
    enough half of the time; at the bounds of the actions here and there."""
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.Hardtanh())
    ahead = torch.tensor([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]) / ODD["scale"]
    with torch.no_grad():
        net[0].weight.copy_(torch.cat([ahead, -ahead]))
        net[0].bias.copy_(-ODD["offset"] * net[0].weight.sum(dim=1))
        net[2].weight.copy_(torch.tensor([[5.0, 0.0, -5.0, 0.0], [0.0, 0.7, 0.0, -0.7]]))
        net[2].bias.zero_()
        action = net(torch.from_numpy(somewhere())).numpy()
    at_bounds = np.abs(action) == 1.0
    assert at_bounds.any() and not at_bounds.all()
    path = tmp_path_factory.mktemp("base") / "policy.onnx"
    path.write_bytes(to_onnx(net, 4))
    return path


def on(config, base: Path | str, seed: int = 0) -> Learner:
    config = dataclasses.replace(config, base=str(base))
    return make_learner(config, PointMass(config.num_envs, seed=seed, **ODD), Nearness(), seed=seed)


@over_all
def test_untrained_residual_equals_the_base(config, base, tmp_path):
    learner, obs = on(config, base), somewhere()
    expected = load_graph(base).act(obs)
    np.testing.assert_array_equal(learner.act(obs), expected)
    # In the env the same steps are made.
    env, other = (PointMass(8, seed=3, **ODD) for _ in range(2))
    mine, its = env.reset(), other.reset()
    for _ in range(16):
        mine, its = env.step(learner.act(mine)).obs, other.step(load_graph(base).act(its)).obs
        np.testing.assert_array_equal(mine, its)
    # And so it does where it is exported to, as one graph without the other's file.
    (tmp_path / "both.onnx").write_bytes(to_onnx(deterministic_actor(learner.algorithm), 4))
    np.testing.assert_array_equal(load_graph(tmp_path / "both.onnx").act(obs), expected)
    one = load_graph(tmp_path / "both.onnx").act(obs[:1])
    np.testing.assert_array_equal(one, load_graph(base).act(obs[:1]))


@over_all
def test_residual_is_bounded_and_exportable(config, base):
    learner, obs = on(config, base), somewhere()
    theirs = load_graph(base).act(obs)
    learn(learner, 512)
    action = learner.act(obs)
    moved = np.abs(action - theirs)
    assert 0 < moved.max() <= config.scale + 1e-6
    assert (np.abs(action) <= 1.0).all()
    # The base still scales observations as it was trained to, the residual by its own.
    base_now = learner.algorithm.policy.state_dict()
    assert any(name.endswith("base_sha256") for name in base_now)
    np.testing.assert_array_equal(load_base(str(base), PointMass(8))(obs), theirs)
    graph = to_onnx(deterministic_actor(learner.algorithm), 4)
    assert check(graph, obs, action) <= 1e-5
    model = onnx.load_from_string(graph)
    assert [one.name for one in model.graph.input] == ["obs"]
    assert b".py" not in graph and not any(t.external_data for t in model.graph.initializer)


@pytest.mark.parametrize("config", CONFIGS[1:], ids=lambda config: type(config).__name__)
def test_residual_replay_has_executed_actions(config, base):
    learner = on(dataclasses.replace(config, switch_on_steps=512, scale=0.5), base)
    learn(learner, 1024)
    ring = learner.buffer
    steps = ring.size()
    obs, action = (x[:steps].reshape(steps * 8, -1) for x in (ring.observations, ring.actions))
    theirs = load_graph(base).act(obs)
    assert (np.abs(action) <= 1.0).all()
    assert np.abs(action - theirs).max() <= 0.5 + 0.5 * getattr(config, "noise", 0.0) * 5
    # Ever more rows have a residual, until all of them have one.
    alone = (np.abs(action - theirs) < 1e-6).all(axis=1).reshape(steps, 8).mean(axis=1)
    first, second, later = alone[:32].mean(), alone[32:64].mean(), alone[64:].mean()
    assert 0.6 < first < 0.9 and 0.1 < second < 0.4 and later < 0.15


@pytest.mark.parametrize("config", CONFIGS[1:], ids=lambda config: type(config).__name__)
def test_residual_critic_trains_first(config, base):
    learner, obs = on(dataclasses.replace(config, critic_updates=40), base), somewhere()
    parts = {
        name: {k: v.clone() for k, v in getattr(learner.algorithm, name).state_dict().items()}
        for name in ("actor", "critic")
    }
    learn(learner, 64 + 8 * 16)

    def same(name: str) -> bool:
        now = getattr(learner.algorithm, name)
        return all((parts[name][k] == v).all() for k, v in now.named_parameters())

    assert learner.algorithm._n_updates == 32
    assert same("actor") and not same("critic")
    if hasattr(learner.algorithm, "log_ent_coef"):
        assert learner.algorithm.log_ent_coef.exp().item() == pytest.approx(config.entropy_init)
    np.testing.assert_array_equal(learner.act(obs), load_graph(base).act(obs))
    learn(learner, 64 + 8 * 32)
    assert not same("actor")


@over_all
def test_a_resumed_run_equals_an_uninterrupted_one(config, base, tmp_path):
    straight = on(config, base)
    learn(straight, 384)
    run = RunDir.create(tmp_path / "run", config)
    learn(on(config, base), 256, run=run, checkpoint_every=128)
    again = on(config, base, seed=5)
    learn(again, 384, run=RunDir.open(run.path), resume=True)
    assert_same(straight, again)


def test_resume_with_a_changed_base_is_refused(base, tmp_path):
    run, mine = RunDir.create(tmp_path / "run", CONFIGS[0]), tmp_path / "base.onnx"
    mine.write_bytes(base.read_bytes())
    learn(on(CONFIGS[0], mine), 384, run=run)
    learner = on(CONFIGS[0], "controller:zero")
    with pytest.raises(CheckpointError, match=r"controller:zero has changed .* restore the old"):
        learn(learner, 768, run=run, resume=True)


def test_residual_improves_a_poor_base(base, training_seed, outcome):
    """What the base does half of the time is done nearly always."""
    before = success(on(CONFIGS[0], base), PointMass(300, seed=99, **ODD))
    assert 0.3 < before < 0.6
    config = ResidualPPOConfig(num_envs=32, net=(32, 32), scale=1.0, learning_rate=3e-3)
    learner = on(config, base, training_seed)
    learn(learner, 6_000)
    after = success(learner, PointMass(300, seed=99, **ODD))
    outcome("success above the base's", after - before, above=0.15)


def test_residual_on_a_residual_base(base, tmp_path):
    """The base of a base is in the graph too."""
    obs, first = somewhere(), on(CONFIGS[0], base)
    learn(first, 512)
    first.act(obs)
    path = tmp_path / "first.onnx"
    path.write_bytes(to_onnx(deterministic_actor(first.algorithm), 4))
    second = on(CONFIGS[0], path)
    np.testing.assert_array_equal(second.act(obs), load_graph(path).act(obs))
    assert check(to_onnx(deterministic_actor(second.algorithm), 4), obs, second.act(obs)) == 0.0


def test_onnx_base_of_another_exporter_is_supported(base):
    """Other names of tensors, another version of the operators."""
    model = onnx.version_converter.convert_version(onnx.load(base), 20)
    for node in model.graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = {"obs": "seen", "action": "command"}.get(name, name)
    model.graph.input[0].name, model.graph.output[0].name = "seen", "command"
    theirs = FrozenBase("theirs", model.SerializeToString(), obs="seen", action="command")
    obs, learner = somewhere(), on(CONFIGS[0], base)
    np.testing.assert_array_equal(theirs(obs), load_graph(base).act(obs))
    learner.act(obs)
    actor = deterministic_actor(learner.algorithm)
    actor.extractor.base = theirs
    assert check(to_onnx(actor, 4), obs, load_graph(base).act(obs)) <= 1e-6


def test_base_controllers_use_only_the_observation():
    env = sims.make("reach", 64, seed=1)
    obs, base = env.reset(), load_base("controller:approach", env)
    for _ in range(env.max_steps):
        step = env.step(base(obs))
        obs = step.obs
    assert step.info["success"].mean() > 0.8
    assert not load_base("controller:zero", env)(obs).any()
    env.close()
    with pytest.raises(ValueError, match=r"approach needs .* hopper has .* use controller:zero"):
        load_base("controller:approach", sims.make("hopper", 1))


# The line on real parts.
@pytest.fixture(scope="module")
def first(short_video, tmp_path_factory: pytest.TempPathFactory):
    """A run over a controller, short and without looks."""
    return trained("controller:approach", tmp_path_factory.mktemp("runs"), "first")


ON_ARM = {"num_envs": 16, "net": (32, 32), "n_steps": 25, "learning_rate": 1e-5}


def trained(base: str, runs: Path, name: str, **more):
    """With a rate so low that the policy hardly leaves its base: what it reaches is the base's."""
    tuning = ResidualPPOConfig(base=base, **ON_ARM)
    config = TrainConfig(
        task="reach",
        reward="task",
        learner="residual-ppo",
        tuning=tuning,
        env_steps=800,
        episodes=40,
        eval_points=0,
        runs=runs,
        name=name,
        **more,
    )
    return robo_rl.train(config)


def test_residual_bundle_runs_on_the_arm_and_as_a_base(first, tmp_path, capsys):
    bundle = PolicyBundle.load(first.bundle)
    assert {p.name for p in first.bundle.iterdir()} == {
        "policy.onnx",
        "golden.npz",
        "manifest.json",
    }
    assert bundle.manifest.training["base"]["name"] == "controller:approach"
    env = sims.make("reach", 40, seed=7)
    obs = env.reset()
    np.testing.assert_allclose(bundle.act(obs)[0], first.policy.act(obs), atol=1e-5)
    # It leans on what it touches, and is eased.
    arm = run_emulated(first.bundle, episodes=3, noise=0.0)
    assert arm.ended == {"done": 3} and arm.successes == 3, arm.reasons
    again = robo_rl.load(first.run.path)
    assert again.evaluation == first.evaluation and again.evaluation.success > 0.5
    assert (
        main(
            [
                "evaluate",
                str(first.run.path),
                "--episodes",
                "40",
                "--eval-seeds",
                "validation",
                "--json",
            ]
        )
        == 0
    )
    judged = json.loads(capsys.readouterr().out)
    # On one observation the two differ by 6e-8; where a gripper leans on a cube that is a tenth of
    # a radian after 40 steps, and who is judged by the last one may have slipped off.
    assert abs(judged["successes"] - first.evaluation.successes) <= 2
    assert main(["report", str(first.run.path)]) == 0
    assert "controller:approach" in (first.run.path / "report.html").read_text()
    # As a run and as a bundle it is the same base, and 0 is exactly it.
    for said in (first.run.path, first.bundle):
        learner = make_learner(
            ResidualSACConfig(
                base=str(said), num_envs=4, net=(16,), buffer_size=64, normalise_obs=False
            ),
            sims.make("reach", 4),
        )
        np.testing.assert_array_equal(learner.act(obs), load_policy(first.run.path).act(obs))
    env.close()


def test_residual_run_resumes_with_its_base(first):
    longer = robo_rl.train(TrainConfig(**_asked(first.run), env_steps=1_200), resume=first.run.path)
    assert json.loads((first.run.path / "result.json").read_text())["env_steps"] == 1_200
    assert longer.bundle is not None


def _asked(run: RunDir) -> dict:
    """What a config must say again of a run that was tuned."""
    tuning = ResidualPPOConfig(base=run.config["tuning"]["base"], **ON_ARM)
    return {
        "task": "reach",
        "reward": "task",
        "learner": "residual-ppo",
        "tuning": tuning,
        "eval_points": 0,
        "runs": run.path.parent,
        "name": run.path.name,
        "episodes": 40,
    }


def test_invalid_base_is_a_one_line_error(first, base, tmp_path):
    made = {name: sims.make(name, 2) for name in ("reach", "push", "lift")}

    def refusal(said: Path | str, sim) -> str:
        with pytest.raises(ValueError) as refused:
            load_base(str(said), sim)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    assert "give --base RUN, BUNDLE" in refusal("", made["reach"])
    assert "available: approach, zero" in refusal("controller:expert", made["reach"])
    assert "no run, bundle, .onnx file or controller" in refusal(
        tmp_path / "nothing", made["reach"]
    )
    flat = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Tanh", ["obs"], ["action"])],
            "flat",
            [onnx.helper.make_tensor_value_info("obs", 1, [45])],
            [onnx.helper.make_tensor_value_info("action", 1, [45])],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 18)],
        ir_version=10,
    )
    onnx.save(flat, tmp_path / "flat.onnx")
    assert "must take obs (rows, width) alone" in refusal(tmp_path / "flat.onnx", made["reach"])
    assert "is not a readable ONNX policy" in refusal(Path(__file__), made["reach"])
    assert "task must be that of this run, push, got reach" in refusal(first.bundle, made["push"])
    other = refusal(first.bundle, sims.make("reach", 2, robot="ur5e"))
    assert "arm must be that of this run, ur5e, got so101" in other
    other = refusal(first.bundle, sims.make("reach", 2, tip_step=0.01))
    assert "action must be that of this run, 1 moves" in other and "0.01 m" in other
    other = refusal(first.bundle, sims.make("reach", 2, control_dt=0.1))
    assert "control_dt must be that of this run, 0.1 s, got 0.05 s" in other
    assert "observation's width must be that of this run, 45, got 4" in refusal(base, made["reach"])
    unfinished = RunDir.create(tmp_path / "run", first.run.config)
    assert "has not finished" in refusal(unfinished.path, made["reach"])


def test_residual_presets_from_options(capsys):
    command = parse_train(
        ["push", "--learner", "residual-td3", "--base", "runs/one", "--tuning.scale", "0.1"]
    )
    assert command.tuning.num_envs == OffPolicyConfig.num_envs
    assert command.tuning == dataclasses.replace(
        LEARNERS["residual-td3"].config(), base="runs/one", scale=0.1
    )
    same = parse_train(["push", "--learner", "residual-td3", "--tuning.base", "runs/one"])
    assert same.tuning.base == "runs/one"
    with pytest.raises(SystemExit):
        parse_train(["push", "--learner", "residual-sac", "--help"])
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--base" in told and "controller:NAME" in told and "--tuning.critic-updates" in told
    with pytest.raises(ValueError, match=r"scale must be in \(0, 2\], got 0"):
        ResidualPPOConfig(scale=0)
    assert (
        main(
            [
                "train",
                "reach",
                "--reward",
                "task",
                "--learner",
                "residual-ppo",
                "--episodes",
                "8",
                "--name",
                "none",
                "--runs",
                "nowhere",
            ]
        )
        == 1
    )
    told = capsys.readouterr().err
    assert "a residual learner needs a base policy" in told
    assert "baselines:" not in told  # it is said before anything is measured or made
    assert not Path("nowhere").exists()
