"""Learning on an arm: what an episode is worth, when a reward counts, and the two processes."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import reach_bundle
import torch
from rich.progress import Progress

import sims
from real_robot import PolicyBundle, VirtualClock
from robo_rl.cli import main
from robo_rl.commands.arm_options import ArmSessionOptions
from robo_rl.datasets.robot_logs import LoggedEpisode, episodes, log_files, select_logs
from robo_rl.evaluation.arm_conditions import ArmConditions
from robo_rl.learners.checkpoint import weights_of
from robo_rl.on_robot_learning.config import BASE, EPISODES, LOG, LearnerStatus, OnRobotConfig
from robo_rl.on_robot_learning.exploration import ExploringPolicy
from robo_rl.on_robot_learning.learner import (
    CRITIC_ALONE,
    ArmLearner,
    ArmTransitions,
    episode_transitions,
)
from robo_rl.on_robot_learning.learner import main as learn
from robo_rl.on_robot_learning.policy_trials import PolicyTrials
from robo_rl.on_robot_learning.reward_labelling import (
    episode_frames,
    make_reward_labeller,
    reward_trust,
    states,
)
from robo_rl.on_robot_learning.session import OnRobotSession
from robo_rl.reward_analysis.report import subject_of_run
from robo_rl.runs.run_dir import RunDir
from robo_rl.training.report import write_report
from robo_rl.training.trained import load


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    reach_bundle.write(folder, "so101")
    return folder


def begun(path: Path, bundle: Path) -> RunDir:
    """A run of which no episode was driven yet."""
    about = dataclasses.asdict(OnRobotConfig(minutes=1.0)) | {"task": "reach", "learner": "on-arm"}
    run = RunDir.create(path, about)
    shutil.copytree(bundle, run.path / BASE)
    (run.path / EPISODES).mkdir()
    return run


def recorded(success: bool, judge: str, steps: int = 5) -> LoggedEpisode:
    rng = np.random.default_rng(0)
    return LoggedEpisode(
        Path("episode.mcap"),
        obs=rng.normal(size=(steps + 1, 2)).astype(np.float32),
        action=rng.normal(size=(steps, 1)).astype(np.float32),
        unsaid=np.zeros(steps),
        policy=np.zeros((steps + 1, 1), np.float32),
        by_hand=np.zeros(steps + 1, bool),
        t=0.05 * np.arange(steps + 1),
        measured=np.zeros((steps + 1, 3)),
        wanted=np.zeros((steps, 3)),
        sent=np.zeros((steps, 3)),
        frames={},
        poses=(),
        success=success,
        judge=judge,
        training={},
    )


def test_verdict_rewards_the_last_step_and_timeout_bootstraps() -> None:
    paid = np.arange(5, dtype=np.float32)
    for success, judge, ends, model_ends in (
        (True, "operator", True, False),
        (False, "operator", False, False),
        (False, "filter", True, True),
    ):
        part = episode_transitions(recorded(success, judge), paid)
        assert part["verdict"].tolist() == [0, 0, 0, 0, float(success)]
        assert part["verdict_done"].tolist() == [False] * 4 + [ends]
        assert part["model"].tolist() == paid.tolist()
        assert part["model_done"].tolist() == [False] * 4 + [model_ends]
        assert episode_transitions(recorded(success, judge), paid, True)["model_done"].tolist()[
            3:
        ] == [0, 1]
    steps = ArmTransitions(n_steps=3, gamma=0.5)
    for success in (True, False):
        steps.add(episode_transitions(recorded(success, "operator"), paid))
    assert steps.reward.tolist() == [0, 0, 0, 0, 1] + [0] * 5 and steps.last.sum() == 2
    steps.use(True)
    assert steps.reward.tolist() == [*paid, *paid] and not steps.done.any()
    batch = steps.sample(4000)
    # Of up to three steps of one episode: 0+.5*1+.25*2, 1+.5*2+.25*3, 2+.5*3+.25*4, 3+.5*4, 4.
    assert set(batch.rewards[:, 0].tolist()) == {1.0, 2.75, 4.5, 5.0, 4.0}


def test_arm_unknown_to_the_shipped_clip_needs_an_encoder() -> None:
    task = sims.make_task("reach", robot="koch", goal="touch_red_cube")
    with pytest.raises(ValueError, match="then give --encoder embedded:FILE"):
        make_reward_labeller(OnRobotConfig(reward="clip"), task)
    with pytest.raises(ValueError, match="embedded CLIP other.safetensors does not exist"):
        make_reward_labeller(
            OnRobotConfig(reward="clip", encoder="embedded:other.safetensors"), task
        )


def test_image_reward_is_used_while_it_agrees_with_verdicts() -> None:
    rng, config = np.random.default_rng(0), OnRobotConfig(reward="clip", verdicts=50, min_auc=0.9)
    success = rng.random(100) < 0.5
    good, poor = success + 0.1 * rng.random(100), rng.random(100)
    assert reward_trust(good[:49], success[:49], config, False) == (None, False)
    assert reward_trust(good[:50], success[:50], config, False) == (1.0, True)
    assert reward_trust(good[:50], np.ones(50, bool), config, False) == (
        None,
        False,
    )  # who could tell?
    auc, counts = reward_trust(poor, success, config, True)
    assert auc is not None and auc < 0.7 and not counts
    fair = success + 2.0 * rng.random(100)
    auc, counts = reward_trust(fair, success, config, True)
    assert auc is not None and 0.8 < auc < 0.9 and counts
    assert not reward_trust(fair, success, config, False)[1]
    # A policy that hardly fails any more, and then with scores like those of success.
    rare = np.arange(100) % 10 == 0
    assert reward_trust(rng.random(100), ~rare, config, True) == (None, True)
    assert not reward_trust(rng.random(100), ~rare, config, False)[1]


def test_policy_trials_rank_by_success_lower_bound() -> None:
    tried = PolicyTrials()
    assert tried.best() == 0 and not tried.worse(0, 5)
    for published, ended in ((0, 4 * [True] + 6 * [False]), (10, 10 * [True]), (20, 5 * [True])):
        for success in ended:
            tried.add(published, success)
    assert tried.best() == 10 and tried.success_lower_bound(10) == pytest.approx(0.722, abs=0.001)
    assert tried.worse(0, 5) and not tried.worse(20, 5)
    for success in 3 * [True] + 7 * [False]:
        tried.add(30, success)
        tried.add(20, True)
    assert tried.worse(30, 5) and not tried.worse(30, 11)  # too early to say
    assert tried.best() == 20


def test_killed_learner_resumes_from_its_reverted_policy(bundle: Path, tmp_path: Path) -> None:
    run = begun(tmp_path / "run", bundle)
    learner = ArmLearner(run.path, lambda: True)
    good = weights_of(learner._algorithm)
    with torch.no_grad():
        for parameter in learner._algorithm.actor.parameters():
            parameter += 0.1
    for _ in range(10):
        learner._tried.add(0, True)
        learner._tried.add(10, False)
    learner._algorithm._n_updates, learner._algorithm.critic_updates = 4000, 4500
    learner.status = LearnerStatus(episodes=20, updates=4000, published=10)
    learner._choose()
    assert learner.status.published == 0
    again = ArmLearner(run.path, lambda: True)
    for one in (learner, again):
        for name, array in weights_of(one._algorithm).items():
            np.testing.assert_array_equal(array, good[name], err_msg=name)
        assert (one._algorithm._n_updates, one._algorithm.critic_updates) == (4000, 4500)


def test_critics_train_alone_first_after_a_reward_change(bundle: Path, tmp_path: Path) -> None:
    run = begun(tmp_path / "run", bundle)
    learner = ArmLearner(run.path, lambda: True)
    learner._algorithm._n_updates = learner._algorithm.critic_updates = 4000
    learner.status = LearnerStatus(episodes=0, updates=4000)
    learner.steps.by_model = True  # which a new look at the verdicts does not say any more
    learner._save()
    again = ArmLearner(run.path, lambda: True)
    assert not again.steps.by_model and again._algorithm.critic_updates == 4000 + CRITIC_ALONE


class InThread:
    """The learner in a thread of this process, with what a Session asks of a process."""

    pid, returncode = os.getpid(), 1

    def __init__(self, folder: Path):
        self._over, self.stdin = threading.Event(), self
        self._thread = threading.Thread(target=self._learn, args=(folder,), daemon=True)
        self._thread.start()

    def _learn(self, folder: Path) -> None:
        ArmLearner(folder, self._over.is_set).learn_until_stopped()

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else self.returncode

    def close(self) -> None:
        self._over.set()

    def wait(self, timeout: float) -> None:
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the learner did not end"


class Nobody:
    """Learns nothing."""

    def __init__(self, *args: Any, **options: Any): ...

    def close(self) -> None: ...


def test_operator_confirmations_apply_to_one_session(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, asked = tmp_path / "run", []

    def driven(command: ArmSessionOptions, *args: Any, **options: Any) -> int:
        asked.append((command.clear_fault, command.if_torque_on, command.seed))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robo_rl.commands.learn_on_arm.run_arm_session", driven)
        patch.setattr("robo_rl.commands.learn_on_arm.OnRobotSession", Nobody)
        arm = ["--robot", "so101", "--port", "/dev/null", "--seed", "3"]
        said = ["--clear-fault", "--if-torque-on", "park"]
        assert (
            main(
                ["learn-on-arm", str(bundle), *arm, *said, "--name", "run", "--runs", str(tmp_path)]
            )
            == 0
        )
        assert main(["learn-on-arm", "--resume", str(run)]) == 0
    assert asked == [(True, "park", 3), (False, "", 3)]


@pytest.mark.slow
def test_dead_policy_is_replaced_in_the_next_episode(bundle: Path, tmp_path: Path) -> None:
    run = begun(tmp_path / "run", bundle)
    with contextlib.closing(
        OnRobotSession(run.path, OnRobotConfig(), 0, waits=False, think=10.0)
    ) as session:
        session.before(0)
        first = session._policy
        assert first is not None
        session.before(1)
        assert session._policy is first
        os.kill(first.pid, signal.SIGKILL)
        first._child.wait()
        _, acting = session.before(4)  # one without noise
        assert acting is not None and acting.alive


@pytest.mark.slow
def test_learner_waits_for_its_predecessor_to_end(bundle: Path, tmp_path: Path) -> None:
    run = begun(tmp_path / "run", bundle)

    def begin() -> subprocess.Popen[bytes]:
        told = [sys.executable, "-m", "robo_rl.on_robot_learning.learner", str(run.path)]
        return subprocess.Popen(told, stdin=subprocess.PIPE)

    def learns(one: subprocess.Popen[bytes], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (
            there := LearnerStatus.read(run.path).pid == one.pid
        ) is False and time.monotonic() < until:
            time.sleep(0.05)
        return there

    first = begin()
    assert learns(first, 60.0)
    second = begin()
    assert not learns(second, 10.0)
    first.stdin.close()
    assert first.wait(60) == 0 and learns(second, 60.0)
    second.stdin.close()
    assert second.wait(60) == 0


def test_scripted_takeover_applies_to_its_share_of_episodes() -> None:
    assert all(
        OnRobotConfig().operator_present(i) for i in range(300)
    )  # they take it when they want
    there = [
        OnRobotConfig(takeover=0.2, takeover_until=200).operator_present(i) for i in range(300)
    ]
    assert 20 < sum(there[:200]) < 60 and not any(there[200:])


def test_exploration_noise_is_smooth_bounded_and_per_episode(bundle: Path) -> None:
    policy = PolicyBundle.load(bundle)
    obs = np.zeros(policy.manifest.obs_dim, np.float32)
    own = policy.act(obs)[0]

    def noise(seed: int, sd: float = 0.1) -> np.ndarray:
        acting = ExploringPolicy(policy, policy.manifest, sd, seed)
        assert acting.sha256 == policy.sha256
        return np.array([acting.act(obs)[0] for _ in range(4000)]) - own

    found = noise(0)
    assert (found == noise(0)).all() and not (found == noise(1)).all()
    inside = np.abs(own) < 0.5  # elsewhere the range's end cuts it off
    assert inside.any() and np.abs(found[:, inside].std() - 0.1) < 0.02
    follows = np.corrcoef(found[:-1, inside].ravel(), found[1:, inside].ravel())[0, 1]
    assert 0.7 < follows < 0.9
    assert np.abs(noise(0, 5.0) + own).max() <= 1.0


def test_camera_offset_affects_the_policy_not_the_operator() -> None:
    truth = {"cube": (np.array([0.2, 0.1, 0.02]), np.array([1.0, 0, 0, 0]))}
    clock, offset = VirtualClock(1000.0), (0.03, -0.02, 0.0)
    off = ArmConditions(offset=offset)
    seen = off.perception(lambda: truth, clock, 0).read()["cube"].pos
    np.testing.assert_allclose(seen - truth["cube"][0], offset)
    own = off.operator_view(lambda: truth, clock, 0)
    assert own is not None and (own.read()["cube"].pos == truth["cube"][0]).all()
    assert ArmConditions(noise=0.002).operator_view(lambda: truth, clock, 0) is None


def test_logs_suffice_for_state_and_image_rewards(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pay of a log's state is the simulator's own, where perception is exact."""
    asked = f"learn-on-arm {bundle} --emulate --noise 0 --minutes 0.05 --reward clip --name run"
    asked += " --explore 0.3 --verdicts 1000"
    bar: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnRobotSession, "_begin", lambda session: InThread(session.folder))
        update = Progress.update
        patch.setattr(
            Progress, "update", lambda *a, **k: (bar.append(k["completed"]), update(*a, **k))
        )
        assert main([*asked.split(), "--runs", str(tmp_path)]) == 0
    assert bar[0] == 0.0 and all(0.1 < share < 1.0 for share in bar[1:])  # of its time
    said = capsys.readouterr().out
    assert "minutes of arm time" in said and "AUC of clip, not known yet" in said
    assert "{" not in said
    logs = log_files([tmp_path / "run" / "episodes"])
    told = select_logs(logs)
    one = next(episodes(logs, told, frames=True))
    shown = episode_frames(one, "front", (96, 96))
    assert shown.shape == (len(one.t), 96, 96, 3) and len({frame.tobytes() for frame in shown}) > 5
    with pytest.raises(
        ValueError, match="no images of camera 'top'; available: front. Give --view"
    ):
        episode_frames(one, "top", None)
    pay = make_reward_labeller(OnRobotConfig(reward="task"), told.task)
    assert pay is not None
    paid = pay(one)
    goal, env = told.task.goals()[told.task.goal], sims.BatchEnv(told.task, 1)
    env.reset()
    for t, (_, poses) in enumerate(states(one)):
        state = env.batch.qpos[0].copy()
        state[: one.measured.shape[1] - 1] = one.measured[t, :-1]
        env.batch.qpos[0] = state
        for number, name in enumerate(poses):  # things lie in the order of their joints
            first = len(state) - 7 * (len(poses) - number)
            env.batch.qpos[0, first : first + 3] = poses[name].pos
            env.batch.qpos[0, first + 3 : first + 7] = poses[name].quat
        env.batch.forward()
        if t:
            own = goal.reward(env.views, one.action[t - 1][None])
            assert abs(sum(float(x[0]) for x in own.values()) - paid[t - 1]) < 1e-3
    rows = list(csv.DictReader((tmp_path / "run" / "episodes.csv").open()))
    assert 0.5 < float(rows[0]["score"]) <= 1.1 and rows[0]["trusted"] == "0.0"
    env.close()


