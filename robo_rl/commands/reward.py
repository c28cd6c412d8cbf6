"""`robo-rl reward`: read a sentence, check a program, train the embedded CLIP, judge it, score."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from robo_rl.search.model import ModelConfig, make_writer

Json = Annotated[bool, tyro.conf.arg(name="json")]

ACTIONS = {
    "read": "how a sentence is understood for a task",
    "write": "write a reward program for a sentence, by templates or a language model",
    "check": "read reward programs, run them on probes, and say what is wrong",
    "train": "train the embedded CLIP on frames and captions of the simulator",
    "report": "judge an encoder against the simulator's truth on held-out states",
    "score": "score a run's episodes, a video or a folder of images against a sentence",
}


def main(argv: Sequence[str]) -> int:
    """Dispatches to one action."""
    args = list(argv)
    if not args or args[0] in ("-h", "--help"):
        print("usage: robo-rl reward ACTION [...]\n")
        print("\n".join(f"  {name:8} {text}" for name, text in ACTIONS.items()))
        return 0
    if args[0] not in ACTIONS:
        raise ValueError(f"unknown action {args[0]!r}; known: {', '.join(ACTIONS)}")
    actions = {
        "read": read,
        "write": write,
        "check": check,
        "train": train,
        "report": report,
        "score": score,
    }
    return actions[args[0]](args[1:])


@dataclass(frozen=True, kw_only=True)
class ReadCommand:
    """Shows how a sentence is understood."""

    text: tyro.conf.Positional[str]  # the sentence
    task: str = "reach"  # whose objects it is about
    as_json: Json = False  # print JSON


def read(argv: Sequence[str]) -> int:
    """Prints the formula, the captions and the ground truth; exits 1 on a refusal."""
    command = tyro.cli(ReadCommand, args=list(argv), prog="robo-rl reward read")
    import sims
    from robo_rl.goals import read_goal
    from robo_rl.rewards import captions_of

    goal = read_goal(sims.make_task(command.task), command.text)
    if goal.formula is None:
        raise ValueError(goal.refusal)
    steps = [[c.text for c in step] for step in captions_of(goal, raw=False)]
    if command.as_json:
        entry = {"formula": str(goal.formula), "captions": steps, "truth": goal.key}
        print(json.dumps(entry, indent=1))
    else:
        captions = " -> ".join(" and ".join(step) for step in steps)
        print(f"{goal.formula}\ncaptions: {captions}\n{goal.truth}")
    return 0


@dataclass(frozen=True, kw_only=True)
class WriteCommand:
    """Writes a reward program for a sentence: by templates over what the grammar reads in it, or by
    a language model, whose answers go through the same checks until they pass."""

    task: str  # whose objects the sentence is about
    goal: str  # the sentence, or the key of one of the task's goals
    writer: str = "offline"  # offline (no network, no model), llm, text2reward, eureka or card
    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)  # of writers that ask one
    out: Path | None = None  # file to write; default: print it
    explain: bool = False  # also say in plain language what each component rewards


def write(argv: Sequence[str]) -> int:
    """Prints the program, or writes it; ValueError says what in the sentence is not understood."""
    command = tyro.cli(WriteCommand, args=list(argv), prog="robo-rl reward write")
    import sims
    from reward_models.base import from_dict
    from reward_models.goals import read as read_sentence
    from reward_models.programs import explain, load
    from reward_models.writers.offline import write as write_program

    task = sims.make_task(command.task)
    card = from_dict(task.card())
    sentence = card.goals.get(command.goal, command.goal)
    if command.writer == "offline":
        text = write_program(read_sentence(sentence, card), card)
    else:
        text = _asked(command, task, card, sentence)
    text = f"# {sentence}\n{text}"
    program = load(text, card)
    if command.out is None:
        print(text, end="")
    else:
        command.out.write_text(text)
        print(command.out)
    if command.explain:
        print("\n" + explain(program))
    return 0


def _asked(command: WriteCommand, task: Any, card: Any, sentence: str) -> str:
    """A language model's program that passed every check; ValueError with what was left to find."""
    import sims
    from reward_models.programs import errors, load
    from reward_models.programs.preflight import Job, preflight
    from robo_rl.archive import screened
    from robo_rl.goals import read_goal

    key = read_goal(task, sentence).key
    judged = sims.make_task(command.task, goal=key) if key and command.writer == "card" else None

    def found(text: str, card: Any) -> list[Any]:
        [diagnostics] = preflight([Job(text)], card)
        if judged is not None and not errors(diagnostics):
            diagnostics += screened(load(text, card), judged).diagnostics
        return diagnostics

    writer, budget = make_writer(command.writer, command.model, found)
    [draft] = writer.propose(card, sentence, 1)
    Console(stderr=True).print(
        f"{budget.used_calls} calls, {budget.used_tokens:,} tokens, {budget.used_money:.4f} spent"
    )
    if wrong := errors(writer.findings(draft.text, card)):
        raise ValueError(f"after {command.model.repairs} repairs the model's program is still "
                         f"refused: {'; '.join(map(str, wrong))}")  # fmt: skip
    return draft.text


