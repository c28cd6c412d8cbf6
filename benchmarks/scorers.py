"""Every scorer on five tasks: how far it is from the dense reward, how it orders and tells success;
on three of them also what a policy learns from it alone. The dense reward, a random network and a
clock stand beside them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder, training
from benchmarks.demonstrated import demonstrated
from benchmarks.table import percent
from benchmarks.training import FLOORS, PolicyCase, baselines_text, policy, task_code
from robo_rl.config.presets import preset, with_presets
from robo_rl.config.train_config import TrainConfig
from robo_rl.evaluation.reward_tables import figure, interval, percent_text
from robo_rl.labelling.queries import QueryConfig
from robo_rl.rewards import ClipConfig, RewardConfig, reward_type
from robo_rl.rewards.goal_image import card_of
from robo_rl.rewards.learned import PreferencesConfig
from robo_rl.runs.markdown import table
from robo_rl.scorers.train import KINDS, train_scorer
from sims.envs.demonstrations import DemoConfig

SEEDS = (0, 1, 2)
ROBOT, LEARNER, STEPS = "so101", "ensemble", 100_000
TASKS = {  # with their goals
    "reach": "touch_red_cube",
    "push": "red_cube_next_to_blue_ball",
    "lift": "lift_cube",
    "drawer": "open",
    "button": "press",
}
LEARNED = ("reach", "drawer", "button")  # whose policies are trained, too
EPISODES = 128  # on which a reward is judged
PICTURES = 64  # of ends of the expert's episodes
ANSWERS = 1_000  # of the scripted oracle, a fifth of them turned round
ASKED_ON = 600  # of them about the policy's own episodes, where it is asked while one learns
LESSER = "a sentence that says less"  # than the goal's, and is true of success, too
LESS = {
    "reach": "the gripper is near the red cube",
    "push": "the red cube is near the blue ball",
    "lift": "the red cube is grasped",
    "drawer": "the gripper touches the handle",
    "button": "the gripper is near the button",
}


class ScorerCase(NamedTuple):
    """A reward, as it is typed, and whether a file is made for it first."""

    reward: str
    file: str = ""
    making: Mapping[str, Any] = {}  # options of the command that writes the file
    scoring: RewardConfig | None = None  # None: as it comes
    horizon_s: float = 0.0  # s, horizon of the policy that learns from it; 0: default
    judged: bool = True
    learned: bool = True

    def typed(self, file: Path | None = None) -> str:
        """As ``--reward`` takes it; without ``file``, before it is made."""
        return f"{self.reward}:{file or self.file}" if self.file else self.reward


def _heads(kind: str, **more: Any) -> ScorerCase:
    return ScorerCase(kind, f"{kind}.safetensors", **more)


def _query_options(answers: int) -> dict[str, Any]:
    return {"ask": QueryConfig(answers=answers)}


SCORERS = {
    "dense": ScorerCase("task"),
    "sentence": ScorerCase("clip"),
    "progress": _heads("progress"),
    "progress, nothing rewound": _heads("progress", making={"rewinds": 0}, learned=False),
    "critic": _heads("critic"),
    "critic, nothing ranked": _heads("critic", making={"ranking": 0.0}, learned=False),
    "value": _heads("value"),
    "value, nothing contrasted": _heads("value", making={"contrast": 0.0}, learned=False),
    "success": _heads("success"),
    "preferences": _heads("preferences", making=_query_options(ANSWERS)),
    "preferences, rated": _heads(
        "preferences", making={"ask": QueryConfig(answers=ANSWERS, form="rating")}, learned=False
    ),
    "preferences, asked on": _heads(
        "preferences",
        making=_query_options(ANSWERS - ASKED_ON),
        scoring=PreferencesConfig(answers=ASKED_ON),
        judged=False,
    ),
    "pictures": ScorerCase("goal-image", "pictures"),
    LESSER: ScorerCase("clip", learned=False),
    # What is paid once an episode has to be looked forward to from its beginning.
    "film beside the sentence": ScorerCase("film", horizon_s=10.0),
    "film beside another": ScorerCase("film", "film", horizon_s=10.0),
}
CONTROLS = ("random", "time")  # which any report has
MAKING = ("robo_rl.scorers.train", "robo_rl.rewards.goal_pictures", "sims.envs.demonstrations")


@dataclass(frozen=True)
class JudgedScorer:
    """A scorer of one task's goal, made with ``seed``, that is judged."""

    task: str
    goal: str
    name: str
    scorer: ScorerCase | None  # None: a control
    seed: int
    episodes: int


@dataclass(frozen=True)
class Learned:
    """A policy that knows no other reward than a scorer."""

    policy: PolicyCase
    scorer: JudgedScorer


def rows(options: Options) -> list[BenchmarkRow]:
    """All scorers of every task, then what is learned from them, with one seed after another."""
    made = []
    for number in options.seeds or SEEDS:
        seed = number if options.develop else training.FRESH + number
        episodes = options.scaled(EPISODES, least=32)
        of = {
            (task, name): JudgedScorer(task, goal, name, _scorer(task, name), seed, episodes)
            for task, goal in TASKS.items()
            for name in (*SCORERS, *CONTROLS)
        }
        for (task, name), judged in of.items():
            scorer = judged.scorer
            if scorer is None or scorer.judged:
                by = () if scorer is None else (reward_type(scorer.typed()).build.__module__,)
                code = (*task_code(_task(judged)), *MAKING, "robo_rl.reward_analysis.report", *by)
                named = f"{task}, {name}, judged, seed {number}"
                made.append(BenchmarkRow(named, judged, code, ("real_robot",)))
        for (task, name), judged in of.items():
            if task in LEARNED and judged.scorer is not None and judged.scorer.learned:
                row = policy(f"{task}, {name}, seed {number}", _config(judged), options, number)
                learned = Learned(row.of, judged)
                made.append(replace(row, of=learned, code=(*row.code, *MAKING)))
    return made


