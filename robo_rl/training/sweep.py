"""Sweeps: the same training with several settings and seeds, and what they come to.

Every run is a run of `robo-rl train` in the sweep's folder. One that is finished is not made again
and one that was begun goes on, so that the folder is all that a sweep keeps. The seeds of a setting
are summed up as Agarwal et al. do (arXiv:2108.13264): their interquartile mean, with an interval
from a bootstrap over the seeds.
"""

from __future__ import annotations

import csv
import html
import io
import math
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from robo_rl.config.resolve import ResolvedRun, resolve
from robo_rl.config.train_config import SettledConfig, TrainConfig, from_json, resumed_config
from robo_rl.evaluation.baselines import NAMES
from robo_rl.evaluation.evaluate import Evaluation
from robo_rl.runs.errors import is_user_error
from robo_rl.runs.html_page import head, image, section
from robo_rl.runs.run_dir import RunDir, atomic_write, check_writable
from robo_rl.runtime.workers import run_in_workers

Array = np.ndarray

FEWEST_CUT = 4  # seeds; of fewer a quarter is less than one, and none is left out
PAGE, RUNS, CURVES = "sweep.html", "runs.csv", "curves.csv"
DRAWS = 5_000  # of the bootstrap


@dataclass(frozen=True)
class SweepResult:
    """The result of one run of a sweep: ``worth`` is success in [0, 1], or the mean return of an
    external env."""

    setting: str
    seed: int
    run: str  # its folder's name
    unit: str  # "success" or "return"
    worth: float  # of the final policy; nan: no success judge
    floors: Mapping[str, float]  # the same of each baseline, by name
    env_steps: int
    train_s: float
    processor_min: float
    curve: tuple[tuple[float, float], ...]  # (env steps, worth in a periodic evaluation)


def sweep(
    settings: Mapping[str, TrainConfig],
    folder: Path | str,
    seeds: Sequence[int] = (0, 1, 2),
    *,
    jobs: int = 1,
    console: Console | None = None,
) -> list[SweepResult]:
    """Trains each of the settings, by name, with each of the seeds; returns what they came to.

    ``jobs`` runs are made side by side. The folder then has a page, and tables of runs and curves.
    ValueError, before anything begins, where the folder has a run of other settings; at the end,
    where runs failed: the others are made all the same.
    """
    folder = Path(folder)
    check_writable(folder)
    configs = {
        (name, seed): replace(config, seed=seed, runs=folder, name=f"{_slug(name)}-seed-{seed}")
        for seed in seeds
        for name, config in settings.items()
    }
    if len({config.name for config in configs.values()}) < len(configs):
        raise ValueError(f"these settings would share a folder: {', '.join(settings)}")
    missing = {key: config for key, config in configs.items() if _is_unfinished(config)}
    say = console.print if console else lambda *_: None
    say(f"{len(configs) - len(missing)} of {len(configs)} runs are in {escape(str(folder))}")
    folder.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    try:
        settled = _with_goals_read(settings, missing)
        for number, (key, error) in enumerate(_trained_runs(settled, jobs, console), 1):
            if error:
                failed.append(f"{configs[key].name}: {error}")
            say(
                f"{number}/{len(missing)} {'failed' if error else 'done'}: "
                f"{escape(_run_label(*key))}"
            )
            write_tables(finished_results(configs), folder)  # what there is by now
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped by Ctrl-C; run the same command to resume") from None
    found = finished_results(configs)
    write_tables(found, folder)
    if failed:
        raise ValueError(
            f"{len(failed)} of {len(configs)} runs failed, {folder / PAGE} has the others; the "
            f"first failure: {failed[0]}"
        )
    return found


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=+]+", "-", name).strip("-")[:120] or "run"


def _run_label(setting: str, seed: int) -> str:
    return ", ".join(filter(None, (setting, f"seed {seed}")))


def _is_unfinished(config: TrainConfig) -> bool:
    """Whether anything is left to do; ValueError where the run there is another one."""
    path = config.runs / config.name
    if not (path / "config.json").exists():
        return True
    stored = from_json(SettledConfig, RunDir.open(path).config)
    return resumed_config(path, stored, vars(config)) != stored or not RunDir(path).finished


def _is_begun(config: TrainConfig) -> bool:
    return (config.runs / config.name / "config.json").exists()