@dataclass(frozen=True, kw_only=True)
class CheckCommand:
    """Judges reward programs: the language, units and shapes, then probes in a child process; with
    --goal also what they pay to episodes of known policies (preference, hacks, farming, living
    income, order of stages)."""

    files: tyro.conf.Positional[tuple[Path, ...]]  # programs
    task: str  # whose signals they read
    goal: str = ""  # a sentence or key that the task has a ground truth for; empty: no screens
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own
    explain: bool = False  # also say in plain language what each component rewards
    as_json: Json = False  # print a list with one object per file


def check(argv: Sequence[str]) -> int:
    """Prints the findings of each file; 0 only if no file has an error."""
    command = tyro.cli(CheckCommand, args=list(argv), prog="robo-rl reward check")
    from reward_models.base import from_dict
    from reward_models.programs import Diagnostic, Refused, errors, explain, load
    from reward_models.programs.preflight import Job, preflight
    from robo_rl.archive import screened

    if not command.files:
        raise ValueError("give the files to check: robo-rl reward check FILE... --task TASK")
    task = _judged(command.task, command.robot, command.goal)
    card = from_dict(task.card())
    found: list[list[Diagnostic]] = []
    programs = {}
    for path in command.files:
        try:
            programs[path] = load(path.read_bytes().decode("utf-8"), card)
            found.append(list(programs[path].warnings))
        except UnicodeDecodeError:
            found.append([Diagnostic("source", "not a text in UTF-8")])
        except Refused as refused:
            found.append(list(refused.diagnostics))
    accepted = [i for i, diagnostics in enumerate(found) if not errors(diagnostics)]
    jobs = [Job(programs[command.files[i]].text) for i in accepted]
    for i, diagnostics in zip(accepted, preflight(jobs, card), strict=True):
        found[i] += diagnostics
        if command.goal and not errors(diagnostics):
            found[i] += screened(programs[command.files[i]], task).diagnostics
    fine = [not errors(diagnostics) for diagnostics in found]
    if command.as_json:
        entries = [
            {"file": str(path), "ok": ok, "diagnostics": [d.as_dict() for d in diagnostics]}
            for path, ok, diagnostics in zip(command.files, fine, found, strict=True)
        ]
        print(json.dumps(entries, indent=1))
        return 0 if all(fine) else 1
    for path, ok, diagnostics in zip(command.files, fine, found, strict=True):
        print(f"{path}: {'ok' if ok else 'refused'}")
        for d in diagnostics:
            print(f"  {'' if d.severity == 'error' else 'warning: '}{d}")
        if ok and command.explain:
            print("  " + explain(programs[path]).replace("\n", "\n  "))
    return 0 if all(fine) else 1


