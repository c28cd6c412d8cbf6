"""`robo-rl train`: a policy on a task, with a reward."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

import sims
from real_robot.policy.bundle import POLICY
from robo_rl.commands.options import Json, UnreadOptions
from robo_rl.commands.reading_offers import with_reading_offers
from robo_rl.config.presets import preset
from robo_rl.config.resolve import resolve
from robo_rl.config.train_config import (
    CommonOptions,
    FurtherOptions,
    SettledConfig,
    TrainConfig,
    from_json,
    resumed_config,
)
from robo_rl.goals.reading import StatedGoal
from robo_rl.goals.task_lookup import task_for
from robo_rl.learners import LEARNERS, EnsembleConfig, LearnerConfig, PPOConfig
from robo_rl.rewards import RewardConfig, reward_type
from robo_rl.runs.run_dir import RunDir, jsonable
from robo_rl.runtime.argv import pop_option
from robo_rl.runtime.progress_bars import stderr_console
from robo_rl.runtime.renamed_options import current_options
from robo_rl.search.llm_writer import ModelConfig
from sims.external.gymnasium_env import PREFIX

PROGRAM = "robo-rl train"


@dataclass(frozen=True, kw_only=True)
class TrainCommand(CommonOptions):
    """Trains a policy: TASK --goal "a sentence" --reward clip; or "a sentence" alone.

    Options of a learner (--demos, --base, --interventions, --tuning.*) and of a reward (--clip.*,
    --success.*) are shown by --help beside it: robo-rl train --learner ensemble --reward
    success:FILE --help.
    """

    # A name from `robo-rl list tasks`, or gym:ID; or a goal sentence that a task can parse.
    task: tyro.conf.Positional[str] = "reach"
    resume: Path | None = None  # run folder to resume; --env-steps MORE extends it
    # YAML file of options, as tuning: {n_steps: 64}; options that are typed win.
    config: Path | None = None
    like: Path | None = None  # run folder whose settings are taken; options that are typed win
    as_json: Json = False  # print the result as JSON
    further: tyro.conf.OmitArgPrefixes[FurtherOptions] = field(default_factory=FurtherOptions)
    unread: tyro.conf.OmitArgPrefixes[UnreadOptions] = field(default_factory=UnreadOptions)
    reading: ModelConfig = field(default_factory=ModelConfig)  # language model of --reader llm
    scoring: RewardConfig = field(default_factory=RewardConfig)
    tuning: LearnerConfig = field(default_factory=PPOConfig)

    @property
    def config_values(self) -> dict[str, Any]:
        """The values of a TrainConfig's fields."""
        values = vars(self) | vars(self.further)
        return {f.name: values[f.name] for f in fields(TrainConfig)}


def main(argv: Sequence[str]) -> int:
    """Trains, evaluates, reports and exports."""
    return with_reading_offers(_train, argv)


def _train(argv: Sequence[str]) -> int:
    command, stated = _parsed(argv)
    console = stderr_console()
    if command.goal in argv and command.task not in argv:  # nobody said which
        console.print(f"task: {command.task}")
    if command.resume is None:
        config = resolve(TrainConfig(**command.config_values), stated)
    else:
        config = resumed_config(command.resume, _stored(command.resume), command.config_values)
    from robo_rl.evaluation.evaluate import summary_line
    from robo_rl.training.train import train

    trained = train(config, resume=command.resume, console=console)
    if command.as_json:
        print((trained.run.path / "result.json").read_text())
        return 0
    bundle_note = f"bundle: {trained.bundle}" if trained.bundle else "no bundle: there is no arm"
    outputs = [trained.run.path / name for name in ("report.html", POLICY)]
    console.print(f"{' and '.join(str(p) for p in outputs if p.exists())}; {bundle_note}")
    print(summary_line(trained.evaluation))
    return 0


def parse_train(argv: Sequence[str]) -> TrainCommand:
    """The train command's options. `--learner`, or what a goal is learned by soonest, decides which
    `--tuning` there is, `--reward` which settings under its name; the task may have defaults of its
    own; of a run that goes on, what it began with is the default."""
    return _parsed(argv)[0]


