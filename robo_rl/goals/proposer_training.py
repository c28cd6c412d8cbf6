"""Trains what proposes readings of sentences that were refused: regression on labelled sentences.

It learns from the sets of sentences for development alone, and from the wordings of the table of
predicates; those that are kept out only count how often it is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch

from reward_models.base import TaskCard
from reward_models.goals.captions import paraphrases
from reward_models.goals.formula import Formula, atoms
from reward_models.goals.grammar.noun_phrases import EntityNames
from reward_models.goals.predicates import PREDICATES
from reward_models.goals.suggestions.proposer import (
    NOTHING,
    WIDTH,
    Proposer,
    atom_kind,
    candidate_atoms,
    sentence_features,
)

Labelled = tuple[str, TaskCard, Formula | None]  # None: it asks for nothing
DECAY = 2e-4  # of the squared weights


def train_proposer(sentences: Iterable[Labelled], steps: int = 200) -> Proposer:
    """Multinomial logistic regression of a sentence's kind on its words; what speaks of several
    is left out."""
    rows = [row for row in map(_row, sentences) if row is not None]
    kinds = sorted({kind for _, kind in rows} | {NOTHING})
    wanted = torch.tensor([kinds.index(kind) for _, kind in rows])
    at = torch.tensor([[i, column] for i, (found, _) in enumerate(rows) for column in found]).T
    values = torch.tensor([1 / math.sqrt(len(found)) for found, _ in rows for _ in found])
    inputs = torch.sparse_coo_tensor(at, values, (len(rows), WIDTH), check_invariants=True)
    weight = torch.zeros(WIDTH, len(kinds), requires_grad=True)
    bias = torch.zeros(len(kinds), requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logits = torch.sparse.mm(inputs, weight) + bias
        value = torch.nn.functional.cross_entropy(logits, wanted) + DECAY * weight.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return Proposer(kinds, weight.detach().numpy(), bias.detach().numpy())


def _row(sentence: Labelled) -> tuple[tuple[int, ...], str] | None:
    text, card, wanted = sentence
    about = [] if wanted is None else list(atoms(wanted))
    if len(about) > 1:
        return None
    kind = atom_kind(about[0], card) if about else NOTHING
    return sentence_features(text, EntityNames(card)).features, kind


def wordings(card: TaskCard) -> Iterator[Labelled]:
    """The statements of the table, of the first of a card's things that fit each."""
    known: set[str] = set()
    for atom in candidate_atoms(card):
        kind = atom_kind(atom, card)
        if kind not in known and PREDICATES[atom.predicate].wordings:
            known.add(kind)
            yield from ((text, card, atom) for text in paraphrases(atom, card))
