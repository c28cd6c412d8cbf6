"""report.html: one file with the run's figures, curves and video, to open in any browser."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.analysis.metrics import wilson
from reward_models.goals.formula import from_data
from robo_rl.evaluation.evaluate import SEED_NAMES, Evaluation
from robo_rl.evaluation.failure_analysis import failure_line
from robo_rl.evaluation.reward_tables import FAILURES, REPORT, extra_lines, overoptimised, tables
from robo_rl.evaluation.rollout_video import BEST_PAID, VIDEO
from robo_rl.runs.html_page import head, image, section
from robo_rl.runs.run_dir import RunDir, atomic_write, read_json
from sims.core.multi_goal import ANY
from sims.tasks.scene.mjcf import scene_label

Array = np.ndarray

SCENE = "scene.json"  # of a run whose frames are told by a distilled encoder


def write_report(run: RunDir) -> Path:
    """Writes report.html of a finished run and returns its path; ValueError before it finished."""
    result = run.judged
    config, versions = run.config, read_json(run.path / "versions.json")
    judged = Evaluation.from_dict(result["evaluation"])
    by_return = judged is not None and judged.by_return
    title = "By its own reward" if by_return else "Success by the simulator's ground truth"
    page = "".join(
        [
            head(result["goal"] or config["task"]),
            f"<p class=lead>{html.escape(_scene_of(config))}, "
            f"reward <b>{html.escape(result['reward'])}</b>, learner {config['learner']}, "
            f"{result['env_steps']:,} steps</p>",
            section(title, _headline(judged) + _unlimited(result)),
            _video(run.path / VIDEO, judged is not None and not by_return),
            section("The frames that were paid most", _still(run.path / BEST_PAID)),
            section("Training", _curves(run.metrics(), judged is not None)),
            section(
                "Periodic evaluation on validation episodes",
                _periodic_evaluations(run.evaluations.read(), config),
            ),
            section("The reward, judged", _reward_report(run.path)),
            section("What it took", _table(_costs(run.path, result))),
            section("The distilled encoder", _table(_scene(run.path, result))),
            section("How it was made", _details(result, config, versions)),
            "</main></html>",
        ]
    )
    path = run.path / "report.html"
    atomic_write(path, page.encode())
    return path


def _scene_of(config: Mapping[str, Any]) -> str:
    arm = f" on {config['robot']}" if config["robot"] else ""
    things = f" with {config['things']}" if config.get("things") else ""
    scene = f" in {scene_label(config['scene'])}" if config.get("scene") else ""
    return f"{config['task']}{arm}{things}{scene}"


def _unlimited(result: Mapping[str, Any]) -> str:
    """What a policy that was trained with rate limits comes to without them."""
    if (without := result.get("evaluation_unlimited")) is None:
        return ""
    line = Evaluation.from_dict(without).line()
    return f"<p>For comparison, without the rate limits it was trained in: {html.escape(line)}.</p>"


def _headline(judged: Evaluation | None) -> str:
    if judged is None:
        return "<p>Not measured: the task has no ground truth for this sentence.</p>"
    if judged.interval is None or judged.by_return:  # what no reward of ours saw
        line, on = html.escape(judged.line()), SEED_NAMES.get(judged.seed, judged.seed)
        return (
            f"<div class=big>{judged.return_mean:.1f}</div><p>{line.capitalize()}. On the {on}; "
            "final deterministic policy.</p>"
        )
    low, high = (100 * x for x in judged.interval)
    words = [
        f"95 % interval {low:.1f} to {high:.1f}; {judged.episodes:,} episodes of the "
        f"{SEED_NAMES.get(judged.seed, judged.seed)}, which no training uses; final deterministic "
        "policy."
    ]
    if judged.floors is not None:
        words.append(f"In the same episodes: {judged.floors.line(judged.episodes)}.")
    if not judged.above_floor:
        words.append("<b>The interval is not above these floors: nothing is shown.</b>")
    if judged.held:
        words.append(f"In {judged.held:,} episodes the goal held from the start.")
    if judged.misses:
        words.append(f"{html.escape(failure_line(judged.misses)).capitalize()}.")
    if judged.distance_unit and judged.distance_median is not None:
        median, p90 = (_length(x, judged) for x in (judged.distance_median, judged.distance_p90))
        words.append(f"Missing to the goal at the end: median {median}, 90 % within {p90}.")
    return f"<div class=big>{100 * judged.success:.1f} %</div><p>{' '.join(words)}</p>"


def _still(path: Path) -> str:
    if not path.exists():
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f"<img alt='the highest paid frames' src='data:image/png;base64,{data}'><p>Of the episodes "
        "above, with what they were paid: look whether they show what was asked for.</p>"
    )


def _length(x: float, judged: Evaluation) -> str:
    """``12 mm``, ``0.3 rad``."""
    unit = judged.distance_unit
    return f"{1000 * x:.0f} mm" if unit == "m" and x < 1.0 else f"{x:.3g} {unit}"


def _video(path: Path, judged: bool) -> str:
    if not path.exists():
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    mark = " Green dot: the ground truth holds." if judged else ""
    return section(
        "Unseen episodes",
        f"<video controls autoplay loop muted playsinline src='data:video/webm;base64,{data}'>"
        f"</video><p>Below each: the learned reward over the episode.{mark}</p>",
    )


def _curves(metrics: Mapping[str, Array], judged: bool) -> str:
    if "env_steps" not in metrics or len(metrics["env_steps"]) < 2:
        return ""
    from matplotlib.figure import Figure

    panels = [
        ("success of training episodes", "success", 100.0, "%"),
        ("reward per step", "reward", 1.0, ""),
        ("steps per second", "steps_per_s", 1.0, ""),
    ]
    # A run of before may have judged another goal than the one that nobody could judge.
    panels = [p for p in panels if p[1] in metrics and (judged or p[1] != "success")]
    figure = Figure(figsize=(9.4, 2.5), layout="constrained")
    axes: Sequence[Any] = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, name, factor, unit) in zip(axes, panels, strict=True):
        axis.plot(metrics["env_steps"] / 1000, factor * metrics[name], color="#c2185b", lw=1.8)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("thousand steps", fontsize=8)
        axis.set_ylabel(unit, fontsize=8)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.25)
        if name == "success":
            axis.set_ylim(-3, 103)
    return image(figure, "training curves")


def _periodic_evaluations(evaluations: Mapping[str, Array], config: Mapping[str, Any]) -> str:
    """Success of the deterministic policy while it learned, with Wilson's intervals."""
    if "success" not in evaluations:
        return ""
    from matplotlib.figure import Figure

    episodes = config["eval_episodes"]
    success = evaluations["success"]
    low, high = np.array([wilson(round(x * episodes), episodes) for x in success]).T
    figure = Figure(figsize=(9.4, 2.5), layout="constrained")
    axis = figure.subplots()
    spread = 100 * np.array([success - low, high - success]).clip(0)
    axis.errorbar(
        evaluations["env_steps"] / 1000, 100 * success, spread, color="#c2185b", capsize=3
    )
    axis.set_xlabel("thousand steps", fontsize=8)
    axis.set_ylabel("%", fontsize=8)
    axis.set_ylim(-3, 103)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    turned = overoptimised(evaluations)
    note = ""
    if "proxy" in evaluations:
        beside = axis.twinx()
        beside.plot(
            evaluations["env_steps"] / 1000, evaluations["proxy"], color="#5d6670", lw=1.2, ls="--"
        )
        beside.set_ylabel("reward per step (dashed)", fontsize=8)
        beside.tick_params(labelsize=8)
    for step in turned:
        axis.axvline(step / 1000, color="#d9a400", lw=4, alpha=0.4)
    if turned:
        note = (
            f"<p><b>Over-optimised at {', '.join(f'{step:,}' for step in turned)} steps</b> "
            "(yellow): paid more than at its best before, and succeeding less, beyond noise.</p>"
        )
    return (
        image(figure, "success while learning")
        + note
        + f"<p>The deterministic policy in {episodes:,} episodes each, the same every time and "
        "none of those that are quoted. The final policy is the one that counts, not the best of "
        "these.</p>"
    )


