"""`robo-rl reward report`: any reward against the simulator's truth, or an encoder's captions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.console import Console
from rich.table import Table as Printed

from reward_models.vision.config import NumberFormat
from robo_rl.commands.options import Json, SceneOptions
from robo_rl.evaluation.reward_tables import figures_text
from sims.core.multi_goal import ANY

if TYPE_CHECKING:
    from robo_rl.reward_analysis.report import Subject

WIDTH = 124  # characters that a report's tables need
SHARED = ("encoder", "dtype", "distill", "elsewhere")  # settings that are given for all rewards


@dataclass(frozen=True, kw_only=True)
class RewardReportCommand(SceneOptions):
    """Evaluates rewards of one goal, or of a run, against the simulator's success judge; without
    rewards, evaluates an encoder on held-out states, per caption."""

    # As `robo-rl list rewards` shows, a scorer's FILE.safetensors, or one finished run's folder.
    rewards: tyro.conf.Positional[tuple[str, ...]] = ()
    task: str = "reach"  # task of the goal or captions (a run or scorer has its own)
    goal: str = ""  # sentence or key with a success judge; empty: the first goal
    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    # Number format of the encoder: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    camera: str = ""  # camera of the encoder; empty: the first it was trained on
    distill: bool = False  # clip: score state with a distilled model (--clip.distill)
    elsewhere: bool = False  # evaluate a learned scorer in another scene or for another goal
    episodes: int = 256  # evaluation episodes per reward
    bootstrap_samples: int = 100  # bootstrap samples over episodes
    words: bool = True  # also compare a reward made from a sentence with other sentences
    policy: tuple[Path, ...] = ()  # finished runs of the same goal, whose policies add episodes
    out: Path | None = None  # .json file for all figures (a run stores its own)
    video: Path | None = None  # .webm video of failures with the most reward
    states: int = 6000  # held-out states for the evaluation of an encoder
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints the figures of rewards; or of an encoder, as the scene is and with camera, light and
    paint changed."""
    command = tyro.cli(RewardReportCommand, args=list(argv), prog="robo-rl reward report")
    return _rewards(command) if command.rewards else _encoder(command)


def _rewards(command: RewardReportCommand) -> int:
    for name in ("episodes", "bootstrap_samples"):
        if getattr(command, name) < 16:
            raise ValueError(f"--{name} must be at least 16, got {getattr(command, name)}")
    for option, suffix in (("out", ".json"), ("video", ".webm")):
        path = getattr(command, option)
        if path is not None and path.suffix != suffix:
            raise ValueError(f"--{option} must be a {suffix} file, got {path}")
    from robo_rl.evaluation.reward_tables import FAILURES
    from robo_rl.reward_analysis.report import judge_rewards, keep_report, write_failure_video
    from robo_rl.runs.run_dir import RunDir, write_json
    from robo_rl.runtime.progress_bars import stage_progress, stderr_console
    from robo_rl.runtime.threads import set_threads

    set_threads()
    run, subject = _subject(command)
    with stage_progress(stderr_console()) as progress:
        verdict = judge_rewards(
            subject,
            episodes=command.episodes,
            draws=command.bootstrap_samples,
            words=command.words,
            progress=progress,
        )
    first = next(iter(subject.rewards))
    films = [path for path in (command.video, run and run / FAILURES) if path]
    for path in films:
        policys = [f"the policy in {folder.name}" for folder in subject.runs]
        videos = write_failure_video(verdict, first, path, policys)
        verdict.report["best paid failures"] = {"film": path.name, "episodes": videos}
    if run is not None:
        keep_report(RunDir.open(run), verdict)
    if command.out is not None:
        write_json(command.out, verdict.report)
    if command.as_json:
        print(json.dumps(verdict.report, indent=1))
    else:
        show(verdict.report)
    return 0


