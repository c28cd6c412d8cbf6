"""`robo-rl reward score`: what is seen, frame by frame, against a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from rich.console import Console

from reward_models.analysis.metrics import or_none, spearman
from reward_models.remote.vlm_judge import JudgeAnswer
from reward_models.vision.config import NumberFormat
from robo_rl.commands.options import Json
from robo_rl.datasets.sources import SOURCES, SourceEpisode, SourceOptions, read_episodes
from robo_rl.evaluation.reward_tables import figures_text
from robo_rl.goals.reading import read_goal
from robo_rl.reward_analysis.lerobot_progress import bounds_of, check_progress, write_scores
from robo_rl.reward_analysis.score_plot import MOST, plot_row, write_plot
from robo_rl.rewards.clip import ClipConfig, captions_for, select_training_scene
from robo_rl.runtime.progress_bars import stderr_console
from robo_rl.runtime.remote_models import (
    JUDGES,
    SHOWN,
    JudgeConfig,
    collect_answers,
    is_judge,
    make_judge,
)

Array = np.ndarray
Figures = dict[str, Any]  # of an episode


@dataclass(frozen=True, kw_only=True)
class ScoreCommand:
    """Scores frames against a sentence: each frame by an encoder, or a few frames per episode by
    a remote model."""

    # Runs; logs (*.mcap) and folders of them; Minari sets; LeRobotDatasets; videos; folders of
    # images.
    source: tyro.conf.Positional[tuple[Path, ...]]
    goal: str = ""  # goal sentence; empty: the source's own
    task: str = "reach"  # task with the objects of the goal, if the source has none
    camera: str = ""  # camera whose frames are scored, if there are several
    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    scorer: str = "clip"  # clip: the encoder; or a remote model: vlm:MODEL, robometer:URL
    ask: Literal["progress", "rating"] = "progress"  # remote model: per frame, or at the end
    frames: int = 8  # frames per episode sent to a remote model, evenly spaced
    episodes: int | None = None  # episodes per source; None: one of a run, all of a dataset
    model: JudgeConfig = field(default_factory=JudgeConfig)  # the remote model and its budget
    plot: Path | None = None  # PNG: score curve, lowest and highest frame per episode
    progress: Path | None = None  # parquet: progress of a LeRobotDataset (sarm_progress.parquet)
    # Scores that are progress 0 and 1; None: of a model 0 and 1, else two quantiles of all frames.
    bounds: tuple[float, float] | None = None
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints one score per frame and, of a run, how well the scores order the frames by distance.

    Args:
        argv: The words after ``robo-rl reward score``.

    Returns:
        The exit code 0.

    Raises:
        ValueError: the sources hold no frames, or options do not fit each other.
    """
    command = tyro.cli(ScoreCommand, args=list(argv), prog="robo-rl reward score")
    _check(command)
    scored, lengths, rows, console = [], [], [], stderr_console()
    by = _by_clip if command.scorer == "clip" else _by_model
    for episode, figures in by(command, console):
        scored.append(figures)
        lengths.append(int(episode.at[-1]) + 1)
        if (
            command.plot
            and len(rows) < MOST
            and (row := plot_row(figures, episode.frames, episode.at))
        ):
            rows.append(row)
    if not scored:
        raise ValueError(f"no frames in {', '.join(map(str, command.source))}")
    _print(scored, command)
    if command.plot:
        write_plot(command.plot, rows)
        if len(scored) > len(rows):
            _say(console, f"{command.plot}: {len(rows)} of {len(scored)} episodes")
    if command.progress:
        own = (0.0, 1.0) if is_judge(command.scorer) else bounds_of(scored)
        low, high = bounds = command.bounds or own
        write_scores(command.progress, scored, lengths, bounds)
        _say(console, f"{command.progress}: 0 up to a score of {low:.3f}, 1 from {high:.3f} on")
    return 0


def _print(scored: Sequence[Figures], command: ScoreCommand) -> None:
    if command.as_json:
        told_ = scored[0] if len(scored) == 1 else {"episodes": scored}
        print(json.dumps(told_, indent=1, allow_nan=False))
        return
    low = -0.3 if command.scorer == "clip" else 0.0
    for figures in scored:
        columns = ("at", "score", "success_prob")
        print(figures_text({k: v for k, v in figures.items() if k not in columns}))
        for number, value in zip(figures["at"], figures["score"], strict=True):
            bar = "#" * max(0, round(30 * (value - low)))
            print(f"{number:4d} {value:+.3f} {bar}")


def _say(console: Console, what: str) -> None:
    console.print(what, markup=False, highlight=False, soft_wrap=True)


