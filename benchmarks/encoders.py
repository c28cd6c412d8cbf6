"""Whether a bigger encoder pays more like the dense reward: image towers of four sizes, taught the
same frames in the same steps.

VLM-RM (arXiv:2310.12921) finds that of pretrained CLIPs the larger ones do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.seen import OWN
from benchmarks.table import interval
from benchmarks.training import FRESH, task_code
from reward_models.vision.config import FitConfig
from reward_models.vision.keypoint_tower import TowerConfig
from reward_models.vision.tiny_clip import LARGE
from robo_rl.runs.markdown import table
from sims import make_task

SEEDS = (0, 1, 2)
TASKS = ("reach", "push")
TOWERS = {
    "quarter": TowerConfig(fine=8, middle=16, coarse=16, joined=8, keypoints=8, hidden=128),
    "half": TowerConfig(fine=12, middle=32, coarse=32, joined=16, keypoints=16, hidden=256),
    "whole": TowerConfig(),
    "large": LARGE["tower"],
}
FRAMES, STEPS = 24_000, 1_600
EPISODES, STATES = 128, 4_000  # that a reward, and captions, are judged on
CODE = (
    "reward_models.vision.train",
    "robo_rl.vision.caption_data",
    "robo_rl.vision.caption_gate",
    "robo_rl.reward_analysis.report",
    "robo_rl.rewards.clip",
)


@dataclass(frozen=True)
class EncoderCase:
    """An encoder, and the sentence whose reward it is to be."""

    task: str
    sentence: str
    tower: TowerConfig
    fit: FitConfig
    frames: int
    episodes: int
    states: int


def rows(options: Options) -> list[BenchmarkRow]:
    """Every size on every task with one seed, then with the next."""
    made = []
    for seed in options.seeds or SEEDS:
        for task in TASKS:
            own = OWN[task]
            for size, tower in TOWERS.items():
                fit = FitConfig(
                    steps=options.scaled(STEPS), seed=seed if options.develop else FRESH + seed
                )
                of = EncoderCase(
                    own.task,
                    own.sentence,
                    tower,
                    fit,
                    options.scaled(FRAMES, least=512),
                    options.scaled(EPISODES, least=32),
                    options.scaled(STATES, least=512),
                )
                code = (*task_code(make_task(own.task)), *CODE)
                made.append(BenchmarkRow(f"{task}, {size}, seed {seed}", of, code, ("real_robot",)))
    return made


def measure(of: EncoderCase, place: RowFolder) -> dict[str, Any]:
    """How well the captions are seen, the distances of the reward that every drawn step is paid
    from them to both truths, and its AUC of success."""
    from reward_models.vision.tiny_clip import load
    from robo_rl.goals.reading import judged_goal
    from robo_rl.learners import PPOConfig
    from robo_rl.reward_analysis.report import Subject, judge_rewards
    from robo_rl.rewards import ClipConfig
    from robo_rl.vision.caption_data import SceneView
    from robo_rl.vision.caption_gate import evaluate_clip_file

    path = place.folder / "encoder.safetensors"
    if not path.exists():
        _teach(of, path)
    caption_figures = evaluate_clip_file(path, SceneView(of.task), "cpu", {"count": of.states})
    task, goal = judged_goal(make_task(of.task), of.sentence)
    scoring = {"clip": ClipConfig(encoder=f"embedded:{path}")}
    subject = Subject(task, goal, scoring, {}, PPOConfig().gamma(task.control_dt))
    report = judge_rewards(subject, episodes=of.episodes, words=False).report
    reward_figures = report["rewards"]["clip"]
    return {
        "parameters": sum(p.numel() for p in load(path).clip.visual.parameters()),
        "captions": {label: caption_figures[f"{label} summary"] for label in ("plain", "moved")},
        "judged": {"starc": reward_figures["free"]["starc"], "auc": reward_figures["auc all"]},
    }


def _teach(of: EncoderCase, path: Path) -> None:
    """Trains the encoder into ``path``, or goes on with what was left of it."""
    import torch

    from reward_models.vision import tiny_clip
    from reward_models.vision.train import caption_targets, fit, untrained_clip
    from robo_rl.vision.caption_data import FrameOptions, SceneView, graded_frames_of_scenes

    path.parent.mkdir(parents=True, exist_ok=True)
    under_way = path.with_suffix(".under_way")
    graded = graded_frames_of_scenes([SceneView(of.task)], FrameOptions(), of.frames, of.fit.seed)
    what = caption_targets(graded.seen)
    torch.manual_seed(of.fit.seed)
    begun = untrained_clip(what, graded.frames.shape[1], tower=of.tower)
    model = fit(graded.frames, what, of.fit, kept=under_way, start=begun)
    model.homes = graded.homes
    tiny_clip.save(model, path, {"what": "a CLIP of one row of `robo-rl bench encoders`"})
    under_way.unlink(missing_ok=True)


def table_text(rows: Sequence[Measured]) -> str:
    """What each size sees, and what its reward is worth."""
    heads = (
        "run",
        "parameters of the image tower",
        "captions: AUC, median",
        "of .95 and more",
        "moved and repainted: AUC, median",
        "STARC to dense",
        "STARC to sparse",
        "AUC of success",
    )
    lines = [
        (
            row["name"],
            f"{row['parameters']:,}",
            f"{plain['auc_median']:.3f}".removeprefix("0"),
            f"{100 * plain['share_95']:.0f} %",
            f"{moved['auc_median']:.3f}".removeprefix("0"),
            *(interval(row["judged"]["starc"][truth]) for truth in ("task", "sparse")),
            interval(row["judged"]["auc"]),
        )
        for row in rows
        for plain, moved in [(row["captions"]["plain"], row["captions"]["moved"])]
    ]
    return table(heads, lines)


EXPERIMENT = Experiment(rows, measure, table_text)