def _parsed(argv: Sequence[str]) -> tuple[TrainCommand, StatedGoal | None]:
    """The options, and their goal where the defaults hang on it."""
    args, stated = with_config(argv), None
    if resumed := option_in(args, "--resume"):
        return _parse(args, _stored(Path(resumed))), None
    learner = option_in(args, "--learner") or None
    demos = option_in(args, "--demos") or option_in(args, "--tuning.demos")
    demos_tuning = EnsembleConfig(demos=demos) if demos else None
    begin = preset(TrainCommand.task, learner, TrainConfig(tuning=demos_tuning))
    parsed = _parse_known(args, begin)[0]
    if found := _task_of_sentence(parsed):
        at = args.index(parsed.task)
        args[at : at + 1] = [found, "--goal", parsed.task]
        parsed = _parse_known(args, begin)[0]
    if parsed.task in sims.TASKS:  # else somebody else's, or none: whoever trains it says so
        of_clip = any(arg.startswith("--clip.") for arg in args)  # which so is asked for
        reward = option_in(args, "--reward") or ("clip" if of_clip else None)
        goal_fields = ("goal", "formula", "robot", "things", "scene")
        goal = {name: getattr(parsed, name) for name in goal_fields}
        config = TrainConfig(
            reward=reward, eval_points=parsed.further.eval_points, tuning=demos_tuning, **goal
        )
        stated = StatedGoal.of({**vars(config), "task": parsed.task})
        begin = preset(parsed.task, learner, config, stated=stated)
    _check_fitting(args, begin.learner)
    parsed = _parse(args, begin)
    labels = [
        name
        for name in ("labels", "labels_every", "labels_above")
        if getattr(parsed.further, name) != getattr(begin, name)
    ]
    if labels and not getattr(parsed.scoring, "distill", False):
        option = labels[0].replace("_", "-")
        raise ValueError(f"--{option} applies to distilled scorers: give --clip.distill too")
    return parsed, stated


def with_config(argv: Sequence[str]) -> list[str]:
    """``argv`` with the options that ``--config FILE`` or ``--like RUN`` stand for before those
    that are typed, so that the latter win.

    Settings of the learner, the reward and the goal are left out where another learner, reward or
    goal is typed.

    Raises:
        ValueError: both are given, or ``--resume`` too; the file is no YAML mapping, or has a key
            that is no option.
    """
    rest, files = pop_option(argv, "--config")
    rest, runs = pop_option(rest, "--like")
    if not files and not runs:
        return rest
    if len(files) + len(runs) > 1 or option_in(rest, "--resume"):
        raise ValueError("--config, --like and --resume are exclusive: give one of them, once")
    where = Path((files or runs)[0])
    settings = _yaml(where) if files else jsonable(_stored(where))
    if runs:  # which run this becomes is not taken from the other
        settings = {k: v for k, v in settings.items() if k not in ("name", "runs")}
    learner, reward = (option_in(rest, f"--{name}") for name in ("learner", "reward"))
    if "scoring" in settings:
        settings[str(settings.get("reward", "clip")).partition(":")[0]] = settings.pop("scoring")
    if reward and reward != settings.get("reward"):
        settings.pop(str(settings.pop("reward", "")).partition(":")[0], None)
    if learner and learner != settings.get("learner"):
        settings.pop("tuning", None)
    given = [f"--{k}={settings[k]}" for k in ("learner", "reward") if settings.get(k)]
    default = preset(TrainCommand.task, learner or settings.get("learner"))
    typed, _ = _parse_known([*given, *rest], replace(default, task=""))
    if typed.task or typed.goal or typed.formula:
        settings.pop("goal", None)
        settings.pop("formula", None)
    task = str(settings.pop("task", TrainCommand.task))
    words = current_options([*_words("", settings)])
    _, unknown = _parse_known(words, default)
    if unknown:
        name = unknown[0].partition("=")[0].removeprefix("--")
        raise ValueError(f"{where}: unknown key {name!r}; keys are the options of train --help")
    return [*([] if typed.task else [task]), *words, *rest]


def _yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a mapping of options, as env_steps: 96000")
    return found


