"""OnRobotSession: the side that drives the arm. Between episodes it takes over what was learned
meanwhile.

The learner is a process of its own. It is told nothing and asked nothing: it reads the logs, and
what it makes of them it leaves in the run's folder. If it dies it is started again and goes on from
there; if this process dies, the learner finishes what it is at and ends.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from real_robot import PolicyBundle, PolicyProcess, RunResult
from real_robot.operator.handover import Operator
from robo_rl.arm.episodes import ARM_SEED
from robo_rl.arm.stage import EpisodeSetup
from robo_rl.on_robot_learning.config import LOG, REFUSED, LearnerStatus, OnRobotConfig, bundle_of
from robo_rl.on_robot_learning.exploration import ExploringPolicy, with_exploration_note
from robo_rl.runtime.progress_bars import stderr_console
from sims.utils import plugins, process

PATIENCE = 120.0  # s that the learner may take to end
DEATHS = 3  # of the learner in a row, without an episode between them
ASKED_EVERY = 0.05  # s
AHEAD = 1  # episodes that the arm is ahead of the learner, where time waits for both

People = Callable[[EpisodeSetup, int], tuple[EpisodeSetup, Operator | None]]


class OnRobotSession:
    """The work of the run ``folder`` between an arm's episodes, from number ``first`` on.
    ``waits``: time stands still between episodes, so the session waits for the learner."""

    def __init__(
        self, folder: Path, config: OnRobotConfig, first: int, *, waits: bool, think: float = 0.0
    ):
        self.folder, self._config, self._waits, self._think = folder, config, waits, think
        self._console = stderr_console()
        self._first, self._published = first, -1
        self._bundle: PolicyBundle | None = None
        self._policy: PolicyProcess | None = None
        self._deaths, self._died_at = 0, -1
        self._learner = self._begin()

    def _begin(self) -> subprocess.Popen[Any]:
        with open(self.folder / LOG, "ab") as log:
            return process.start_module(
                "robo_rl.on_robot_learning.learner",
                str(self.folder.absolute()),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                keep=(plugins.VARIABLE, *process.DRAWING, "ROBO_RL_CACHE", "XDG_CACHE_HOME"),
            )

    def status_of(self, index: int) -> LearnerStatus:
        """Returns the learner's status before episode ``index``; before the first one it waits for
        the learner. Raises ValueError where the learner cannot continue."""
        while True:
            status = LearnerStatus.read(self.folder)
            if self._learner.poll() is not None:
                self._revive(status)
            elif status.pid == self._learner.pid or index > self._first:
                if not self._waits or status.episodes >= index - AHEAD:
                    return status
            time.sleep(ASKED_EVERY)

    def _revive(self, status: LearnerStatus) -> None:
        self._deaths = self._deaths + 1 if status.episodes == self._died_at else 1
        self._died_at = status.episodes
        last = (self.folder / LOG).read_text(errors="replace").strip().splitlines()[-1:]
        if self._learner.returncode == REFUSED:
            raise ValueError("".join(last))
        if self._deaths >= DEATHS:
            raise ValueError(
                f"the learner of {self.folder} ended {DEATHS} times after episode "
                f"{status.episodes}: {''.join(last) or 'killed'} ({self.folder / LOG})"
            )
        self._console.print("the learner process ended; restarting it from its logs")
        self._learner = self._begin()

    # What run_episodes asks.
    def before(self, index: int) -> tuple[PolicyBundle, PolicyProcess | None]:
        """Returns the policy of episode ``index``."""
        published = self.status_of(index).published
        gone = self._policy is not None and not self._policy.alive
        if published != self._published or gone:
            folder = bundle_of(self.folder, published)
            self._bundle, self._published = PolicyBundle.load(folder), published
            if self._think:
                self._end_policy()
                self._policy = PolicyProcess(self._bundle, folder, budget=self._think)
        assert self._bundle is not None
        plain = index % self._config.plain_every == self._config.plain_every - 1
        sd = 0.0 if plain else self._config.explore
        bundle = with_exploration_note(self._bundle, published=published, explore=sd)
        if not sd:
            return bundle, self._policy
        seed = ARM_SEED + 1000 * self._config.seed + index
        acting: Any = ExploringPolicy(self._policy or bundle, bundle.manifest, sd, seed)
        return (bundle, acting) if self._policy else (acting, None)

    def after(self, index: int, result: RunResult) -> float:
        """Returns the share of the arm's time that is used up."""
        status = LearnerStatus.read(self.folder)
        own = (index + 1 - status.episodes) * result.actions  # not read yet
        dt = self._bundle.manifest.control_dt if self._bundle else 0.0
        return (status.arm_s + own * dt) / (60 * self._config.minutes)

    def operators(self, human: People) -> People:
        """``human``, in the episodes that they are there for."""
        config = self._config

        def sometimes(scene: EpisodeSetup, seed: int) -> tuple[EpisodeSetup, Operator | None]:
            there = config.operator_present(seed - ARM_SEED - 1000 * config.seed)
            return human(scene, seed) if there else (scene, None)

        return sometimes

    def _end_policy(self) -> None:
        if self._policy is not None:
            self._policy.close()
            self._policy = None

    def close(self) -> None:
        """The learner reads what there is, learns from it, and ends."""
        self._end_policy()
        with contextlib.suppress(OSError):
            self._learner.stdin.close()
        try:
            self._learner.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill_process_tree(self._learner)
