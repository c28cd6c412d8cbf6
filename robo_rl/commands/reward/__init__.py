"""`robo-rl reward`: read a sentence, write and check programs, train, judge and use encoders.

One module per action, imported when it is called; each has ``main(argv)``.

May import: commands, datasets/sources, evaluation, goals, labelling, learners, reward_analysis,
rewards, runs, runtime, scorers, search, vision.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

ACTIONS = {
    "read": "parse a goal sentence for a task",
    "write": "write a reward program for a sentence, by templates or a language model",
    "check": "check reward programs: language, units, runtime probes, screens",
    "picture": "render frames that meet a goal, for --reward goal-image:FILE",
    "train": "train a CLIP, or `train success|progress|critic|value|preferences|proposer`",
    "label": "label which of two segments is better, in the terminal or a browser",
    "report": "evaluate rewards or an encoder against the simulator's success judge",
    "score": "score episodes of runs, logs, datasets and videos against a sentence",
}


def main(argv: Sequence[str]) -> int:
    """Dispatches to one action."""
    args = list(argv)
    if not args or args[0] in ("-h", "--help"):
        print("usage: robo-rl reward ACTION [...]\n")
        print("\n".join(f"  {name:8} {text}" for name, text in ACTIONS.items()))
        return 0
    if args[0] not in ACTIONS:
        from sims.utils.did_you_mean import unknown_name_error

        raise unknown_name_error(f"unknown action {args[0]!r} of reward", args[0], ACTIONS)
    action, rest = args[0], args[1:]
    if action == "train" and rest[:1] == ["clip"]:
        rest = rest[1:]
    elif action == "train" and rest[:1] == ["proposer"]:
        action, rest = "proposer", rest[1:]
    elif action == "train" and rest and not rest[0].startswith("-"):
        action = "scorer"  # any other kind
    return importlib.import_module(f"robo_rl.commands.reward.{action}").main(rest)