def _check(command: ScoreCommand) -> None:
    """ValueError where something is asked that cannot be, before anything is looked at."""
    if command.scorer != "clip" and not is_judge(command.scorer):
        known = ", ".join(("clip", *JUDGES))
        raise ValueError(f"unknown scorer {command.scorer!r}; available: {known}")
    if not command.source:
        known = "; ".join(source.says for source in SOURCES.values())
        raise ValueError(f"no source given; expected any of: {known}")
    if command.frames < 2 or (command.episodes is not None and command.episodes < 1):
        raise ValueError(
            f"--frames must be at least 2 and --episodes 1, got {command.frames} and "
            f"{command.episodes}"
        )
    if command.plot and command.plot.suffix != ".png":
        raise ValueError(f"--plot must be a .png file, got {command.plot}")
    if command.bounds and not -np.inf < command.bounds[0] < command.bounds[1] < np.inf:
        raise ValueError(f"--bounds must be two increasing numbers, got {command.bounds}")
    if command.bounds and not command.progress:
        raise ValueError("--bounds needs --progress FILE.parquet")
    if command.progress:
        whole = command.episodes is None and command.ask == "progress"
        check_progress(command.progress, command.source, whole)


def _by_clip(command: ScoreCommand, console: Console) -> Iterator[tuple[SourceEpisode, Figures]]:
    """Each episode, every frame of which is looked at, and its figures."""
    from reward_models.vision.encoders import make_encoder  # torch: seconds, not for --help

    encoder = make_encoder(command.encoder, dtype=command.dtype)
    with console.status("scoring") as status:
        for episode in read_episodes(command.source, _watch(command, console)):
            status.update(f"scoring {episode.name}")
            select_training_scene(
                encoder, episode.task, "--encoder", episode.camera if encoder.homes else ""
            )
            goal = read_goal(episode.task, episode.text)
            captions = [c.text for c in captions_for(encoder, goal, ClipConfig())[-1]]
            rows = encoder.encode(np.ascontiguousarray(episode.frames))
            cosine = (rows @ encoder.encode_texts(tuple(captions)).T).min(axis=1)
            yield episode, {"captions": captions} | _episode_figures(episode, cosine)


def _by_model(command: ScoreCommand, console: Console) -> Iterator[tuple[SourceEpisode, Figures]]:
    """Each episode, a few frames of which are shown to a model, and its figures."""
    judge, budget = make_judge(command.scorer, command.model)
    watch = _watch(command, console, frames=command.frames, height=SHOWN)
    episodes = list(read_episodes(command.source, watch))

    def ask(number: int) -> JudgeAnswer:
        one = episodes[number]
        method = judge.progress if command.ask == "progress" else judge.rate
        return method(one.frames, one.text)

    answers: list[JudgeAnswer] = [JudgeAnswer() for _ in episodes]
    for number, reply in collect_answers(
        ask, range(len(episodes)), len(episodes), command.model, budget, console
    ):
        answers[number] = reply
    for one, reply in zip(episodes, answers, strict=True):
        value = np.zeros(0) if reply.value is None else np.atleast_1d(reply.value)
        figures = {"scorer": judge.name, "asked": command.ask}
        figures |= _episode_figures(one, value) | {
            name: x.tolist() for name, x in reply.more.items()
        }
        yield one, figures | ({"said": reply.why} if reply.value is None else {})


def _watch(command: ScoreCommand, console: Console, **more: int) -> SourceOptions:
    """Returns which episodes and frames to read."""
    return SourceOptions(
        goal=command.goal,
        task=command.task,
        camera=command.camera,
        episodes=command.episodes,
        tell=lambda said: _say(console, said),
        **more,
    )


def _episode_figures(episode: SourceEpisode, score: Array) -> Figures:
    """Returns figures of an episode with ``score`` of each frame, of its last frame, or none."""
    at = episode.at[len(episode.at) - len(score) :]
    figures: Figures = {
        "source": episode.name,
        "sentence": episode.text,
        "frames": len(episode.frames),
    }
    if len(score) == len(episode.at):
        figures["spearman_with_time"] = or_none(spearman(score, at)) if len(at) > 2 else None
        if episode.distance is not None and len(score):
            figures |= distance_correlation(score, episode.distance)
    if episode.met is not None:
        figures |= {"success": episode.met, "judged_by": episode.judge}
    return figures | {"at": at.tolist(), "score": score.tolist()}


def distance_correlation(score: Array, distance: Array) -> dict[str, Any]:
    """Spearman of scores (n,) and nearness, minus the true distance (n,): 1 where the score falls
    with every step away. Frames at distance 0 have no order: it is that of the others, and None
    where these are fewer than three."""
    away = distance > 0.0
    rank = or_none(spearman(score[away], -distance[away])) if away.sum() >= 3 else None
    return {"spearman_with_nearness": rank, "frames_at_distance_0": int((~away).sum())}
