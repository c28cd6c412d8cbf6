"""Other people's environments: in this process, and in an interpreter of their own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import tomllib
import warnings
from importlib import metadata
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from stable_baselines3.common.env_util import make_vec_env

import sims
from robo_rl.cli import main
from robo_rl.evaluation.evaluate import Evaluation, evaluate
from robo_rl.goals.external_task import ExternalTask
from robo_rl.rewards.gym_wrapper import WithFrames
from robo_rl.rollout.vec_sim import VecSim, episode_steps
from sims.external.gymnasium_env import ExternalEnvError, GymnasiumEnv, NoTimeLimit
from sims.rendering.resize import resize_frames
from sims.tasks import REMOVED

Array = np.ndarray

PROTOCOL = [name for name in (*VecSim.__annotations__, *vars(VecSim)) if name[0] != "_"]

# A small env of somebody else's, with everything that can go wrong in one.
THEIRS = """
import os, sys, time
import gymnasium, numpy as np
from gymnasium.spaces import Box, Dict, MultiDiscrete

class Lift(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    def __init__(self, render_mode=None, fault="", discrete=False):
        self.observation_space = Dict({"height": Box(-9, 9, (1,)), "goal": Box(-9, 9, (1,))})
        self.action_space = MultiDiscrete([3, 2]) if discrete else Box(-2.0, 6.0, (1,), np.float32)
        self.fault, self.render_mode = fault, render_mode
    def _obs(self):
        return {"height": np.array([self.z], np.float32), "goal": np.array([1.0], np.float32)}
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.z, self.t = float(self.np_random.uniform(-1, 0)), 0
        print("a word on stdout that is no answer")
        return self._obs(), {}
    def step(self, action):
        assert self.action_space.contains(action), action
        self.t += 1
        self.z += 0.1 * float(action[0])
        if self.t == 3:
            if self.fault == "crash": os._exit(7)
            if self.fault == "segv": print("last words", file=sys.stderr); os.abort()
            if self.fault == "hang": time.sleep(60)
            if self.fault == "raise": raise RuntimeError("the motor\\nis hot")
            if self.fault == "nan": self.z = float("nan")
        return self._obs(), self.z, self.z > 2.0, False, {"is_success": self.z > 1.0}
    def render(self):
        return np.full((4, 6, 3), 10 * self.t, np.uint8)

gymnasium.register("Lift-v0", entry_point=Lift, max_episode_steps=8)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second interpreter that knows gymnasium, numpy and ``theirs``, and nothing of ours."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "theirs.py").write_text(THEIRS)
    packages = folder / "packages"
    packages.mkdir()
    for name in (
        "gymnasium",
        "numpy",
        "numpy.libs",
        "cloudpickle",
        "farama_notifications",
        "typing_extensions.py",
    ):
        found = Path(gymnasium.__file__).parents[1] / name
        if found.exists():
            (packages / name).symlink_to(found)
    program = folder / "python"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={folder}:{packages} exec {sys.base_prefix}/bin/python3 -s "$@"\n'
    )
    program.chmod(0o755)
    check = (
        "import gymnasium, numpy, theirs\ntry: import mujoco\nexcept ImportError: print('apart')"
    )
    done = subprocess.run([program, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "apart"
    return program


def lift(python: Path | str, rows: int = 3, **kwargs: object) -> GymnasiumEnv:
    options = {"import": "theirs", "kwargs": kwargs}
    return GymnasiumEnv("gym:Lift-v0", rows, seed=5, frames=True, python=python, **options)


def test_gymnasium_v5_env_matches_gymnasium() -> None:
    env = GymnasiumEnv("gym:Pusher-v5", 2, seed=1)
    assert all(hasattr(env, name) for name in PROTOCOL) and env.act_dim == 7 and env.obs_dim == 23
    assert env.control_dt == pytest.approx(0.05) and episode_steps(env) == 100
    seeds = [int(np.random.SeedSequence((1, k)).generate_state(1)[0]) for k in range(2)]
    twins = [gymnasium.make("Pusher-v5") for _ in range(2)]
    want = np.stack([t.reset(seed=s)[0] for t, s in zip(twins, seeds, strict=True)])
    assert (env.reset() == want.astype(np.float32)).all()
    rng = np.random.default_rng(0)
    for step in range(100):
        action = rng.uniform(-1, 1, (2, 7))
        result = env.step(action)
        for row, twin in enumerate(twins):
            obs, reward, terminated, truncated, _ = twin.step((2 * action[row]).astype(np.float32))
            assert (result.obs[row] == obs.astype(np.float32)).all()
            assert result.reward[row] == np.float32(reward)
            assert (result.terminated[row], result.truncated[row]) == (terminated, truncated)
        assert result.truncated.all() == (step == 99)
        assert "success" not in result.info  # this env does not say
    env.close()


def test_gymnasium_env_rows_are_independent_and_masked_reset() -> None:
    wide, alone = (
        GymnasiumEnv("gym:Reacher-v5", 3, seed=2),
        GymnasiumEnv("gym:Reacher-v5", 1, seed=2),
    )
    first = wide.reset()
    assert (alone.reset()[0] == first[0]).all() and (first[0] != first[1]).any()
    after = wide.reset(np.array([False, True, False]))
    assert (after[[0, 2]] == first[[0, 2]]).all() and (after[1] != first[1]).any()


def test_env_in_another_interpreter_gives_the_same_numbers(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(python.parent))
    near, far = lift(""), lift(python)
    assert all(hasattr(far, name) for name in PROTOCOL)
    assert (far.obs_dim, far.act_dim, far.control_dt) == (2, 1, 0.05)
    assert (near.reset() == far.reset()).all()
    assert far.render().shape == (3, 4, 6, 3) and (far.render() == 0).all()
    rng, ended = np.random.default_rng(0), False
    for _ in range(20):
        action = rng.uniform(-1, 1, (3, 1))
        one, two = near.step(action), far.step(action)
        for field in ("obs", "reward", "terminated", "truncated"):
            assert (getattr(one, field) == getattr(two, field)).all()
        assert (one.info["success"] == two.info["success"]).all()
        assert (near.render(np.array([2, 0])) == far.render(np.array([2, 0]))).all()
        done = one.terminated | one.truncated
        if done.any():
            ended = True
            held = far.step(action)  # a row that has ended waits
            near.step(action)
            assert (held.obs[done] == one.obs[done]).all() and (held.reward[done] == 0).all()
            assert (near.reset(done) == far.reset(done)).all()
    assert ended
    assert far.signals()["obs"].shape == (3, 2)
    process = far._side._process
    far.close()
    far.close()
    assert process.poll() is not None
    with pytest.raises(ExternalEnvError, match="is closed; create a new one"):
        far.step(np.zeros((3, 1)))


def test_actions_are_scaled_to_the_envs_bounds(python: Path) -> None:
    env = lift(python, 1)
    start = env.reset()[0]
    height = int(np.argmax(start != 1.0))  # the other column is the goal's
    for action, moved in ((-1.0, -0.2), (1.0, 0.6), (0.0, 0.2)):
        before = env.signals()["obs"][0, height]
        assert env.step(np.array([[action]])).obs[0, height] - before == pytest.approx(
            moved, abs=1e-5
        )
    env.close()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("crash", r"gym:Lift-v0 in .*python died \(exit status 7\)"),
        ("segv", r"died \(exit status -6\): .*"),
        ("raise", r"failed: RuntimeError: the motor is hot$"),
        ("hang", r"gave no answer for 1 s; it was ended"),
    ],
)
def test_external_env_failure_is_a_one_line_error(python: Path, fault: str, message: str) -> None:
    env = lift(python, 2, fault=fault)
    env.reset()
    env._side._timeout = 1.0 if fault == "hang" else 60.0
    pid = env._side._process.pid
    begun = time.monotonic()
    with pytest.raises(ExternalEnvError, match=message) as caught:
        for _ in range(4):
            env.step(np.zeros((2, 1)))
    assert "\n" not in str(caught.value) and time.monotonic() - begun < 30
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nonfinite_env_is_marked_diverged(python: Path) -> None:
    env = lift(python, 2, fault="nan")
    env.reset()
    results = [env.step(np.zeros((2, 1))) for _ in range(3)]
    assert not results[1].info["diverged"].any() and results[2].info["diverged"].all()
    assert results[2].truncated.all() and (results[2].obs == results[1].obs).all()
    wild = np.array([[np.nan], [0.0]])
    env.close()
    env = lift(python, 2)
    env.reset()
    assert env.step(wild).info["diverged"].tolist() == [True, False]
    env.close()


