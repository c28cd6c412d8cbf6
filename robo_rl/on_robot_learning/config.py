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
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reward_models.vision.config import NumberFormat
from robo_rl.runs.run_dir import write_json

BASE, EPISODES, READ, BUNDLES, TOLD = "base", "episodes", "read", "bundles", "learner.json"
LOG, PAGE = "learner.log", "report.html"
REFUSED = 3  # the learner's exit status, where what it was asked for does not fit
VERDICT, STATE = "verdict", "task"


@dataclass(frozen=True, kw_only=True)
class OnRobotConfig:
    """What is learned from, and how boldly."""

    reward: str = VERDICT  # verdict: of the episode; clip and others: of its pictures; task: state
    encoder: str = "embedded"  # of pictures: embedded[:PATH], or MODEL[:PRETRAINED]
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    view: str = ""  # camera whose pictures a reward looks at; empty: the one it was made for
    minutes: float = 40.0  # in which the arm is driven, over all sessions
    scale: float = 0.3  # of an action's range to either side, by which the bundle is corrected
    explore: float = 0.15  # standard deviation of the noise on actions in [-1, 1], smooth
    plain_every: int = 5  # episodes, of which one has no noise: how good the policy is by itself
    takeover: float = 0.0  # share of early episodes that --human scripted:... has; 0: all
    takeover_until: int = 100  # episodes that are early
    updates: int = 4  # for each step of the arm
    publish_every: int = 10  # episodes after which a new policy takes over
    asks: int = 50  # verdicts that a reward of pictures is held against before it counts
    trust: float = 0.9  # area under its ROC curve on the newest of those, below which it does not
    prior: tuple[Path, ...] = ()  # logs, or folders of them, that it learns from besides
    seed: int = 0  # of networks, noise and takeovers; of the scenes too, where they are emulated

    def __post_init__(self) -> None:
        for name in ("minutes", "plain_every", "updates", "publish_every", "asks"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("takeover", "trust"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("explore", "takeover_until"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")

    def somebody(self, index: int) -> bool:
        """Whether a person is there in episode ``index``: always, unless ``takeover`` says in which
        share of the early ones."""
        if not self.takeover:
            return True
        drawn = np.random.default_rng((self.seed, index)).random()
        return bool(index < self.takeover_until and drawn < self.takeover)


@dataclass(frozen=True)
class LearnerStatus:
    """What the learner says of itself."""

    pid: int = 0  # its process
    episodes: int = 0  # logs that it has read, and learned from as much as they are worth
    arm_s: float = 0.0  # s that the arm was driven in them
    updates: int = 0
    published: int = 0  # number of its newest bundle; 0: none yet
    auc: float | None = None  # of the reward against verdicts; None: not known yet
    trusted: bool = True  # whether the reward counts, and not the verdict alone

    @property
    def trust(self) -> str:
        """How far verdicts bear the reward out."""
        auc = "not known yet" if self.auc is None else f"{self.auc:.3f}"
        return f"{auc}: {'it counts' if self.trusted else 'it does not count, verdicts do'}"

    def line(self, reward: str) -> str:
        """One line for people, about what was paid by ``reward``."""
        kept = f"that after {self.published} episodes" if self.published else "as it was"
        said = (
            f"{self.episodes} episodes, {self.arm_s / 60:.1f} minutes of arm time, "
            f"{self.updates:,} updates; the bundle is {kept}"
        )
        return said if reward == VERDICT else f"{said}; AUC of {reward}, {self.trust}"

    def write(self, folder: Path) -> None:
        """Into ``folder``."""
        write_json(folder / TOLD, self)

    @classmethod
    def read(cls, folder: Path) -> LearnerStatus:
        """What was last written in ``folder``."""
        path = folder / TOLD
        if not path.exists():
            return cls()
        told = json.loads(path.read_text())
        return cls(**{f.name: told[f.name] for f in dataclasses.fields(cls)})


def bundle_of(folder: Path, published: int) -> Path:
    """The bundle ``published`` in the run ``folder``; 0: the one that is corrected."""
    return folder / BUNDLES / f"{published:06d}" if published else folder / BASE