def _words(prefix: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Settings as the options that a person would type; those that are None are left out."""
    for name, value in settings.items():
        option = prefix + str(name).replace("_", "-")
        if isinstance(value, Mapping):
            yield from _words(f"{option}.", value)
        elif isinstance(value, bool):
            head, dot, last = option.rpartition(".")
            yield f"--{option}" if value else f"--{head}{dot}no-{last}"
        elif isinstance(value, list):
            yield f"--{option}"
            yield from map(str, value)
        elif value is not None:
            yield f"--{option}={value}"


def _task_of_sentence(parsed: TrainCommand) -> str:
    """The task of a sentence that stands where a task is expected; "" where none does."""
    sentence = parsed.task
    if not re.search("[A-Za-z]", sentence):  # the value of an option that there is not
        return ""
    if sentence in sims.TASKS or sentence.startswith(PREFIX) or parsed.goal or parsed.formula:
        return ""
    own = bool(parsed.things or parsed.scene)
    found = task_for(sentence, own=own, typed='train {task} --goal "{sentence}"')
    if not found and " " in sentence:
        raise ValueError(
            f"{sentence!r} is neither a task (robo-rl list tasks) nor a goal of a task: "
            f"train TASK --goal {sentence!r} shows the task's reason, and --things "
            '"yellow ball, two red cubes" puts your own things on a table'
        )
    return found


def _check_fitting(args: Sequence[str], learner: str) -> None:
    """ValueError where an option of other learners is given, which says whose it is."""
    for option in ("base", "demos", "interventions"):
        whose = [name for name, kind in LEARNERS.items() if hasattr(kind.config, option)]
        if option_in(args, f"--{option}") and learner in LEARNERS and learner not in whose:
            raise ValueError(
                f"--{option} is an option of --learner {', '.join(whose)}, not of {learner}"
            )


def option_in(args: Sequence[str], option: str) -> str:
    """The value that the arguments give ``option``, which decides what other options there are."""
    value = ""
    for i, arg in enumerate(args):
        if arg.startswith(f"{option}="):
            value = arg.partition("=")[2]
        elif arg == option and i + 1 < len(args):
            value = args[i + 1]
    return value


def _parse(args: list[str], default: SettledConfig) -> TrainCommand:
    """``args`` as options."""
    kind, begin = _command_of(args, default)
    return tyro.cli(kind, args=args, prog=PROGRAM, default=begin)


def _parse_known(args: list[str], default: SettledConfig) -> tuple[TrainCommand, list[str]]:
    """``args`` as options, and those that are none here."""
    kind, begin = _command_of(args, default)
    how = {"args": args, "prog": PROGRAM, "default": begin}
    parsed, unknown = tyro.cli(kind, **how, return_unknown_args=True)
    if unknown and parsed.task == "[]":  # tyro's text of no task beside unknown options
        parsed = replace(parsed, task=begin.task)
    return parsed, unknown


def _command_of(
    args: Sequence[str], default: SettledConfig
) -> tuple[type[TrainCommand], TrainCommand]:
    """The command with the settings of the reward of ``args``, and its defaults."""
    values = vars(default)
    own = {f.name: values[f.name] for f in fields(TrainCommand) if f.name in values}
    further = FurtherOptions(**{f.name: values[f.name] for f in fields(FurtherOptions)})
    reward = default.reward
    if default.scoring is None:
        reward = option_in(args, "--reward") or reward
        own["scoring"] = reward_type(reward).settings()
    kind = _command(reward, type(own["scoring"]))
    return kind, kind(**own, further=further)


def _command(reward: str, settings: type) -> type[TrainCommand]:
    """The command with a reward's settings as options under its name: ``--clip.formula``."""
    slot = Annotated[settings, tyro.conf.arg(name=reward.partition(":")[0])]
    kind = make_dataclass(
        TrainCommand.__name__, [("scoring", slot)], bases=(TrainCommand,), frozen=True, kw_only=True
    )
    # Where the comments that are its options' help are read.
    kind.__module__, kind.__doc__ = __name__, TrainCommand.__doc__
    return kind


def _stored(run: Path) -> SettledConfig:
    config = RunDir.open(run).config
    if config.get("learner") == "clone":
        raise ValueError(
            f"{run} is a behaviour-cloning run, which cannot be resumed: fine-tune it with "
            f"--learner residual-sac --base {run}"
        )
    if config.get("learner") == "on-arm":
        raise ValueError(
            f"{run} was trained on an arm; resume with: robo-rl learn-on-arm --resume {run}"
        )
    return from_json(SettledConfig, config)
