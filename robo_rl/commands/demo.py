"""`robo-rl demo`: the whole line, from a sentence to a simulated arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from robo_rl.config.train_config import TrainConfig
from robo_rl.rewards import ClipConfig
from robo_rl.runtime.progress_bars import stderr_console

SENTENCE = "the gripper touches the red cube"


@dataclass(frozen=True, kw_only=True)
class DemoCommand:
    """End-to-end demo with the embedded CLIP: sentence, reward, policy, report, simulated arm."""

    goal: str = SENTENCE  # goal, as a sentence
    distill: bool = False  # score state with a distilled model; else render every step
    seed: int = 0  # training seed
    runs: Path = Path("runs")  # folder in which run folders are created
    arm_episodes: int = 20  # episodes on the simulated arm, with control loop and safety filter


def main(argv: Sequence[str]) -> int:
    """Trains a policy from a CLIP reward, evaluates it and runs it on a simulated arm."""
    command = tyro.cli(DemoCommand, args=list(argv), prog="robo-rl demo")
    from robo_rl.arm.episodes import run_emulated
    from robo_rl.evaluation.evaluate import summary_line
    from robo_rl.training.train import train

    console = stderr_console()
    name = next(n for n in _names("demo") if not (command.runs / n).exists())
    config = TrainConfig(
        goal=command.goal,
        scoring=ClipConfig(distill=command.distill),
        seed=command.seed,
        runs=command.runs,
        name=name,
        eval_seeds="test",
    )
    trained = train(config, console=console)
    times = ", ".join(f"{what} {s:.0f} s" for what, s in trained.seconds.items())
    console.print(f"time: {times}")
    arm = run_emulated(trained.bundle, episodes=command.arm_episodes, console=console)
    console.print(arm.line())
    for remark in arm.remarks:
        console.print(remark, markup=False)
    console.print(f"report: {trained.run.path / 'report.html'}")
    console.print(f"video:  {trained.run.path / 'video.webm'}")
    console.print(f"bundle: {trained.bundle}")
    print(summary_line(trained.evaluation))
    return 0


def _names(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1
