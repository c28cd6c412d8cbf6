"""Ask and tell: which programs to try next, given how the earlier ones did.

Structure outside, numbers inside. A round draws a few structures (which terms there are, of what
shape, in which stages) and for each of them a few settings of its numbers (weights, slopes): one
fitted to the archive's preferences where there is an archive, the others mutated. The numbers start
from the best program's after Eureka's reflection on its components. What a strategy
asks follows from its seed, the round and what it was told, so a search that was interrupted asks
the same again. It is templates and random mutation, no understanding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reward_models.analysis.screens import ArchiveEpisodes
from reward_models.base import TaskCard
from reward_models.goals.formula import Formula
from reward_models.programs import Program, load
from reward_models.programs.diagnostics import Diagnostic
from reward_models.writers.template_writer import (
    TemplateNumbers,
    TemplateStructure,
    adjusted_numbers,
    write_program,
)
from robo_rl.search.preference_fit import fit_numbers

INSIDE = 3  # settings of the numbers for each structure of a round
TRIES = 50  # to draw a program that was not asked before


@dataclass(frozen=True)
class Candidate:
    """A program to try, and where it comes from."""

    name: str  # c00, c01, ... in the order asked
    round: int
    text: str
    structure: TemplateStructure | None = None  # of a template
    numbers: TemplateNumbers | None = None
    parents: tuple[str, ...] = ()  # names
    notes: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Candidate:
        """The candidate that ``jsonable`` wrote."""
        made = {"structure": TemplateStructure, "numbers": TemplateNumbers}
        parts = {name: kind(**data[name]) for name, kind in made.items() if data[name] is not None}
        return cls(**{**data, **parts, "parents": tuple(data["parents"])})


@dataclass(frozen=True)
class CandidateResult:
    """The result of a candidate; a higher ``rank`` is better."""

    candidate: Candidate
    rank: tuple[float, ...]  # empty: it failed
    curves: Mapping[str, tuple[float, ...]]  # {component: a few means along training}
    diagnostics: tuple[Diagnostic, ...] = ()


class History:
    """The candidates that a search has proposed and their results; shared by all writers."""

    def __init__(self) -> None:
        self.results: dict[str, CandidateResult] = {}
        self._asked: list[Candidate] = []

    def remember(self, candidates: list[Candidate]) -> None:
        """Takes over what was asked before an interruption."""
        self._asked += candidates

    def tell(self, told: CandidateResult) -> None:
        """Adds or replaces what is known of a candidate."""
        self.results[told.candidate.name] = told

    def best(self) -> list[CandidateResult]:
        """Returns the candidates that were trained, best first."""
        known = [t for t in self.results.values() if t.rank]
        return sorted(known, key=lambda t: t.rank, reverse=True)


class TemplateStrategy(History):
    """The templates' terms, stages and numbers, mutated."""

    name = "offline"

    def __init__(
        self,
        formula: Formula,
        card: TaskCard,
        sentence: str,
        count: int,
        seed: int = 0,
        trials: ArchiveEpisodes | None = None,
    ):
        if count < 1:
            raise ValueError(f"a round needs at least 1 candidate, got {count}")
        super().__init__()
        self.formula, self.card, self.sentence = formula, card, sentence
        self.count, self.seed, self.trials = count, seed, trials

    def standard(self) -> str:
        """The program that the sentence has without any search."""
        return self._text(TemplateStructure(), TemplateNumbers())

    def ask(self, round_: int) -> list[Candidate]:
        """The candidates of a round; fewer than ``count`` only where nothing new can be drawn."""
        rng = np.random.default_rng([self.seed, round_])
        elite = self.best()[:2]
        texts = {c.text for c in self._asked}
        proposals: list[Candidate] = []
        outside = max(1, -(-self.count // INSIDE))
        for index in range(self.count):
            parent = elite[(index % outside) % len(elite)] if elite else None
            for attempt in range(TRIES):
                structure, numbers, notes = self._draw_candidates(
                    rng, index, outside, parent, proposals, attempt
                )
                text = self._text(structure, numbers)
                if text not in texts:
                    break
            else:
                continue
            texts.add(text)
            name = f"c{len(self._asked) + len(proposals):02d}"
            parents = (parent.candidate.name,) if parent else ()
            proposals.append(Candidate(name, round_, text, structure, numbers, parents, notes))
        self._asked += proposals
        return proposals

    def _draw_candidates(
        self,
        rng: np.random.Generator,
        index: int,
        outside: int,
        parent: CandidateResult | None,
        asked: list[Candidate],
        attempt: int,
    ) -> tuple[TemplateStructure, TemplateNumbers, str]:
        """One draw: candidates 0..outside-1 bring structures, the others numbers for those."""
        structure = (parent.candidate.structure if parent else None) or TemplateStructure()
        numbers = (parent.candidate.numbers if parent else None) or TemplateNumbers()
        notes = []
        if (
            parent is not None
            and (better := adjusted_numbers(numbers, dict(parent.curves))) != numbers
        ):
            changed = [k for k, v in asdict(better).items() if v != asdict(numbers)[k]]
            numbers, notes = better, [f"reflection on {', '.join(changed)}"]
        if index >= outside and asked:
            structure = asked[(index - outside) % min(outside, len(asked))].structure or structure
            if index < 2 * outside and attempt == 0 and self.trials is not None:
                found = fit_numbers(
                    lambda n: self._program(structure, n), numbers, self.trials, rng
                )
                if found is not None and found.numbers != numbers:
                    note = f"numbers fitted, loss {found.before:.3f} -> {found.after:.3f}"
                    return structure, found.numbers, "; ".join([*notes, note])
            return structure, numbers.mutated(rng), "; ".join([*notes, "numbers mutated"])
        if index == 0 and attempt == 0:  # the best structure so far; at first, the standard program
            return structure, numbers, "; ".join(notes) or "standard"
        mutated = structure.mutated(rng)
        changes = [
            f"{k} {asdict(structure)[k]} -> {v}"
            for k, v in asdict(mutated).items()
            if v != asdict(structure)[k]
        ]
        return mutated, numbers, "; ".join([*notes, *changes])

    def _program(self, structure: TemplateStructure, numbers: TemplateNumbers) -> Program:
        return load(self._text(structure, numbers), self.card)

    def _text(self, structure: TemplateStructure, numbers: TemplateNumbers) -> str:
        return f"# {self.sentence}\n{write_program(self.formula, self.card, numbers, structure)}"