@pytest.mark.slow
def test_learn_on_arm_survives_killed_learner_and_resumes(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "runs" / "arm"
    asked = [
        "learn-on-arm",
        str(bundle),
        "--emulate",
        "--offset",
        "0.0",
        "0.05",
        "0.0",
        "--human",
        "scripted:expert",
        "--takeover",
        "0.5",
        "--takeover-until",
        "8",
        "--updates",
        "2",
        "--publish-every",
        "3",
        "--scale",
        "0.3",
        "--runs",
        str(run.parent),
        "--name",
        run.name,
    ]
    killed: list[int] = []

    def kill() -> None:
        """The learner, once it has published."""
        while not LearnerStatus.read(run).published:
            time.sleep(0.05)
        for child in psutil.Process(os.getpid()).children(recursive=True):
            if "robo_rl.on_robot_learning.learner" in child.cmdline():
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)

    threading.Thread(target=kill, daemon=True).start()
    assert main([*asked, "--minutes", "0.8"]) == 0
    told = LearnerStatus.read(run)
    assert killed and 0 <= told.published <= told.episodes and told.updates > 1000
    assert told.arm_s >= 48.0 and "started again" in capsys.readouterr().err
    rows = list(csv.DictReader((run / "episodes.csv").open()))
    assert [int(float(row["episode"])) for row in rows] == list(range(told.episodes))
    hand = [float(row["by_hand"] or 0) > 0.5 for row in rows]
    assert any(hand[:8]) and not all(hand[:8]) and not any(hand[8:])
    assert len({row["published"] for row in rows}) > 1  # what was learned took over
    final = PolicyBundle.load(run / "bundle")
    base = PolicyBundle.load(bundle)
    assert final.manifest.limits == base.manifest.limits
    obs = np.random.default_rng(0).normal(size=(64, base.manifest.obs_dim)).astype(np.float32)
    apart = np.abs(final.act(obs)[0] - np.clip(base.act(obs)[0], -1, 1)).max()
    assert (0 < apart) == (told.published > 0) and apart <= 0.3 + 1e-6  # no farther than --scale
    assert "Success" in (run / "report.html").read_text()
    # More time goes on with what there is.
    assert main(["learn-on-arm", "--resume", str(run), "--minutes", "0.95"]) == 0
    more = LearnerStatus.read(run)
    assert more.episodes > told.episodes and more.updates > told.updates and more.arm_s >= 57.0
    assert json.loads((run / "result.json").read_text())["episodes"] == more.episodes