def _scorer(task: str, name: str) -> ScorerCase | None:
    if name == LESSER:
        return SCORERS[name]._replace(scoring=ClipConfig(target=LESS[task]))
    return SCORERS.get(name)


def _task(of: JudgedScorer) -> sims.Task[Any]:
    return sims.make_task(of.task, robot=ROBOT, goal=of.goal)


def _config(of: JudgedScorer) -> TrainConfig:
    scorer = of.scorer
    asked = TrainConfig(
        task=of.task,
        robot=ROBOT,
        goal=of.goal,
        reward=scorer.typed(),
        scoring=scorer.scoring,
        eval_points=0,
    )
    config = with_presets(preset(of.task, LEARNER, asked))
    horizon = scorer.horizon_s or config.tuning.horizon_s
    # A preset says how many steps a task takes from its own reward; here all have as many.
    return replace(config, env_steps=STEPS, tuning=replace(config.tuning, horizon_s=horizon))


def measure(of: JudgedScorer | Learned, place: RowFolder) -> dict[str, Any]:
    """What a scorer is worth, or what was learned from it."""
    if isinstance(of, JudgedScorer):
        return _judged(of, place)
    reward = _reward_option(of.scorer, place)
    return training.measure(
        replace(of.policy, config=replace(of.policy.config, reward=reward)), place
    )


def _judged(of: JudgedScorer, place: RowFolder) -> dict[str, Any]:
    from robo_rl.goals.reading import judged_goal
    from robo_rl.learners import EnsembleConfig
    from robo_rl.reward_analysis.report import Subject, judge_rewards

    name = "sparse" if of.scorer is None else _reward_option(of, place)
    task, goal = judged_goal(_task(of), of.goal)
    gamma = EnsembleConfig().gamma(task.control_dt)
    scoring = None if of.scorer is None else of.scorer.scoring
    subject = Subject(task, goal, {name: scoring}, {}, gamma)
    report = judge_rewards(subject, episodes=of.episodes, words=False).report
    if of.scorer is None:
        return {"worth": _worth(report["controls"][of.name])}
    return {"worth": _worth(report["rewards"][name])}


def _worth(row: Mapping[str, Any]) -> dict[str, Any]:
    time = row["order in time"]
    return {
        "starc": row["free"]["starc"],
        "tau": row["order"],
        "voc": [time[how] for how in ("success", "reversed", "failure")],
        "auc": row["auc all"],
        "threshold": row["threshold"],
    }


def _reward_option(of: JudgedScorer, place: RowFolder) -> str:
    """The reward as ``--reward`` takes it, once its file is made beside the row's place."""
    scorer = of.scorer
    if not scorer.file:
        return scorer.typed()
    folder = place.folder.with_name(f"{place.folder.name}-scorer")
    folder.mkdir(parents=True, exist_ok=True)
    return scorer.typed(_file(of, scorer, folder, place))


def _file(of: JudgedScorer, scorer: ScorerCase, folder: Path, place: RowFolder) -> Path:
    out = folder / scorer.file
    if scorer.reward == "film":
        config = TrainConfig(task=of.task, robot=ROBOT, goal=of.goal)
        return demonstrated(
            config, DemoConfig(episodes=1, seed=of.seed), replace(place, folder=out)
        )
    if scorer.reward == "goal-image":
        if not card_of(out).exists():  # it is written last
            shutil.rmtree(out, ignore_errors=True)
            _take_pictures(of, out)
        return out
    if not out.exists():
        kind = KINDS[scorer.reward]
        config = kind(task=of.task, robot=ROBOT, goal=of.goal, out=out)
        # Demonstrations are another few episodes with every seed, and networks begin otherwise.
        seeded = {
            "watch": replace(config.watch, seed=of.seed),
            "head": replace(config.head, seed=of.seed),
        }
        train_scorer(replace(config, **seeded, **scorer.making))
    return out


def _take_pictures(of: JudgedScorer, out: Path) -> None:
    from robo_rl.goals.reading import judged_goal
    from robo_rl.rewards.goal_pictures import take_pictures

    task, goal = judged_goal(_task(of), of.goal)
    take_pictures(task, goal, out, count=PICTURES, seed=of.seed)


def table_text(rows: Sequence[Measured]) -> str:
    """What each scorer is worth; then what was learned from it."""
    judged = [
        (
            row["name"],
            *(interval(row["worth"]["starc"][truth]) for truth in ("task", "sparse")),
            interval(row["worth"]["auc"]),
            figure(row["worth"]["tau"]),
            ", ".join(map(figure, row["worth"]["voc"])),
            percent_text(row["worth"]["threshold"]["false positives"]),
            percent_text(row["worth"]["threshold"]["found"]),
        )
        for row in rows
        if "worth" in row
    ]
    heads = (
        "scorer",
        "STARC to dense",
        "STARC to sparse",
        "AUC",
        "tau",
        "VOC, reversed, failures",
        "false positives",
        "found",
    )
    learned = [
        (
            row["name"],
            percent(row["evaluation"]),
            baselines_text(row["evaluation"]),
            f"{row['env_steps']:,}",
            f"{row['seconds'].get('processor', 0) / 60:.1f}",
        )
        for row in rows
        if "evaluation" in row
    ]
    after = ("learned from", "success (95 % interval, n)", FLOORS, "steps", "processor min")
    return table(heads, judged) + "\n" + table(after, learned)


EXPERIMENT = Experiment(rows, measure, table_text)
