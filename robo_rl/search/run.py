"""search(): a sentence in, the best program found out, judged where nothing was chosen.

```
<runs>/<name>/journal.jsonl   what happened, an event a line; a killed search goes on from it
              trainings/      one job, answer and log per training
              winner.py       the program chosen; train with --reward code:winner.py
              search.json     everything: settings, every candidate with its lineage, the verdict
              report.md       the same for people
```

Three sets of seeds share nothing: programs are trained on the first, chosen on the second, and the
winner, trained again from scratch on a seed of its own, is quoted on the third, beside the program
that the sentence has without a search, the hand-written dense reward (the oracle) and a random
program of the same shape (the null), at equal steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from reward_models.base import TaskCard
from reward_models.goals.formula import Formula
from reward_models.programs import Diagnostic, load
from reward_models.remote.transport import Budget
from reward_models.writers.template_writer import NoTemplate, write_program
from robo_rl.config.train_config import from_json
from robo_rl.evaluation.baselines import measure_baselines
from robo_rl.evaluation.evaluate import TEST_SEED, VALIDATION_SEED
from robo_rl.goals.reading import NotRead, ReadGoal, read_goal, task_of_config
from robo_rl.reward_analysis.screening import archive_episodes, screen_program
from robo_rl.runs.run_dir import (
    atomic_write,
    check_writable,
    jsonable,
    run_folder,
    slug,
    versions,
    write_json,
)
from robo_rl.search.config import TOTALS, SearchConfig
from robo_rl.search.executor import TrainingLimits, TrainingPool
from robo_rl.search.failures import failure_summary, refusals
from robo_rl.search.journal import JournalError, SearchJournal
from robo_rl.search.llm_writer import LLMStrategy, make_writer
from robo_rl.search.progress_bar import SearchProgressBar
from robo_rl.search.random_program import random_program
from robo_rl.search.report import WHAT, markdown
from robo_rl.search.strategy import Candidate, CandidateResult, TemplateStrategy
from robo_rl.search.verdict import gains, verdict

JOURNAL = "journal.jsonl"
SEARCH_SEED = 100_000_000  # candidates are trained on it
FINAL_SEED = 200_000_000  # the winner and what it is compared with


class SearchFailed(ValueError):
    """No candidate could be trained; the message says why."""


def search(
    config: SearchConfig, *, resume: Path | None = None, console: Console | None = None
) -> Path:
    """Searches for a reward program and returns the search's folder.

    Args:
        config: The settings of a new search.
        resume: The folder of a search to resume, with the settings it began with; None: a new one.
        console: Where progress is printed.

    Raises:
        JournalError: ``resume`` holds no search, or one that was stopped before its first event.
        ValueError: the folder of the new search already holds one, or a setting or the goal does
            not fit a search.
    """
    if resume is not None:
        if not (resume / JOURNAL).exists():
            raise JournalError(f"no search in {resume}: {JOURNAL} is missing")
        path, journal = resume, SearchJournal(resume / JOURNAL)
    else:
        config.check()
        goal = _judged_goal(config)
        path = run_folder(config.runs, config.name or _name(config, goal))
        if (path / JOURNAL).exists():
            raise ValueError(
                f"{path} already holds a search; continue it with --resume {path}, or "
                "give the new one another --name or --seed"
            )
        check_writable(path)
        path.mkdir(parents=True, exist_ok=True)
        journal = SearchJournal(path / JOURNAL)
    try:
        begun = journal.of("begun")
        if resume is not None:
            if not begun:
                raise JournalError(f"{path} was stopped before its first event; start a new search")
            config = from_json(SearchConfig, begun[0]["config"])
            goal = _judged_goal(config)
        else:
            journal.append(
                "begun",
                config=config,
                goal=goal.text,
                formula=str(goal.formula),
                truth=goal.key,
                versions=versions(),
            )
        _Search(config, goal, path, journal, console).run()
    finally:
        journal.close()
    return path


def _judged_goal(config: SearchConfig) -> ReadGoal:
    """The goal as read; ValueError where it is not read or has no ground truth to choose by."""
    task = task_of_config(vars(config))
    goal = read_goal(task, config.goal or next(iter(task.goals().values())).sentence)
    if goal.formula is None:
        raise NotRead(goal)
    if not goal.key:
        raise ValueError(f"a search chooses by success: {goal.truth}")
    if config.writer == "offline":
        write_program(goal.formula, goal.card)  # no template: an error now, not in an hour
    return goal


def _name(config: SearchConfig, goal: ReadGoal) -> str:
    return f"search-{config.task}-{slug(goal.key)}-{config.writer}-{config.seed}"


class _Search:
    """A search under way: what the journal does not say yet is done, in order."""

    def __init__(
        self,
        config: SearchConfig,
        goal: ReadGoal,
        path: Path,
        journal: SearchJournal,
        console: Console | None,
    ):
        assert goal.formula is not None
        self.config, self.goal, self.path, self.journal = config, goal, path, journal
        self.console = console
        self.judged = task_of_config(vars(config), goal=goal.key)
        self.budget: Budget | None = None
        self.strategy: TemplateStrategy | LLMStrategy = self._strategy(goal.formula)
        limits = TrainingLimits(
            seconds=60 * config.minutes,
            stall_s=config.stall_s,
            memory_bytes=int(config.memory_gb * (1 << 30)),
        )
        self.pool = TrainingPool(path / "trainings", config.workers, limits)
        self.candidates: dict[str, Candidate] = {}
        self.answers = {(e["name"], e["rung"]): e for e in journal.of("answered")}
        self.finals = {(e["what"], e["index"]): e for e in journal.of("judged")}
        self.say = console.print if console else lambda *_: None

    def _strategy(self, formula: Formula) -> TemplateStrategy | LLMStrategy:
        config, goal = self.config, self.goal
        if config.writer == "offline":
            archive = archive_episodes(self.judged)[0] if self.judged.solved else None
            return TemplateStrategy(
                formula, goal.card, goal.text, config.candidates, config.seed, archive
            )
        budget = config.model.budget()
        for spent in self.journal.of("spent")[-1:]:  # what a search that goes on has spent
            budget.used_tokens, budget.used_money = spent["tokens"], spent["money"]
            budget.used_calls = spent["calls"]
        writer, self.budget = make_writer(config.writer, config.model, self._evaluator(), budget)
        return LLMStrategy(writer, goal.card, goal.text, config.candidates)

    def _evaluator(self) -> Callable[[str, TaskCard], list[Diagnostic]] | None:
        """Returns the feedback that the CARD writer gets before any training."""
        if self.config.writer != "card" or not self.config.screens:
            return None
        return lambda text, card: list(screen_program(load(text, card), self.judged).diagnostics)

    def run(self) -> None:
        with SearchProgressBar(self.console, self._planned()) as bar:
            self.bar = bar
            for number in range(self.config.rounds):
                self._round(number)
            winner = self._winner()
            atomic_write(self.path / "winner.py", winner.text.encode())
            self._judge(winner)
        summary = self._summary(winner)
        write_json(self.path / "search.json", summary)
        atomic_write(self.path / "report.md", markdown(summary).encode())
        if not self.journal.of("finished"):
            self.journal.append("finished", winner=winner.name)

    def _planned(self) -> int:
        """Env steps, if nothing fails."""
        config, total = self.config, self.config.search_steps
        finals = config.judged_steps * config.final_seeds
        total += 4 * finals + len(TOTALS[config.equal_total]) * (
            finals + total * config.final_seeds
        )
        return total

    # Rounds.
    def _round(self, number: int) -> None:
        proposed = [e for e in self.journal.of("asked") if e["round"] == number]
        if proposed:
            candidates = [Candidate.from_json(c) for c in proposed[0]["candidates"]]
            self.strategy.remember(candidates)
        else:
            try:
                candidates = self.strategy.ask(number)
            finally:  # also what was spent in vain is spent
                if (b := self.budget) is not None:
                    self.journal.append(
                        "spent", tokens=b.used_tokens, money=b.used_money, calls=b.used_calls
                    )
            self.journal.append("asked", round=number, candidates=candidates)
        self.candidates |= {c.name: c for c in candidates}
        alive = self._screened(candidates)
        for rung, steps in enumerate(self.config.ladder):
            self.bar.stage(f"round {number + 1}/{self.config.rounds}, {len(alive)} x {steps:,}")
            self._train(alive, rung, steps)
            for candidate in alive:
                self.strategy.tell(self._ranked(candidate, rung))
            standing = {t.candidate.name: t for t in self.strategy.best()}
            better = [standing[c.name] for c in alive if c.name in standing]
            better.sort(key=lambda result: result.rank, reverse=True)
            alive = [result.candidate for result in better[: -(-len(alive) // 2)]]
        self.say(failure_summary(self.candidates, self.answers))

    def _screened(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Returns the programs that the language and the probes accept; refusals of the others are
        recorded."""
        new = [c for c in candidates if (c.name, 0) not in self.answers]
        judged = self.judged if self.config.screens else None
        for candidate, why in zip(
            new, refusals([c.text for c in new], self.goal.card, judged), strict=True
        ):
            if why:
                self._answered(candidate, 0, {"kind": "refused", "message": why, "env_steps": 0})
        refused = {n for (n, _), a in self.answers.items() if a["kind"] == "refused"}
        return [c for c in candidates if c.name not in refused]

    def _train(self, candidates: Sequence[Candidate], rung: int, steps: int) -> None:
        new = [c for c in candidates if (c.name, rung) not in self.answers]
        config = self.config
        jobs = [
            self._job(
                f"{c.name}-{rung}",
                c.text,
                steps,
                SEARCH_SEED + config.seed,
                VALIDATION_SEED + config.seed,
                config.validation_episodes,
            )
            for c in new
        ]
        for job in jobs:
            job |= {"link": True, **self._replay(job["name"])}
        for index, answer in self.pool.run(jobs, self.bar.under_way):
            self._answered(new[index], rung, answer)
            self.bar.done(steps)

    def _replay(self, name: str) -> dict[str, Any]:
        """Returns where a candidate's replay buffer is read and written, for learners with one."""
        if not self.config.relabel:
            return {}
        folder = self.path / "trainings"
        found: dict[str, Any] = {"keep_replay": str(folder / f"{name}.replay.npz")}
        for result in self.strategy.best():
            replay_file = folder / f"{result.candidate.name}-{int(result.rank[0])}.replay.npz"
            if replay_file.exists():
                return found | {"replay": str(replay_file)}
        return found

    def _job(
        self, name: str, text: str | None, steps: int, seed: int, judge_seed: int, episodes: int
    ) -> dict[str, Any]:
        return {
            "name": name,
            "text": text,
            "task": self.config.task,
            "robot": self.config.robot,
            "things": self.config.things,
            "scene": self.config.scene,
            "goal": self.goal.key,
            "learner": self.config.learner,
            "tuning": jsonable(self.config.tuning),
            "env_steps": steps,
            "episode_s": self.config.episode_s,
            "seed": seed,
            "judge_seed": judge_seed,
            "episodes": episodes,
        }

    def _answered(self, candidate: Candidate, rung: int, answer: dict[str, Any]) -> None:
        entry = self.journal.append("answered", name=candidate.name, rung=rung, **answer)
        self.answers[candidate.name, rung] = entry

    def _ranked(self, candidate: Candidate, rung: int) -> CandidateResult:
        """Ranks by training length, then success, then final distance. Later answers, which a
        resumed search already has, do not change earlier choices."""
        answer = self.answers[candidate.name, rung]
        if answer["kind"] != "trained":
            return CandidateResult(candidate, (), {})
        found = answer["evaluation"]
        left = found["distance_median"]
        rank = (float(rung), found["success"], -left if math.isfinite(left) else -math.inf)
        curves = {k: tuple(v) for k, v in answer["curves"].items()}
        diagnostics = tuple(Diagnostic(**d) for d in answer.get("diagnostics", ()))
        return CandidateResult(candidate, rank, curves, diagnostics)

    def _winner(self) -> Candidate:
        best = self.strategy.best()
        if not best or best[0].rank[0] < self.config.rungs - 1:
            raise SearchFailed(
                "no candidate completed training: "
                f"{failure_summary(self.candidates, self.answers)}; see {self.path / 'trainings'}"
            )
        return best[0].candidate

    # The verdict.
    def _judge(self, winner: Candidate) -> None:
        config = self.config
        texts = {"winner": winner.text, **self._baseline_programs(), "dense": None}
        texts["null"] = random_program(winner.text, self.goal.card, config.seed)
        steps = dict.fromkeys(texts, config.judged_steps)
        for what in [w for w in TOTALS[config.equal_total] if w in texts]:
            texts[f"{what}_total"] = texts[what]
            steps[f"{what}_total"] = config.judged_steps + self._search_steps()
        wanted = [(w, k) for k in range(config.final_seeds) for w in texts]
        new = [key for key in wanted if key not in self.finals]
        new.sort(key=lambda key: -steps[key[0]])  # the longest first: no worker idles beside it
        jobs = [
            self._job(
                f"final-{what}-{index}",
                texts[what],
                steps[what],
                FINAL_SEED + 1000 * config.seed + index,
                TEST_SEED,
                config.episodes,
            )
            for what, index in new
        ]
        self.bar.stage(f"verdict, {len(new)} trainings")
        for at, answer in self.pool.run(jobs, self.bar.under_way):
            what, index = new[at]
            self.finals[new[at]] = self.journal.append(
                "judged", what=what, index=index, seed=jobs[at]["seed"], **answer
            )
            self.bar.done(steps[what])

    def _baseline_programs(self) -> dict[str, str]:
        """The program that the sentence has without a search, where there is a template for it."""
        assert self.goal.formula is not None
        try:
            return {
                "sentence": (
                    f"# {self.goal.text}\n{write_program(self.goal.formula, self.goal.card)}"
                )
            }
        except NoTemplate:
            return {}

    def _search_steps(self) -> int:
        """Env steps of all candidates, the failed ones too."""
        return sum(int(a["env_steps"]) for a in self.answers.values())

    def _summary(self, winner: Candidate) -> dict[str, Any]:
        config = self.config
        rows = []
        for candidate in self.candidates.values():
            own = {r: a for (name, r), a in sorted(self.answers.items()) if name == candidate.name}
            rows.append(
                {
                    **jsonable(candidate),
                    "trainings": [
                        {
                            "rung": r,
                            **{k: v for k, v in a.items() if k not in ("event", "name", "rung")},
                        }
                        for r, a in own.items()
                    ],
                }
            )
        return {
            "task": config.task,
            "goal": self.goal.text,
            "formula": str(self.goal.formula),
            "truth": self.goal.key,
            "config": jsonable(config),
            "ladder": config.ladder,
            "seeds": {
                "search": [SEARCH_SEED + config.seed],
                "selection": [VALIDATION_SEED + config.seed],
                "final_training": sorted({e["seed"] for e in self.finals.values()}),
                "test": [TEST_SEED],
            },
            "search_env_steps": self._search_steps(),
            "failures": failure_summary(self.candidates, self.answers),
            "candidates": rows,
            "winner": winner.name,
            "verdict": {
                what: verdict(
                    [e for (w, _), e in sorted(self.finals.items()) if w == what], config.episodes
                )
                for what in WHAT
                if any(w == what for w, _ in self.finals)
            },
            "floors": measure_baselines(
                self.judged, episodes=config.episodes, seed=TEST_SEED
            ).as_dict(),
            "gains": gains([e for _, e in sorted(self.finals.items())], config.episodes),
            "spent": (self.journal.of("spent") or [{}])[-1],
            "versions": versions(),
        }