def _subject(command: RewardReportCommand) -> tuple[Path | None, Subject]:
    """(the run that is judged, if it is one; what is judged)."""
    from robo_rl.goals.reading import NotRead, StatedGoal
    from robo_rl.learners import PPOConfig
    from robo_rl.reward_analysis.report import Subject, subject_of_run
    from robo_rl.rewards import reward_type

    runs = [Path(r) for r in command.rewards if (Path(r) / "config.json").is_file()]
    if runs:
        if len(command.rewards) > 1:
            raise ValueError("a run must be the only argument: give its folder and no other reward")
        return runs[0], subject_of_run(runs[0])
    options, names = vars(command), list(command.rewards)
    for number, name in enumerate(names):
        if name.endswith(".safetensors") and ":" not in name:
            names[number], options = _scorer(Path(name), options)
    for name in names:
        reward_type(name)
    task, goal = StatedGoal.of(options).judged
    if goal.key == ANY:
        raise ValueError(f"a reward is compared with one goal's judge, got --goal {ANY}")
    if not goal.key:
        raise NotRead(goal) if goal.refusal else ValueError(goal.truth)
    settings = {name: _settings(reward_type(name).settings, command) for name in names}
    gamma = PPOConfig().gamma(task.control_dt)
    return None, Subject(task, goal, settings, {}, gamma, command.policy)


def _settings(kind: type, command: RewardReportCommand) -> Any:
    """The settings of a reward, with what the command says of them."""
    known = {f.name for f in dataclasses.fields(kind)}
    return kind(**{n: getattr(command, n) for n in SHARED if n in known})


def _scorer(path: Path, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(the reward's name, options with the scorer's own scene and goal)."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            card = json.loads((file.metadata() or {})["card"])
        kind, scene = card["kind"], card["scene"]
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ValueError(
            f"{path} is not a scorer of robo-rl reward train success, progress or "
            f"preferences ({error}); to evaluate a CLIP as a reward: robo-rl reward report clip "
            f"--encoder embedded:{path}"
        ) from None
    own = {"task": scene["task"], "robot": scene["robot"], "goal": scene["truth"]}
    if options["task"] != scene["task"]:  # whose things they would be
        own |= {"things": "", "scene": ""}
    return f"{kind}:{path}", {**options, **own}


def _encoder(command: RewardReportCommand) -> int:
    from robo_rl.goals.reading import task_of_config

    for name in ("goal", "distill", "elsewhere", "policy", "video", "out"):
        if getattr(command, name) != getattr(RewardReportCommand, name):
            raise ValueError(f"--{name} needs rewards: name at least one, or leave it out")
    task = task_of_config(vars(command))
    import torch  # takes seconds, which --help shall not

    from reward_models.vision.encoders import make_encoder
    from robo_rl.rewards.clip import select_training_scene
    from robo_rl.runtime.threads import set_threads
    from robo_rl.vision.caption_gate import evaluate_captions, figure

    torch.set_num_threads(set_threads())
    encoder = make_encoder(command.encoder, dtype=command.dtype)
    select_training_scene(encoder, task, "--encoder", command.camera)
    figures = evaluate_captions(encoder, task, count=command.states)
    if command.as_json:
        print(json.dumps(figures, indent=1))
        return 0
    console = Console()
    for label in ("plain", "moved"):
        table = Printed("caption", "AUC", "rank", "true", title=label, box=None)
        for cell in figures[label]:
            area, rank = (figure(cell[name]) for name in ("auc", "rank"))
            table.add_row(cell["text"], area, rank, str(cell["true"]))
        console.print(table)
    for label in ("plain", "moved"):
        console.print(f"{label}: {figures_text(figures[f'{label} summary'])}", highlight=False)
    if figures["swapped"] is not None:
        console.print(f"colours distinguished, both ways: {figures['swapped']:.1%}")
    console.print(f"frames/s {figures['frames_per_s']:.0f}")
    return 0


def show(report: Mapping[str, Any]) -> None:
    """Prints a report's tables, in lines as long as they are."""
    from robo_rl.evaluation.reward_tables import extra_lines, tables

    console = Console(width=max(WIDTH, Console().width))
    for title, head, rows in tables(report):
        table = Printed(title=title, title_justify="left", box=None)
        for name in head:
            table.add_column(name, no_wrap=True)
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print()
    for line in extra_lines(report):
        console.print(line, highlight=False, soft_wrap=True)