def _reward_report(path: Path) -> str:
    """Returns the section that `robo-rl reward report RUN` stored."""
    if not (path / REPORT).exists():
        return ""
    found = read_json(path / REPORT)
    parts = [
        f"<h3>{html.escape(title)}</h3>{_rows(head, rows)}" for title, head, rows in tables(found)
    ]
    parts += [f"<p>{html.escape(line)}</p>" for line in extra_lines(found)]
    film = path / FAILURES
    if film.exists() and found["best paid failures"]["episodes"]:
        data = base64.b64encode(film.read_bytes()).decode()
        parts.append(
            f"<video controls loop muted playsinline src='data:video/webm;base64,{data}'></video>"
            "<p>The failures that are paid most at their ends, and the reward below each.</p>"
        )
    return "".join(parts)


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    titles = "".join(f"<td><b>{html.escape(name)}</b></td>" for name in head)
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{titles}</tr>{cells}</table>"


def _costs(path: Path, result: Mapping[str, Any]) -> list[tuple[str, str]]:
    frames, seconds = result["frames"], result["seconds"]
    drawn = [
        ("Frames rendered for the scene", frames["scene"]),
        ("Frames rendered while training", frames["training"]),
        ("Frames asked for where in doubt", frames["labels"]),
        ("Frames rendered in evaluations", frames.get("looks", 0)),
    ]
    rows = [(name, f"{count:,}") for name, count in drawn if count]
    if not frames["scene"] and (path / SCENE).exists():
        rows.insert(0, (drawn[0][0], "0 (cached)"))
    return [
        *rows,
        ("Time for the baselines", f"{seconds['floors']:.0f} s" if "floors" in seconds else "-"),
        ("Time for the reward", f"{seconds['reward']:.0f} s"),
        ("Time for training", f"{seconds['train']:.0f} s"),
        ("Time for evaluation, video, bundle", f"{seconds['evaluate']:.0f} s"),
        ("Memory at most", f"{most} GB" if (most := result.get("peak_memory_gb")) else "-"),
    ]