def _with_goals_read(
    settings: Mapping[str, TrainConfig], missing: Mapping[tuple[str, int], TrainConfig]
) -> dict[tuple[str, int], TrainConfig | ResolvedRun]:
    """The runs to make: of those to begin, the goal of their setting is read once for all seeds.

    What cannot be read is left as it is asked for, so that its own runs fail.
    """
    found: dict[tuple[str, int], TrainConfig | ResolvedRun] = dict(missing)
    for name, setting in settings.items():
        new = {key: c for key, c in missing.items() if key[0] == name and not _is_begun(c)}
        with suppress(ValueError):
            resolved = resolve(setting) if new else None
            for key, config in new.items():
                place = {"seed": config.seed, "runs": config.runs, "name": config.name}
                found[key] = resolved.with_config(**place)
    return found


def _trained_runs(
    configs: Mapping[tuple[str, int], TrainConfig | ResolvedRun], jobs: int, console: Console | None
) -> Iterator[tuple[tuple[str, int], str]]:
    """The keys of runs as they end, and why one failed; "" where it did not."""
    if jobs > 1:
        given = {key: (config,) for key, config in configs.items()}

        def begun(key: tuple[str, int]) -> None:
            if console is not None:
                console.print(f"started: {escape(_run_label(*key))}")

        yield from run_in_workers(_train_run, given, jobs, died=str, begun=begun)
        return
    for key, config in configs.items():
        if console is not None:
            console.rule(escape(_run_label(*key)))
        yield key, _train_run(config, console)


def _train_run(asked: TrainConfig | ResolvedRun, console: Console | None = None) -> str:
    from robo_rl.training.train import train

    config = asked.config if isinstance(asked, ResolvedRun) else asked
    path = config.runs / config.name
    trace = path.with_name(f"{path.name}.traceback.txt")
    trace.unlink(missing_ok=True)
    try:
        train(asked, resume=path if _is_begun(config) else None, console=console)
    except Exception as error:  # the others shall be made all the same
        if not is_user_error(error):
            atomic_write(trace, traceback.format_exc().encode())
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def finished_results(configs: Mapping[tuple[str, int], TrainConfig]) -> list[SweepResult]:
    """Returns the results of finished runs."""
    runs = {key: RunDir(config.runs / config.name) for key, config in configs.items()}
    return [_result_of(*key, run) for key, run in runs.items() if run.finished]


def _result_of(setting: str, seed: int, run: RunDir) -> SweepResult:
    result, spent, evaluations = run.result, run.spent(), run.evaluations.read()
    unit, worth, floors = "success", math.nan, {}
    judged = Evaluation.from_dict(result["evaluation"])
    if judged is not None and judged.by_return:
        unit, worth, floors = "return", judged.return_mean, judged.baseline_returns or {}
    elif judged is not None:
        worth, baselines = judged.success, judged.floors.as_dict() if judged.floors else {}
        floors = {NAMES[name]: rate["success"] for name, rate in baselines.items()}
    clocks = [spent.get(name, math.nan) for name in ("wall_s", "processor_s")]
    points = (
        zip(evaluations["env_steps"], evaluations[unit], strict=True) if unit in evaluations else ()
    )
    curve = tuple((float(step), float(value)) for step, value in points)
    return SweepResult(
        setting,
        seed,
        run.path.name,
        unit,
        worth,
        floors,
        result["env_steps"],
        clocks[0],
        clocks[1] / 60,
        curve,
    )


def interquartile(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean of the middle half, low, high): a bootstrap's 95 % interval over seeds; of a single
    seed there is none (nan)."""
    from scipy.stats import bootstrap, trim_mean

    middle = float(trim_mean(values, 0.25))
    if len(values) < 2:
        return middle, math.nan, math.nan
    drawn = bootstrap(
        (np.asarray(values),),
        lambda x, axis: trim_mean(x, 0.25, axis=axis),
        n_resamples=DRAWS,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return middle, float(drawn.low), float(drawn.high)


# ------------------------------------------------------------------------------------ what is kept


def write_tables(found: Sequence[SweepResult], folder: Path) -> None:
    """The page and the tables of what there is."""
    runs = [
        {
            "setting": one.setting,
            "seed": one.seed,
            "run": one.run,
            one.unit: one.worth,
            **one.floors,
            "env_steps": one.env_steps,
            "train_s": one.train_s,
            "processor_min": one.processor_min,
        }
        for one in found
    ]
    rows_seen = [
        {"setting": one.setting, "seed": one.seed, "env_steps": int(step), one.unit: value}
        for one in found
        for step, value in one.curve
    ]
    atomic_write(folder / RUNS, _csv(runs))
    atomic_write(folder / CURVES, _csv(rows_seen))
    atomic_write(folder / PAGE, _page(found, folder.name).encode())


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, [*columns], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def table_of(found: Sequence[SweepResult]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(heads, lines) of the settings, in the order in which they were asked for."""
    settings = _settings(found)
    fewest = min((len(those) for those in settings.values()), default=0)
    of = "middle half" if fewest >= FEWEST_CUT else "mean"
    heads = (
        "setting",
        f"{of} of the seeds (95 %)",
        "each seed",
        "what learned nothing",
        "env steps",
        "training s",
        "processor min",
    )
    return heads, [_line(name, those) for name, those in settings.items()]