def test_evaluate_refuses_a_learn_on_arm_run(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begun(tmp_path / "run", bundle)
    run.finish(dataclasses.asdict(LearnerStatus(episodes=3)))
    assert main(["evaluate", str(run.path)]) == 1
    said = f"was trained on an arm: evaluate it with robo-rl deploy {run.path / 'bundle'}"
    assert said in capsys.readouterr().err
    for reads in (load, write_report_of, subject_of_run):
        with pytest.raises(ValueError, match="was trained on an arm"):
            reads(run.path)
    assert main(["train", "--resume", str(run.path)]) == 1
    assert f"robo-rl learn-on-arm --resume {run.path}" in capsys.readouterr().err
    (run.path / "result.json").unlink()  # it was stopped
    assert main(["evaluate", str(run.path)]) == 1
    assert f"robo-rl learn-on-arm --resume {run.path}" in capsys.readouterr().err


def write_report_of(path: Path) -> Path:
    return write_report(RunDir.open(path))


class Refusing:
    """The learner's program, run to its end here: it refuses what it is given."""

    stdin = io.BytesIO()

    def __init__(self, session: OnRobotSession):
        with pytest.raises(SystemExit) as ended, open(session.folder / LOG, "a") as log:
            with contextlib.redirect_stderr(log):
                learn(str(session.folder))
        self.returncode = ended.value.code

    def poll(self) -> int:
        return self.returncode

    def wait(self, timeout: float) -> int:
        return self.returncode


def test_learn_on_arm_errors_are_one_line(
    bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(OnRobotSession, "_begin", lambda session: Refusing(session))
    for args, said in (
        ("", "give the BUNDLE to fine-tune, or --resume RUN"),
        (f"{bundle} --emulate --takeover 0.2", "--takeover applies only to --human scripted:"),
        (f"{bundle} --emulate --reward clap --minutes 0.02", "unknown reward 'clap'"),
        (f"--resume {tmp_path}", "no run in"),
    ):
        assert main(["learn-on-arm", *args.split(), "--runs", str(tmp_path / "r")]) == 1
        err = capsys.readouterr().err
        assert said in " ".join(err.split()), err
