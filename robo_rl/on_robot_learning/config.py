"""OnRobotConfig: how a policy goes on learning on an arm, and what its folder holds; loads no
torch.

```
RUN/config.json     what was asked for, with the bundle that is corrected
    base/           that bundle
    episodes/       one MCAP log per episode: all that the learner ever gets to know
    read/           the same as arrays, once it was read
    bundles/0120/   what the learner had made of the first 120 episodes
    learner.json    how far it is (Told)
    episodes.csv    a row for each episode
    checkpoints/    networks and optimisers
    report.html     all of it on one page
    bundle/, result.json   the last bundle and what it came to, once the time is up
```
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reward_models.vision.config import NumberFormat
from robo_rl.runs.run_dir import read_json, write_json

BASE, EPISODES, READ, BUNDLES, TOLD = "base", "episodes", "read", "bundles", "learner.json"
LOG, PAGE = "learner.log", "report.html"
REFUSED = 3  # the learner's exit status, where what it was asked for does not fit
VERDICT, STATE = "verdict", "task"


@dataclass(frozen=True, kw_only=True)
class OnRobotConfig:
    """Rewards, exploration and updates of learning on the arm."""

    reward: str = VERDICT  # verdict: of the episode; clip, others: on images; task: from state
    encoder: str = "embedded"  # image encoder: embedded[:PATH], or MODEL[:PRETRAINED]
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    view: str = ""  # camera whose images the reward scores; empty: the one it was made for
    minutes: float = 40.0  # arm time in minutes, over all sessions
    scale: float = 0.3  # largest correction of the bundle's action, as a share of the action range
    explore: float = 0.15  # standard deviation of smooth exploration noise, actions in [-1, 1]
    plain_every: int = 5  # every N-th episode is without exploration noise, to evaluate the policy
    takeover: float = 0.0  # share of early episodes that --human scripted:... drives; 0: all
    takeover_until: int = 100  # number of episodes that count as early for --takeover
    updates: int = 4  # gradient updates per control step
    publish_every: int = 10  # episodes between updates of the policy on the arm
    verdicts: int = 50  # number of verdicts that an image reward is first compared with
    min_auc: float = 0.9  # least ROC AUC of an image reward on the newest of them for it to be used
    prior: tuple[Path, ...] = ()  # further robot logs, or folders of logs, to learn from
    seed: int = 0  # random seed of networks, noise, takeovers and, in emulation, scenes

    def __post_init__(self) -> None:
        for name in ("minutes", "plain_every", "updates", "publish_every", "verdicts"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("takeover", "min_auc"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("explore", "takeover_until"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")

    def operator_present(self, index: int) -> bool:
        """Whether the operator is present in episode ``index``: always, unless ``takeover`` is the
        share of early episodes in which a scripted one is."""
        if not self.takeover:
            return True
        drawn = np.random.default_rng((self.seed, index)).random()
        return bool(index < self.takeover_until and drawn < self.takeover)


@dataclass(frozen=True)
class LearnerStatus:
    """The learner's status file."""

    pid: int = 0  # process ID of the learner
    episodes: int = 0  # number of logs processed
    arm_s: float = 0.0  # arm time in those logs, s
    updates: int = 0
    published: int = 0  # number of the newest published bundle; 0: none yet
    auc: float | None = None  # ROC AUC of the reward against verdicts; None: not known yet
    trusted: bool = True  # whether the reward is used; False: the verdict alone

    @property
    def trust(self) -> str:
        """How well the reward agrees with verdicts, in words."""
        auc = "not known yet" if self.auc is None else f"{self.auc:.3f}"
        return f"{auc}: {'reward used' if self.trusted else 'reward not used, verdicts are'}"

    def line(self, reward: str) -> str:
        """Returns one line on the status, with the reward's agreement if ``reward`` is a model."""
        bundle_state = f"that after {self.published} episodes" if self.published else "as it was"
        text = (
            f"{self.episodes} episodes, {self.arm_s / 60:.1f} minutes of arm time, "
            f"{self.updates:,} updates; the bundle is {bundle_state}"
        )
        return text if reward == VERDICT else f"{text}; AUC of {reward}, {self.trust}"

    def write(self, folder: Path) -> None:
        """Writes the status file into ``folder``."""
        write_json(folder / TOLD, self)

    @classmethod
    def read(cls, folder: Path) -> LearnerStatus:
        """Reads the status file in ``folder``."""
        path = folder / TOLD
        if not path.exists():
            return cls()
        stored = read_json(path)
        return cls(**{f.name: stored[f.name] for f in dataclasses.fields(cls)})


def bundle_of(folder: Path, published: int) -> Path:
    """The bundle ``published`` in the run ``folder``; 0: the one that is corrected."""
    return folder / BUNDLES / f"{published:06d}" if published else folder / BASE