def test_unsupported_gymnasium_envs_are_refused(python: Path) -> None:
    with pytest.raises(
        ExternalEnvError, match=r"Lift-v0 has actions MultiDiscrete\(\[3 2\]\): expected a bounded"
    ):
        lift(python, 1, discrete=True)
    with pytest.raises(ValueError, match="gym:Nothing-v9 cannot be created: Environment `Nothing`"):
        GymnasiumEnv("gym:Nothing-v9", 1)
    with pytest.raises(ValueError, match="cannot find Python interpreter '/no/python'"):
        GymnasiumEnv("gym:Pusher-v5", 1, python="/no/python")
    with pytest.raises(ValueError, match="a Gymnasium env is named gym:ID, got 'Pusher-v5'"):
        GymnasiumEnv("Pusher-v5", 1)
    with pytest.raises(ValueError, match="was created without frames; create it with frames=True"):
        GymnasiumEnv("gym:Pusher-v5", 1).render()


def test_make_accepts_the_gym_prefix() -> None:
    env = sims.make("gym:Reacher-v5", 2, seed=3)
    assert isinstance(env, GymnasiumEnv)
    with pytest.raises(
        ValueError, match="gym:Reacher-v5 is a Gymnasium env and takes no robot or goal"
    ):
        sims.make("gym:Reacher-v5", 2, goal="reach")