def _judged(name: str, robot: str, goal: str) -> Any:
    """The task with the ground truth of a goal; ValueError where the goal has none."""
    import sims
    from robo_rl.goals import read_goal

    task = sims.make_task(name, robot=robot or None)
    if not goal:
        return task
    found = read_goal(task, goal)
    if not found.key:
        raise ValueError(
            found.refusal or f"screens judge by ground truth, and there is {found.truth}"
        )
    return sims.make_task(name, robot=robot or None, goal=found.key)


@dataclass(frozen=True, kw_only=True)
class TrainClipCommand:
    """Trains the embedded CLIP: renders frames, writes captions from the state, fits, judges."""

    task: str = "reach"  # whose scene
    frames: int = 80_000  # rendered for training
    steps: int = 4_100  # gradient steps; 0: as many as fit into the minutes
    minutes: float = 15.0  # of fitting, with --steps 0
    seed: int = 11  # of states and weights
    device: str = "cpu"  # cpu or cuda
    out: Path | None = None  # safetensors file; default: the weights inside the package
    check: bool = True  # judge it afterwards and write the figures into its card


def train(argv: Sequence[str]) -> int:
    """Writes the weights, their card, and the state rows that guard the look."""
    command = tyro.cli(TrainClipCommand, args=list(argv), prog="robo-rl reward train")
    import time

    import torch

    import sims
    from reward_models.config import FitConfig
    from reward_models.visual import tiny_clip
    from reward_models.visual.encoders import EmbeddedClip
    from reward_models.visual.train import fit
    from robo_rl.look_guard import write_guard
    from robo_rl.reward_data import dataset
    from robo_rl.reward_gate import gate
    from robo_rl.runs import versions
    from robo_rl.threads import set_threads

    torch.set_num_threads(set_threads())
    console = Console(stderr=True)
    start = time.monotonic()
    env = sims.make(command.task, 256, seed=command.seed)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("frames", total=1.0)
        frames, facts, states = dataset(
            env,
            command.frames,
            command.seed,
            progress=lambda share: progress.update(bar, completed=share),
        )
        bar = progress.add_task("fit", total=1.0)

        def show(share: float, losses: dict[str, float]) -> None:
            text = " ".join(f"{k} {v:.3f}" for k, v in losses.items() if k != "step")
            progress.update(bar, completed=share, description=f"fit  {text}")

        config = FitConfig(
            minutes=command.minutes,
            steps=command.steps,
            seed=command.seed,
            device=command.device,
        )
        model = fit(frames, facts, config, show)
    out = command.out or tiny_clip.DEFAULT
    card: dict[str, Any] = {
        "model": "open_clip CLIP, keypoint image tower, word vocabulary",
        "task": command.task,
        "licence": "Apache-2.0",
        "frames": command.frames,
        "fit": dataclasses.asdict(config),
        "seconds": round(time.monotonic() - start),
        "versions": versions(),
        "command": f"robo-rl reward train --frames {command.frames} --steps {command.steps} "
        f"--seed {command.seed}",
    }
    tiny_clip.save(model.cpu(), out, card)
    write_guard(env, states, out.with_suffix(".guard.npz"))
    if command.check:
        figures = gate(EmbeddedClip(out))
        card["gate"] = {"worst": figures["worst"], "frames_per_s": figures["frames_per_s"]}
        tiny_clip.save(model, out, card)
        console.print(card["gate"])
    env.close()
    print(out)
    return 0


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Judges an encoder on held-out states of the simulator."""

    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    tasks: tuple[str, ...] = ("reach", "push")  # whose goals
    states: int = 6000  # held out
    as_json: Json = False  # print JSON


def report(argv: Sequence[str]) -> int:
    """Prints the gate's figures for every goal."""
    command = tyro.cli(ReportCommand, args=list(argv), prog="robo-rl reward report")
    import torch
    from rich.table import Table

    from reward_models.visual.encoders import make_encoder
    from robo_rl.reward_gate import gate
    from robo_rl.threads import set_threads

    torch.set_num_threads(set_threads())
    figures = gate(make_encoder(command.encoder), tasks=command.tasks, count=command.states)
    if command.as_json:
        print(json.dumps(figures, indent=1))
        return 0
    console = Console()
    for name, rows in figures.items():
        if "/" not in name:
            continue
        table = Table("goal", "AUC", "Spearman < 10 cm", "Spearman", title=name, box=None)
        for row in rows:
            cells = (f"{row[k]:.4f}" for k in ("auc", "spearman", "spearman_all"))
            table.add_row(row["goal"], *cells)
        console.print(table)
    for name, value in figures["worst"].items():
        console.print(f"{name:24} {value:.4f}")
    console.print(f"frames/s {figures['frames_per_s']:.0f}")
    return 0


