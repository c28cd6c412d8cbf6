"""Demonstrations: an existing library reads them, noise and failures are what was asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import minari
import numpy as np
import pytest

import sims
from robo_rl.cli import main
from robo_rl.evaluation.evaluate import VALIDATION_SEED
from robo_rl.rollout.interventions import Interventions
from robo_rl.vision.episodes import EpisodesConfig, play_task_episodes
from sims import BatchEnv
from sims.envs.demonstrations import DemoConfig, minari_name, write_demos

A_FORMULA = json.dumps(["touch", ["gripper", "blue_ball"], {"within": 0.0}])


def test_minari_loads_the_written_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "robo" / "reach-v0"
    to.parent.mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    asked = "--episodes 20 --num-envs 8 --noise 0.1 --failures 0.4 --goal above_blue_ball --json"
    assert main(["demos", "reach", str(to), *asked.split()]) == 0
    told = json.loads(capsys.readouterr().out)
    data = minari.load_dataset("robo/reach-v0")
    assert data.total_episodes == told["episodes"] == 20 and data.total_steps == told["steps"]
    env = sims.make("reach", 1)
    assert data.observation_space.shape == (env.obs_dim,)
    assert data.action_space.shape == (env.act_dim,) and (data.action_space.high == 1).all()
    successes = 0
    for episode in data.iterate_episodes():
        t = len(episode)
        assert episode.observations.shape == (t + 1, env.obs_dim)
        assert episode.actions.shape == (t, env.act_dim) and np.isfinite(episode.observations).all()
        assert episode.truncations[-1] and not episode.truncations[:-1].any()
        assert len(episode.infos["success"]) == t + 1
        successes += bool(episode.infos["success"][-1])
    lost = [m["lost"] for m in data.storage.get_episode_metadata(data.episode_indices)]
    won = [m["success"] for m in data.storage.get_episode_metadata(data.episode_indices)]
    assert successes == sum(won) == told["successes"] and sum(lost) == told["lost"] > 0
    won, lost = np.array(won), np.array(lost)
    assert won[~lost].mean() > 0.8 and won[lost].mean() < 0.6
    assert data.sample_episodes(3)
    listed = minari.list_local_datasets()  # it warns of, and leaves out, what is misnamed
    assert listed["robo/reach-v0"]["dataset_size"] > 0
    again = data.recover_environment()
    assert again.unwrapped.sim.task.goal == "above_blue_ball"
    assert again.observation_space.shape == (env.obs_dim,)
    assert main(["demos", "reach", str(to)]) == 1
    assert "already exists; give a new folder" in capsys.readouterr().err


def test_minari_name_follows_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert minari_name(tmp_path / "robo" / "reach-v0") == "robo/reach-v0"
    assert minari_name(tmp_path / "reach-v3") == "reach-v3"
    assert minari_name(tmp_path.parent / "elsewhere" / "reach-v0") == "reach-v0"
    assert minari_name(tmp_path / "no version") == "no-version-v0"


def test_demos_replay_to_the_stored_observations(tmp_path: Path) -> None:
    """Playing the stored actions from the same start gives the stored observations."""
    task = sims.make_task("push")
    write_demos(task, tmp_path / "push", DemoConfig(episodes=5, num_envs=4, seed=7, noise=0.2))
    data = minari.MinariDataset(tmp_path / "push" / "data")
    env = BatchEnv(task, 4, seed=7)
    obs = env.reset()
    episodes = list(data)[:4]
    for t in range(env.max_steps):
        for row, episode in enumerate(episodes):
            assert (episode.observations[t] == obs[row]).all()
        result = env.step(np.stack([episode.actions[t] for episode in episodes]))
        obs = result.obs
        assert (result.reward == [episode.rewards[t] for episode in episodes]).all()


def test_demos_are_seeded_and_noise_changes_actions(tmp_path: Path) -> None:
    task, stored = sims.make_task("reach"), {}
    for name, noise in (("one", 0.0), ("two", 0.0), ("noisy", 0.5)):
        write_demos(task, tmp_path / name, DemoConfig(episodes=4, num_envs=4, noise=noise))
        stored[name] = [e.actions for e in minari.MinariDataset(tmp_path / name / "data")]
    assert all((a == b).all() for a, b in zip(stored["one"], stored["two"], strict=True))
    gap = np.abs(np.stack(stored["noisy"]) - np.stack(stored["one"])).mean()
    assert gap > 0.1


def test_demos_accept_goals_as_train_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--episodes", "2", "--goal"]
    assert main(["demos", "reach", str(tmp_path / "a"), *few, "Go above the blue ball!"]) == 0
    about = json.loads((tmp_path / "a" / "data" / "metadata.json").read_text())
    assert about["task"]["goal"] == "above_blue_ball"
    for command in (["demos", "reach", str(tmp_path / "b")], ["teleop", "--emulate"]):
        assert main([*command, "--goal", "touch the purple cube"]) == 1
        assert "no such object here: 'purple cube'. Did you mean 1: " in capsys.readouterr().err


def test_interrupted_demos_leave_no_files(tmp_path: Path) -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_demos(sims.make_task("reach"), tmp_path / "a", DemoConfig(episodes=4), stop)
    assert not list(tmp_path.iterdir())


def test_demos_memory_is_constant_in_episodes(tmp_path: Path) -> None:
    task, peaks = sims.make_task("reach", episode_s=1.0), []
    for episodes in (4, 8, 60):  # the first fills caches
        tracemalloc.start()
        config = DemoConfig(episodes=episodes, num_envs=4)
        write_demos(task, tmp_path / str(episodes), config)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.25 * peaks[1]


# Writes a million steps and tells its peak memory, KiB, after the first round and at the end.
MILLION = """
import resource, sys
from pathlib import Path
import sims
from sims.envs.demonstrations import DemoConfig, write_demos
task, peaks = sims.make_task("reach"), []
episodes = -(-1_000_000 // round(task.episode_s / task.control_dt))
demos = write_demos(
    task, Path(sys.argv[1]), DemoConfig(episodes=episodes, num_envs=256),
    lambda share: peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
)
print(demos.steps, peaks[0], peaks[-1])
"""


@pytest.mark.slow
def test_demos_write_a_million_steps_without_holding_them(tmp_path: Path) -> None:
    to = tmp_path / "million"
    done = subprocess.run(
        [sys.executable, "-c", MILLION, str(to)], capture_output=True, text=True, check=True
    )
    steps, first, last = map(int, done.stdout.split())
    written = (to / "data" / "main_data.hdf5").stat().st_size / 1024
    print(f"{steps} steps, {written / 1024:.0f} MiB; peak {first} KiB, then {last} KiB")
    assert steps >= 1_000_000 and minari.MinariDataset(to / "data").total_steps == steps
    assert last - first < 0.25 * written


def test_demos_without_expert_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'hopper' has no scripted expert"):
        write_demos(sims.make_task("hopper"), tmp_path / "none")
    told = sims.make_task("push", goal=A_FORMULA)  # its expert would push something else
    with pytest.raises(ValueError, match=r"solves only the built-in goals .* train a policy"):
        write_demos(told, tmp_path / "none")
    with pytest.raises(ValueError, match="has none for this goal"):
        Interventions(BatchEnv(told, 2), 0.5, until=100)
    with pytest.raises(ValueError, match="has no expert for this goal"):
        play_task_episodes(told, EpisodesConfig(demonstrations=1))
    with pytest.raises(ValueError, match=r"failures in \[0, 1\], got 0.1, 2"):
        DemoConfig(failures=2)
    with pytest.raises(ValueError, match="seed must be in"):
        DemoConfig(seed=VALIDATION_SEED)  # evaluation seeds are not for demonstrations
    assert not list(tmp_path.iterdir())  # nothing half-written