def _scene(path: Path, result: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not (path / SCENE).exists():
        return []
    scene = read_json(path / SCENE)
    rows = [
        (
            "Cosine to rendered frames, held-out states",
            f"mean {scene['cosine_mean']:.4f}, 5th percentile {scene['cosine_p5']:.4f}",
        )
    ]
    if "audit" in result:
        audit = result["audit"]
        rows.append(
            (
                "The same on the final policy's own states",
                f"mean {audit['cosine_mean']:.4f}, 5th percentile {audit['cosine_p5']:.4f} "
                f"({audit['frames']:.0f} fresh frames, after training)",
            )
        )
    return rows


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows
    )
    return f"<table>{cells}</table>" if rows else ""


def _text(value: str) -> str:
    """Lines as lines: of a program they mean something."""
    text = html.escape(value.rstrip())
    return f"<pre>{text}</pre>" if "\n" in text else text


def _ground_truth_text(key: str) -> str:
    """Returns what judges success: a goal's key, or a formula as text."""
    return str(from_data(json.loads(key))) if key.startswith("[") else key or "none"


def _details(
    result: Mapping[str, Any], config: Mapping[str, Any], versions: Mapping[str, str]
) -> str:
    heading = "Captions scored" if result["scorer"] else "Reward"
    unread = "the sentence was not read" if result["goal"] else "none: no sentence was given"
    if config["goal"] == ANY:
        unread = "that of each goal"
    rows = [
        ("Formula", result["formula"] or unread),
        (heading, str(result["captions"])),
        ("What the reward saw", str(result["sees"])),
        *((name.capitalize(), text) for name, text in result["scorer"].items()),
        ("Ground truth", _ground_truth_text(result["truth"])),
        ("Seed", str(config["seed"])),
    ]
    text = html.escape(json.dumps({"config": config, "versions": versions}, indent=1))
    return (
        _table(rows)
        + f"<details><summary>Configuration and versions</summary><pre>{text}</pre></details>"
    )