def test_train_and_evaluate_on_a_gymnasium_env(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"gym:Reacher-v5 --reward task --env-python {sys.executable} --name reacher"
    sizes = "--env-steps 256 --tuning.num-envs 4 --tuning.n-steps 32 --eval-episodes 4 --episodes 6"
    assert main(["train", *asked.split(), *sizes.split(), "--runs", str(tmp_path)]) == 0
    assert "return -" in capsys.readouterr().out
    same = ["--episodes", "6", "--eval-seeds", "validation", "--json"]
    assert main(["evaluate", str(tmp_path / "reacher"), *same]) == 0
    told = capsys.readouterr()
    again = json.loads(told.out)
    assert "evaluate" in told.err and "untrained" in told.err and "100 %" in told.err
    first = json.loads((tmp_path / "reacher" / "result.json").read_text())["evaluation"]
    assert again["return_mean"] == pytest.approx(first["return_mean"], rel=1e-3)
    assert again["successes"] is None  # Gymnasium's reacher reports none
    page = (tmp_path / "reacher" / "report.html").read_text()
    assert "<h1>gym:Reacher-v5</h1>" in page and "<p>Return -" in page
    asked = ["train", "gym:Reacher-v5", "--reward", "task", "--stop-at", "0.9"]
    assert main([*asked, "--runs", str(tmp_path / "none")]) == 1
    assert "--stop-at needs a success rate, and gym:Reacher-v5 reports" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert main(["train", "gym:Reacher-v5", "--robot", "ur5e", "--reward", "task"]) == 1
    assert "is an external environment: leave out --robot" in capsys.readouterr().err


class Climb(gymnasium.Env):
    """Climbs by its action, and reports from its second step on whether it is above 1."""

    observation_space = gymnasium.spaces.Box(-9, 9, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.z, self.t = float(self.np_random.uniform(-0.5, 0.5)), 0
        return np.array([self.z], np.float32), {}

    def step(self, action):
        self.t, self.z = self.t + 1, self.z + float(action[0])
        said = {"success": self.z > 1.0} if self.t > 1 else {}
        return np.array([self.z], np.float32), self.z, self.z > 2.5, False, said


gymnasium.register("Climb-v0", entry_point=Climb, max_episode_steps=4)
CLIMB = ExternalTask(name="gym:Climb-v0")


def test_a_policy_is_evaluated_by_return_and_by_the_success_that_the_env_reports() -> None:
    """As by hand, in more episodes than environments, each one of those that its seed gives."""
    found = evaluate(CLIMB, lambda obs: np.where(obs > 0, 1.0, 0.0), episodes=40, seed=7)
    env = CLIMB.make_env(32, 7)
    start = np.concatenate([env.reset().ravel(), env.reset().ravel()])[:40]
    env.close()
    up = start > 0
    returns = [sum(z + min(k, 3) for k in (1, 2, 3)) if z > 0 else 4 * z for z in start]
    assert (found.episodes, found.successes) == (40, int(up.sum())) and 0 < up.sum() < 40
    assert found.return_mean == pytest.approx(np.mean(returns), abs=1e-5)
    assert found.floors.still.successes == 0 and found.floors.still.episodes == 40
    assert found.baseline_returns["doing nothing"] == pytest.approx(4 * start.mean(), abs=1e-5)
    line = found.line()
    assert line.startswith(f"return {found.return_mean:.1f} (deviation ") and "success " in line
    assert Evaluation.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    alone = evaluate(CLIMB, lambda obs: obs, episodes=4, seed=7, baselines=False)
    assert alone.floors is None and alone.baseline_returns is None


def test_results_of_older_runs_open_as_they_were_written() -> None:
    rate = {"successes": 1, "episodes": 100, "success": 0.01, "low": 0.0, "high": 0.1}
    old = {
        "episodes": 100,
        "return_mean": 3411.23,
        "return_std": 20.06,
        "successes": None,
        "seed": 5,
        "floors": None,
        "beneath": {"doing nothing": 1.0, "untrained": 2.0},
    }
    found = Evaluation.from_dict(old)
    unjudged = "success not measured: the env does not report it"
    assert found.by_return and found.success is found.interval is None and found.above_floor
    assert found.line() == (
        f"return 3411.2 (deviation 20.1, n=100); doing nothing 1.0; untrained 2.0; {unjudged}"
    )
    assert {name: found.as_dict()[name] for name in old} == old
    floors = {"still": rate, "untrained": rate}
    judged = Evaluation.from_dict({**old, "successes": 50, "floors": floors})
    assert "untrained 2.0; success 50.0 % (40.4-59.6, n=100); doing nothing 1.0 %" in judged.line()
    assert Evaluation.from_dict({"goal": ""}) is None is Evaluation.from_dict(None)


SUITES = {  # of other people, whose pins clash with ours
    "fetch": ("gym:gymnasium_robotics:FetchReachDense-v4", {}, 50),
    "metaworld": ("gym:metaworld:Meta-World/MT1", {"env_name": "reach-v3", "seed": "$SEED"}, 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_external_suites_run_in_their_own_environments(
    suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.peers import environment, make_environment

    if not environment(suite):
        make_environment(suite)
    theirs, (name, kwargs, length) = environment(suite), SUITES[suite]
    env, again = (
        GymnasiumEnv(
            name,
            2,
            seed=4,
            frames=True,
            python=theirs,
            kwargs=kwargs | ({"camera_name": "corner"} if suite == "metaworld" else {}),
        )
        for _ in range(2)
    )
    first = env.reset()
    assert (again.reset() == first).all() and (first[0] != first[1]).any()
    assert env.max_steps == length and env.act_dim == 4
    rng, before = np.random.default_rng(0), env.render()
    for step in range(1, length + 1):
        action = rng.uniform(-1, 1, (2, 4))
        result, twin = env.step(action), again.step(action)
        assert (result.obs == twin.obs).all() and (result.reward == twin.reward).all()
        assert np.isfinite(result.obs).all() and result.info["success"].shape == (2,)
        assert result.truncated.all() == (step == length)
    after = env.render()
    assert before.shape[0] == 2 and before.shape[3] == 3 and (after != before).any()
    env.close()
    again.close()

    asked = f"{name} --reward task --env-python {theirs} --name theirs --runs {tmp_path}"
    sizes = "--env-steps 1024 --tuning.num-envs 4 --tuning.n-steps 128 --episodes 4"
    given = ["--env-kwargs", json.dumps(kwargs)]
    assert main(["train", *asked.split(), *sizes.split(), *given]) == 0
    said = capsys.readouterr().out
    assert "return " in said and "success " in said and "n=4" in said
    assert "doing nothing " in said and "untrained " in said
    assert main(["evaluate", str(tmp_path / "theirs"), "--episodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["successes"] in range(5)


def test_env_kwargs_must_be_a_json_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["train", "gym:Reacher-v5", "--reward", "task", "--runs", str(tmp_path)]
    for wrong in ("[1]", "reach-v3"):
        assert main([*asked, "--env-kwargs", wrong]) == 1
        assert f"env_kwargs must be a JSON object, got '{wrong}'" in capsys.readouterr().err
    assert main([*asked, "--env-kwargs", '{"nonsense": 1}']) == 1
    assert "gym:Reacher-v5 cannot be created" in capsys.readouterr().err


def test_gymnasium_mujoco_envs_render_headless() -> None:
    """Also after ours, which has MuJoCo loaded by then; who asks for a screen hears of it."""
    code = """
import sims
from sims.external.gymnasium_env import GymnasiumEnv
sims.make("reach", 1).reset()
env = GymnasiumEnv("gym:Reacher-v5", 2, frames=True, frame_size=(32, 40))
env.reset()
print(env.render().shape)
"""
    bare = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MUJOCO_GL")}
    for more, says in (
        ({}, "(2, 32, 40, 3)"),
        ({"MUJOCO_GL": "glfw"}, "ExternalEnvError: gym:Reacher"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env=bare | more, capture_output=True, text=True
        )
        assert says in done.stdout + done.stderr


@pytest.mark.parametrize("python", ["", sys.executable])
def test_small_frames_render_at_size_and_match_large_ones(python: str) -> None:
    small, large = (
        GymnasiumEnv("gym:Reacher-v5", 2, seed=1, frames=True, frame_size=size, python=python)
        for size in ((96, 96), None)
    )
    with contextlib.closing(small), contextlib.closing(large):
        small.reset(), large.reset()
        drawn, whole = small.render(), large.render()
        assert whole.shape == (2, 480, 480, 3)
        shrunk = resize_frames(whole, (96, 96)).astype(float)
        assert 0 < np.abs(drawn - shrunk).mean() < 3.0  # not the same frames, shrunk
        assert np.abs(drawn[::-1] - shrunk).mean() > 2 * np.abs(drawn - shrunk).mean()


def test_env_module_that_imports_mujoco_renders_headless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MuJoCo looks how it is to draw when it is imported."""
    (tmp_path / "drawn_env.py").write_text(
        "import gymnasium, mujoco, numpy as np\n"
        "from gymnasium.spaces import Box\n"
        "class Still(gymnasium.Env):\n"
        "    metadata = {'render_modes': ['rgb_array']}\n"
        "    observation_space = action_space = Box(-1, 1, (1,))\n"
        "    def __init__(self, render_mode=None):\n"
        "        self.model = mujoco.MjModel.from_xml_string('<mujoco/>')\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        return np.zeros(1, np.float32), {}\n"
        "    def render(self):\n"
        "        data = mujoco.MjData(self.model)\n"
        "        with mujoco.Renderer(self.model, 16, 16) as renderer:\n"
        "            renderer.update_scene(data)\n"
        "            return renderer.render()\n"
        "gymnasium.register('Still-v0', Still)\n"
    )
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    options = {"python": sys.executable, "import": "drawn_env"}
    env = GymnasiumEnv("gym:Still-v0", 1, frames=True, frame_size=(16, 16), **options)
    env.reset()
    assert env.render().shape == (1, 16, 16, 3)
    env.close()


def test_train_extra_suffices_for_gymnasium_mujoco_envs() -> None:
    """Whatever package such an env loads is one that ``pip install 'robo-rl[train]'`` brings."""
    wanted = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    open_, brought = [*wanted["dependencies"], *wanted["optional-dependencies"]["train"]], set()
    while open_:
        requirement = Requirement(open_.pop())
        name = canonicalize_name(requirement.name)
        if name in brought or (requirement.marker and not requirement.marker.evaluate()):
            continue
        brought.add(name)
        with contextlib.suppress(metadata.PackageNotFoundError):
            open_ += metadata.requires(name) or []
    code = (
        "import sys, gymnasium\nbefore = set(sys.modules)\n"
        "gymnasium.make('Reacher-v5')\nprint(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    owners = metadata.packages_distributions()
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    needed = {canonicalize_name(d) for name in loaded for d in owners.get(name, ())}
    assert "imageio" in needed and needed <= brought


class Endless(gymnasium.Env):
    """Never ends by itself; it succeeds in its tenth step alone, and renders into one array."""

    observation_space = Box(-np.inf, np.inf, (1,))
    action_space = Box(-1.0, 1.0, (1,))
    metadata = {"render_modes": ["rgb_array"]}
    render_mode = "rgb_array"

    def __init__(self, render_mode: str | None = None) -> None:
        self.picture = np.zeros((4, 4, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        self.t = 0
        return self.obs, {}

    @property
    def obs(self) -> np.ndarray:
        return np.array([self.t], np.float32)

    def step(self, action):
        self.t += 1
        return self.obs, 0.0, False, False, {"success": self.t == 10}

    def render(self):
        self.picture[:] = 10 * self.t
        return self.picture


gymnasium.register("Endless-v0", entry_point=Endless)
gymnasium.register("Late-v0", entry_point=Endless, max_episode_steps=20)


def test_an_env_without_a_time_limit_is_given_one_that_is_stated() -> None:
    """In each environment by itself, from its own reset on."""
    with pytest.warns(NoTimeLimit, match="gym:Endless-v0 has no time limit: .* after 1,000 steps"):
        sim = GymnasiumEnv("gym:Endless-v0", 2)
    assert sim.max_steps == 1000
    sim.reset()
    ends = []
    for t in range(1500):
        over = sim.step(np.zeros((2, 1))).truncated
        ends += [(t + 1, int(i)) for i in np.flatnonzero(over)]
        mask = over | (np.array([False, True]) & (t == 299))
        if mask.any():
            sim.reset(mask)
    assert ends == [(1000, 0), (1300, 1)]
    sim.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim = GymnasiumEnv("gym:Endless-v0", 1, kwargs={"max_episode_steps": 30})
    assert sim.max_steps == 30
    sim.close()


def test_success_is_told_at_the_end_and_at_any_step() -> None:
    late = ExternalTask(name="gym:Late-v0")
    found = evaluate(late, lambda obs: np.zeros((len(obs), 1)), episodes=40)
    assert (found.successes, found.successes_once) == (0, 40)
    assert (
        "success 0.0 % (0.0-8.8, n=40) at the end of an episode, 100.0 % (91.2-100.0) at any"
        in (found.line())
    )
    assert Evaluation.from_dict(found.as_dict()) == found
    old = {k: v for k, v in found.as_dict().items() if k != "successes_once"}
    assert "at any step" not in Evaluation.from_dict(old).line()


def test_frames_of_an_env_that_renders_into_one_array_are_copied() -> None:
    """That of an episode's last step shows that step, and not the reset after it."""
    envs = make_vec_env(
        "Late-v0", 2, wrapper_class=WithFrames, env_kwargs={"render_mode": "rgb_array"}
    )
    envs.reset()
    frames = [envs.step(np.zeros((2, 1)))[3][1]["frame"] for _ in range(20)]
    assert [int(frame[0, 0, 0]) for frame in frames] == [10 * t for t in range(1, 21)]
    envs.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = GymnasiumEnv("gym:Endless-v0", 1, frames=True)
    sim.reset()
    first = sim.render()
    sim.step(np.zeros((1, 1)))
    assert (first == 0).all() and (sim.render() == 10).all()
    sim.close()


UNSTABLE = """
import gymnasium, mujoco, numpy as np
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv

class Unstable(HalfCheetahEnv):
    def step(self, action):
        self.data.qvel[:] = 1e20
        return super().step(action)

gymnasium.register("Unstable-v0", entry_point=Unstable, max_episode_steps=20)
"""


@pytest.mark.parametrize("python", ["", sys.executable])
def test_mujocos_warnings_leave_no_file(python: str, tmp_path: Path) -> None:
    """Where the command was given, or the far interpreter began; the first is on stderr."""
    (tmp_path / "unstable.py").write_text(UNSTABLE)
    code = (
        "import sims, numpy as np\n"
        "if __name__ == '__main__':\n"
        f"    env = sims.make('gym:unstable:Unstable-v0', 2, python={python!r})\n"
        "    env.reset()\n"
        "    for _ in range(3): env.step(np.zeros((2, env.act_dim)))\n"
        "    own = sims.make('hopper', 64, num_threads=2)\n"  # on their threads
        "    own.reset()\n"
        "    own.views.qvel[:] = 1e20\n"
        "    own.step(np.zeros((64, own.act_dim)))\n"
        "    env.close()\n"
    )
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["unstable.py"]
    assert done.stderr.count("MuJoCo: Nan, Inf or huge value") == 1


@pytest.mark.parametrize(("name", "instead"), REMOVED.items())
def test_removed_bodies_name_the_gymnasium_environment(name: str, instead: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' was removed: use .* train {instead} --reward"):
        sims.make(name, 1)
    assert instead.removeprefix("gym:") in gymnasium.registry


@pytest.mark.parametrize(
    "command",
    [
        "train swimmer --reward task",
        "list signals swimmer",
        "reward train --task swimmer --out clip.safetensors",
        "demos swimmer swimmer-v0",
    ],
)
def test_commands_refuse_removed_bodies(
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 1
    said = capsys.readouterr().err
    assert "task 'swimmer' was removed: use" in said and "gym:Swimmer-v5" in said
    assert len(said.strip().splitlines()) == 1


def test_old_runs_of_a_removed_body_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "hopper --reward task --env-steps 256 --episodes 2 --name old --eval-points 0"
    asked += " --tuning.num-envs 4 --tuning.net 8 --runs"
    assert main(["train", *asked.split(), str(tmp_path)]) == 0
    config = tmp_path / "old" / "config.json"
    config.write_text(config.read_text().replace('"hopper"', '"swimmer"'))
    for command in (["evaluate"], ["train", "--resume"]):
        capsys.readouterr()
        assert main([*command, str(tmp_path / "old")]) == 1
        assert "task 'swimmer' was removed: use" in capsys.readouterr().err, command
