"""Why candidates fail: before they are trained, and counted afterwards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from reward_models.base import TaskCard
from reward_models.programs import Refused, errors, load
from robo_rl.reward_analysis.screening import screen_program
from robo_rl.runtime.sandbox import Job, preflight
from sims.core.task import Task


def refusals(texts: Sequence[str], card: TaskCard, judged: Task[Any] | None = None) -> list[str]:
    """Returns for each program why it is refused; empty: it is accepted. With a task, the screens
    on its archive of known policies are run too."""
    found = []
    for text in texts:
        try:
            load(text, card)
            found.append("")
        except Refused as refused:
            found.append(str(refused))
    ran = [i for i, why in enumerate(found) if not why]
    for i, diagnostics in zip(ran, preflight([Job(texts[i]) for i in ran], card), strict=True):
        wrong = errors(diagnostics)
        if not wrong and judged is not None:
            wrong = errors(screen_program(load(texts[i], card), judged).diagnostics)
        found[i] = "; ".join(map(str, wrong))
    return found


def failure_summary(
    candidates: Iterable[str], answers: dict[tuple[str, int], dict[str, Any]]
) -> str:
    """Returns one line: ``20 of 24 candidates failed: 18 refused (unknown signal ...), 2 timed out
    (...)``."""
    names = list(candidates)
    failed: dict[str, dict[str, Any]] = {}
    for (name, _), answer in sorted(answers.items()):
        if answer["kind"] != "trained":
            failed[name] = answer
    if not failed:
        return f"0 of {len(names)} candidates failed"
    parts = []
    for kind, count in Counter(a["kind"] for a in failed.values()).most_common():
        reasons = Counter(
            re.sub(r"^line \d+: ", "", a["message"]) for a in failed.values() if a["kind"] == kind
        ).most_common()
        first, times = reasons[0]
        more = f", {count - times} for other reasons" if times < count else ""
        parts.append(f"{count} {kind.replace('_', ' ')} ({first}{more})")
    return f"{len(failed)} of {len(names)} candidates failed: {', '.join(parts)}"
