"""A small language of patterns over words, and automata that match many of them at once.

[x] may be left out, (x|y) is a choice, {NAME} is a class of words, {NAME_ED} those forms of its
verbs; X, Y and HAND are things. All patterns of a table become one automaton whose sets of states
are found as they are needed and kept, so a word costs one look-up however many patterns there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reward_models.goals.grammar.speech import deeds, implied, poses
from reward_models.goals.grammar.speech.verbs import CLASSES, forms_of

_CLASSES = CLASSES | deeds.SHARED | poses.SHARED | {"ANY": "X|Y", "ANYHOW": implied.ANYHOW}
_PARTS = re.compile(r"\{\w+\}|[\w']+|[\[\]()|,]")


def members(name: str) -> str:
    """The choices of a class; with _S, _ED or _ING those forms of its verbs."""
    if name in _CLASSES:
        return _CLASSES[name]
    stem, _, form = name.rpartition("_")
    verbs = (verb.strip() for verb in _CLASSES[stem].split("|"))
    return "|".join(word for verb in verbs for word in forms_of(verb)[form.lower()])


class Automaton:
    """Which labels' patterns match a run of words."""

    def __init__(self, labelled: dict[str, Sequence[str]]) -> None:
        self._next: list[dict[str, list[int]]] = [{}]
        self._free: list[list[int]] = [[]]
        self._final: dict[int, str] = {}
        for label, patterns in labelled.items():
            for pattern in patterns:
                self._final[self._choice(_PARTS.findall(pattern)[::-1], 0)] = label
        self._sets: dict[frozenset[int], int] = {}
        self._moves: list[dict[str, int]] = []
        self._states: list[frozenset[int]] = []
        self._labels: list[frozenset[str]] = []
        self._start = self._known(self._closed({0}))

    def ends(self, words: Sequence[str], start: int = 0) -> Iterator[tuple[int, frozenset[str]]]:
        """Where a match that begins at ``start`` may end, and the labels that it has there."""
        at = self._start
        for end in range(start, len(words)):
            at = self._move(at, words[end])
            if not self._states[at]:
                return
            if self._labels[at]:
                yield end + 1, self._labels[at]

    def whole(self, words: Sequence[str]) -> frozenset[str]:
        """The labels of all the words together."""
        at = self._start
        for word in words:
            at = self._move(at, word)
            if not self._states[at]:
                return frozenset()
        return self._labels[at]

    def _move(self, at: int, word: str) -> int:
        known = self._moves[at]
        if word not in known:
            found = {t for s in self._states[at] for t in self._next[s].get(word, ())}
            if not found:
                return self._known(frozenset())
            known[word] = self._known(self._closed(found))
        return known[word]

    def _known(self, states: frozenset[int]) -> int:
        if states not in self._sets:
            self._sets[states] = len(self._states)
            self._states.append(states)
            self._moves.append({})
            self._labels.append(frozenset(self._final[s] for s in states if s in self._final))
        return self._sets[states]

    def _closed(self, states: set[int]) -> frozenset[int]:
        todo = list(states)
        while todo:
            for state in self._free[todo.pop()]:
                if state not in states:
                    states.add(state)
                    todo.append(state)
        return frozenset(states)

    def _state(self) -> int:
        self._next.append({})
        self._free.append([])
        return len(self._next) - 1

    def _choice(self, parts: list[str], start: int) -> int:
        """Reads choices up to a closing bracket; the state in which each of them ends."""
        begin, end = self._state(), self._state()
        self._free[start].append(begin)
        at = begin
        while parts:
            part = parts.pop()
            if part in "])":
                break
            if part == "|":
                self._free[at].append(end)
                at = begin
            elif part in "[(":
                inner = self._choice(parts, at)
                if part == "[":
                    self._free[at].append(inner)
                at = inner
            elif part[0] == "{" or part == "ANY":
                at = self._choice(_PARTS.findall(members(part.strip("{}")))[::-1], at)
            else:
                following = self._state()
                self._next[at].setdefault(part, []).append(following)
                at = following
        self._free[at].append(end)
        return end