@dataclass(frozen=True, kw_only=True)
class ScoreCommand:
    """Scores what is seen against a sentence, frame by frame."""

    source: tyro.conf.Positional[Path]  # a run, a video file, or a folder of images
    goal: str = ""  # the sentence; empty: the run's own
    task: str = "reach"  # whose objects the sentence is about (a run brings its own)
    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    as_json: Json = False  # print JSON


def score(argv: Sequence[str]) -> int:
    """Prints one score per frame; of a run, the correlation with the true distance too."""
    command = tyro.cli(ScoreCommand, args=list(argv), prog="robo-rl reward score")
    import sims
    from reward_models.metrics import spearman
    from reward_models.visual.encoders import make_encoder
    from robo_rl.goals import read_goal
    from robo_rl.rewards import captions_of
    from robo_rl.video import read_frames

    encoder = make_encoder(command.encoder)
    task, distance = sims.make_task(command.task), None
    text = command.goal
    if (command.source / "result.json").exists():
        frames, task, distance, text = _run_frames(command.source, text)
    else:
        frames, _ = read_frames(command.source)
    if not text:
        raise ValueError("give the sentence: --goal TEXT")
    goal = read_goal(task, text)
    if goal.formula is None and command.encoder.startswith("embedded"):
        raise ValueError(goal.refusal)
    captions = [goal.text]
    if command.encoder.startswith("embedded"):
        captions = [c.text for c in captions_of(goal, raw=False)[-1]]
    rows = encoder.encode(np.ascontiguousarray(frames))
    cosine = (rows @ encoder.encode_texts(tuple(captions)).T).min(axis=1)
    figures: dict[str, Any] = {"captions": captions, "frames": len(frames)}
    if distance is not None and goal.key == task.goal:
        figures["spearman_with_true_distance"] = spearman(cosine, -distance)
    if command.as_json:
        print(json.dumps(figures | {"score": cosine.tolist()}, indent=1))
        return 0
    print("; ".join(f"{k}: {v}" for k, v in figures.items()))
    for index, value in enumerate(cosine):
        bar = "#" * max(0, round(30 * (value + 0.3)))
        print(f"{index:4d} {value:+.3f} {bar}")
    return 0


def _run_frames(path: Path, text: str) -> tuple[Any, Any, Any, str]:
    """(frames, task, true distance, sentence) of one fresh episode of a run's policy."""
    from robo_rl.evaluate import TEST_SEED, make_task, record
    from robo_rl.policies import load_policy
    from robo_rl.runs import RunDir
    from sims.batch_env import BatchEnv

    run = RunDir.open(path)
    result = json.loads((path / "result.json").read_text())
    task = make_task(run.config, result["truth"])
    shown = record(task, load_policy(path), episodes=1, seed=TEST_SEED + 1)
    env = BatchEnv(task, 1)
    frames = env.render_states(shown.states[:, 0])
    env.close()
    return frames, task, shown.distance[:, 0], text or result["goal"]
