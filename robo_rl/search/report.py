"""The report of a search for people: the verdict first, then every candidate with its lineage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WHAT = {
    "winner": "winner of the search",
    "sentence": "program of the sentence, unsearched",
    "dense": "hand-written dense reward (oracle)",
    "null": "random program of the winner's shape (null)",
    "sentence_total": "program of the sentence, with the search's steps on top",
    "dense_total": "hand-written dense reward, with the search's steps on top",
}


def percent(row: Mapping[str, Any]) -> str:
    """``97.3 % (95.8-98.3, n=1000)``."""
    low, high = 100 * row["low"], 100 * row["high"]
    return f"{100 * row['success']:.1f} % ({low:.1f}-{high:.1f}, n={row['episodes']})"


NATURE = " (templates and mutation, no understanding)"


def cost_line(summary: Mapping[str, Any]) -> str:
    """Returns one line on what a language model has cost."""
    used = summary.get("spent") or {}
    if not used:
        return ""
    return f" ({used['calls']} calls, {used['tokens']:,} tokens, {used['money']:.4f} in money)"


def gain(found: Mapping[str, float] | None) -> str:
    """``+3.1 (-1.0 to 7.2)`` points of success."""
    if not found:
        return ""
    return f"{100 * found['gain']:+.1f} ({100 * found['low']:.1f} to {100 * found['high']:.1f})"


def baseline_line(summary: Mapping[str, Any]) -> str:
    """``doing nothing 0.0 % (0.0-0.4, n=1000), untrained ...``; empty in searches of before."""
    known = summary.get("floors") or {}
    names = {"still": "doing nothing", "untrained": "untrained"}
    return ", ".join(f"{names[name]} {percent(rate)}" for name, rate in known.items())


def headline(summary: Mapping[str, Any]) -> str:
    """Returns one line: the search's success beside its baselines."""
    verdict = summary["verdict"]
    parts = [f"{name} {100 * row['success']:.1f} %" for name, row in verdict.items()]
    baselines = f"; {baseline_line(summary)}" if baseline_line(summary) else ""
    return f"{summary['winner']} {percent(verdict['winner'])}; {', '.join(parts[1:])}{baselines}"


def markdown(summary: Mapping[str, Any]) -> str:
    """The whole report."""
    config, seeds = summary["config"], summary["seeds"]
    lines = [
        f"# Search: {summary['goal']}",
        "",
        f"Task {summary['task']}, ground truth {summary['truth']}, writer {config['writer']}"
        f"{NATURE if config['writer'] == 'offline' else cost_line(summary)}.",
        "",
        "## Verdict",
        "",
        f"Trained from scratch on seeds {_join_values(seeds['final_training'])}, judged on test "
        f"seed "
        f"{_join_values(seeds['test'])}; programs were trained on "
        f"{_join_values(seeds['search'])} and chosen "
        f"on {_join_values(seeds['selection'])}. A training that failed counts as no success. The "
        "intervals are over episodes; how much trainings differ is seen from their own figures.",
        "",
        "| reward | success (95 % interval) | each training | env steps each | failed "
        "| winner's gain (95 %, paired) |",
        "|---|---|---|---|---|---|",
    ]
    for what, row in summary["verdict"].items():
        each = ", ".join(f"{100 * t['success']:.1f}" for t in row["trainings"])
        steps = ", ".join(sorted({f"{t['env_steps']:,}" for t in row["trainings"]}))
        lines.append(
            f"| {WHAT[what]} | {percent(row)} | {each} | {steps} | {row['failed']} | "
            f"{gain(summary.get('gains', {}).get(what))} |"
        )
    winner = next(c for c in summary["candidates"] if c["name"] == summary["winner"])
    if baseline_line(summary):
        lines += ["", f"In the same episodes: {baseline_line(summary)}."]
    lines += [
        "",
        f"The search itself took {summary['search_env_steps']:,} env steps more, those of failed "
        "candidates included; the table's trainings do not contain them.",
        "",
        f"{summary['failures']}.",
        "",
        "## Candidates",
        "",
        "Success on validation seeds after each rung's steps; it selects, so do not quote it.",
        "",
        f"| name | round | from | change | {' | '.join(f'{s:,}' for s in summary['ladder'])} |",
        f"|---|---|---|---|{'---|' * len(summary['ladder'])}",
    ]
    for candidate in summary["candidates"]:
        cells = {t["rung"]: _cell(t) for t in candidate["trainings"]}
        rungs = " | ".join(cells.get(r, "") for r in range(len(summary["ladder"])))
        name = f"**{candidate['name']}**" if candidate is winner else candidate["name"]
        lines.append(
            f"| {name} | {candidate['round'] + 1} | {_join_values(candidate['parents'])} | "
            f"{_plain(candidate['notes'])} | {rungs} |"
        )
    lines += ["", f"## Winner: {winner['name']}", "", _lineage(summary, winner), ""]
    lines += ["```python", winner["text"].rstrip(), "```", "", "## Every candidate", ""]
    for candidate in summary["candidates"]:
        lines += [
            f"### {candidate['name']}",
            "",
            "```python",
            candidate["text"].rstrip(),
            "```",
            "",
        ]
    return "\n".join(lines)


def _lineage(summary: Mapping[str, Any], candidate: Mapping[str, Any]) -> str:
    """``c07 (numbers mutated) from c02 (kernel near -> inverse)``."""
    known = {c["name"]: c for c in summary["candidates"]}
    chain = [candidate]
    while chain[-1]["parents"]:
        chain.append(known[chain[-1]["parents"][0]])
    return " from ".join(f"{c['name']} ({c['notes']})" for c in chain) + "."


def _cell(training: Mapping[str, Any]) -> str:
    if training["kind"] == "trained":
        return f"{100 * training['evaluation']['success']:.1f} %"
    return f"{training['kind'].replace('_', ' ')}: {_plain(training['message'])}"


def _plain(words: str) -> str:
    """Words that break no table."""
    return " ".join(words.replace("|", "/").split())


def _join_values(values: Any) -> str:
    return ", ".join(f"{v:,}" if isinstance(v, int) else str(v) for v in values) or "-"