def _settings(found: Sequence[SweepResult]) -> dict[str, list[SweepResult]]:
    by: dict[str, list[SweepResult]] = {}
    for one in found:
        by.setdefault(one.setting, []).append(one)
    return by


def _line(name: str, those: Sequence[SweepResult]) -> tuple[str, ...]:
    worths, unit = [one.worth for one in those], those[0].unit
    middle, low, high = interquartile(worths)
    around = (
        "" if math.isnan(low) else f" ({_worth_text(low, unit, '')}-{_worth_text(high, unit, '')})"
    )
    floors = those[0].floors
    least = [
        f"{who} {_worth_text(np.mean([o.floors[who] for o in those]), unit)}" for who in floors
    ]
    text = f"{_worth_text(middle, unit)}{around}, n={len(those)}"
    return (
        name or "as asked",
        "not judged" if math.isnan(middle) else text,
        ", ".join(_worth_text(worth, unit, "") for worth in worths),
        "; ".join(least),
        f"{max(one.env_steps for one in those):,}",
        f"{np.mean([one.train_s for one in those]):.0f}",
        f"{np.mean([one.processor_min for one in those]):.1f}",
    )


def _worth_text(worth: float, unit: str, sign: str = " %") -> str:
    return f"{100 * worth:.1f}{sign}" if unit == "success" else f"{worth:.1f}"


def _page(found: Sequence[SweepResult], name: str) -> str:
    heads, lines = table_of(found)
    rows = [[f"<th style='width:auto'>{html.escape(one)}</th>" for one in heads]]
    rows += [[f"<td>{html.escape(cell)}</td>" for cell in line] for line in lines]
    cells = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    links = "".join(
        f"<li><a href='{html.escape(one.run)}/report.html'>{html.escape(one.run)}</a></li>"
        for those in _settings(found).values()
        for one in those
    )
    text = (
        "<p>Of the final deterministic policies. The middle half of the seeds' figures, which of "
        f"fewer than {FEWEST_CUT} is their mean, and its interval, drawn from the seeds again, are "
        "as in arXiv:2108.13264; of few seeds the interval is rough. What learned nothing was "
        "judged in the same episodes.</p>"
    )
    return "".join(
        [
            head(name),
            section("Settings", f"<table>{cells}</table>{text}"),
            section("While they learned", _curves(found)),
            section("Runs", f"<ul>{links}</ul>"),
            "</main></html>",
        ]
    )


def _curves(found: Sequence[SweepResult]) -> str:
    """Looks at the policies, the middle half over the seeds; the band is its interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.4, 3.6), layout="constrained")
    axis = figure.subplots()
    for name, those in _settings(found).items():
        curves = [np.array(one.curve).T for one in those if one.curve]
        if not curves:
            continue
        # Runs that ended early, having learned enough, are told as long as all go on.
        steps = np.unique(np.concatenate([x for x, _ in curves]))
        first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
        steps = steps[(first <= steps) & (steps <= last)]
        worths = np.array([np.interp(steps, x, y) for x, y in curves])
        factor = 100.0 if those[0].unit == "success" else 1.0
        middle, low, high = factor * np.array([interquartile(w) for w in worths.T]).T
        (line,) = axis.plot(steps / 1000, middle, lw=1.8, label=name or "as asked")
        axis.fill_between(steps / 1000, low, high, color=line.get_color(), alpha=0.18, lw=0)
    if not axis.lines:
        return ""
    axis.set_xlim(left=0)
    if found[0].unit == "success":
        axis.set_ylim(-3, 103)
    axis.set_xlabel("thousand steps", fontsize=8)
    axis.set_ylabel("success, %" if found[0].unit == "success" else "return", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8)
    return image(figure, "curves of every setting") + (
        "<p>Deterministic policies on validation episodes, the same every time; quoted figures are "
        "of test episodes.</p>"
    )
