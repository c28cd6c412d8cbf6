"""Writers that ask a language model: Text2Reward, Eureka and CARD as short methods of one protocol.

All see the same: the card in words, the language and its primitives, the goal's sentence. None sees
success, dense rewards or source code of a task. An answer is a program only after the checks; what
they find goes back to the model as it is, up to ``repairs`` times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reward_models.base import TaskCard
from reward_models.programs.diagnostics import Diagnostic, Refused, errors
from reward_models.programs.lower import FUNCTIONS
from reward_models.programs.ops import ALIASES
from reward_models.programs.primitives import PRIMITIVES
from reward_models.programs.runtime import load
from reward_models.remote.cassette import Message, Transport
from reward_models.writers.base import Draft, Evidence, fingerprint

_PROMPTS = Path(__file__).parents[1] / "prompts"
_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.S)
MAX_TOKENS = 1500


def system_prompt() -> str:
    """Returns the description of the reward language, generated from its tables."""
    plain = sorted(FUNCTIONS - ALIASES.keys() - PRIMITIVES.keys())
    primitives = [f"- {p.signature()}: {p.says.format(*p.parameters)}" for p in PRIMITIVES.values()]
    text = (_PROMPTS / "language.txt").read_text(encoding="utf-8")
    # Not str.format: the text shows a dictionary.
    return text.replace("{functions}", ", ".join(plain)).replace(
        "{primitives}", "\n".join(primitives)
    )


def task_prompt(card: TaskCard, goal: str) -> str:
    """Returns the card in words, and the sentence."""
    signals = [
        f"- {s.name}, {' x '.join(map(str, s.shape)) or 'one'}, {s.unit}, "
        f"{s.range[0]:g} to {s.range[1]:g}, {s.doc}"
        for s in card.signals
    ]
    if card.act_dim:
        signals.append(f"- action, {card.act_dim}, 1, -1 to 1, what the policy asked for")
    entities = ", ".join(f"{e.name} ({e.kind}, at {e.pose_signal})" for e in card.entities)
    text = (_PROMPTS / "task.txt").read_text(encoding="utf-8")
    return text.format(
        task=card.task,
        control_dt=card.control_dt,
        episode_s=card.episode_s,
        signals="\n".join(signals),
        entities=entities or "none",
        goal=goal,
    )


def program_in(answer: str) -> str:
    """Returns the program of an answer: its last fenced block, or all from the first ``def`` on."""
    blocks = _BLOCK.findall(answer)
    if blocks:
        return blocks[-1].strip() + "\n"
    at = answer.find("def reward")
    return (answer[at:] if at >= 0 else answer).replace("```", "").strip() + "\n"


def findings(found: Sequence[Diagnostic]) -> str:
    """Returns diagnostics as lines for a model."""
    return "\n".join(f"- {d}" for d in found)


@dataclass
class LLMWriter:
    """Asks a model for programs. ``method`` says what a proposal is made of."""

    transport: Transport
    method: Callable[[TaskCard, str, int, Sequence[Evidence]], str]
    name: str = "llm"
    repairs: int = 3
    max_tokens: int = MAX_TOKENS
    check: Callable[[str, TaskCard], Sequence[Diagnostic]] | None = None  # beside the language's

    def propose(
        self, card: TaskCard, goal: str, count: int, evidence: Sequence[Evidence] = ()
    ) -> list[Draft]:
        """Returns ``count`` drafts, repaired as far as the model could; some may still be
        refused."""
        drafts = []
        for index in range(count):
            ask = task_prompt(card, goal) + "\n" + self.method(card, goal, index, evidence)
            parents = tuple(fingerprint(e.draft.text) for e in evidence[:1])
            draft = self._ask(ask, "", parents)
            for _ in range(self.repairs):
                found = self.findings(draft.text, card)
                if not errors(found):
                    break
                better = self.repair(card, goal, draft, found)
                draft = better or draft
            drafts.append(draft)
        return drafts

    def repair(
        self, card: TaskCard, goal: str, draft: Draft, found: Sequence[Diagnostic]
    ) -> Draft | None:
        """Returns another draft after findings."""
        ask = (
            f"{task_prompt(card, goal)}\nThis program was refused:\n```python\n{draft.text}```\n"
            f"Findings:\n{findings(found)}\nWrite it again without them."
        )
        return self._ask(ask, "repaired", draft.parents)

    def _ask(self, ask: str, notes: str, parents: tuple[str, ...]) -> Draft:
        messages: list[Message] = [
            {"role": "system", "content": system_prompt()},
            {"role": "user", "content": ask},
        ]
        reply = self.transport.complete(messages, self.max_tokens)
        notes = notes if reply.finished else f"{notes} cut short at {self.max_tokens} tokens"
        return Draft(program_in(reply.text), self.name, notes.strip(), parents)

    def findings(self, text: str, card: TaskCard) -> Sequence[Diagnostic]:
        """Returns what is wrong with a program: the language's checks, or else the writer's own."""
        try:
            load(text, card)
        except Refused as refused:
            return refused.diagnostics
        return self.check(text, card) if self.check is not None else ()
