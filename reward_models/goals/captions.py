"""Sentences of formulas, and the order in which a reward should ask for their atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_models.base import CardEntity, TaskCard
from reward_models.goals.duration import achieved_by
from reward_models.goals.formula import Atom, Formula, Joined, join, parts_of
from reward_models.goals.predicates import GRIPPER, PREDICATES, role, roles


@dataclass(frozen=True)
class Plan:
    """What to reward, in order: the atoms of a step must hold together, and a step counts only as
    far as the steps before it were reached."""

    steps: tuple[tuple[Atom, ...], ...]
    parts: tuple[int, ...]  # of what is wanted one after the other, the one a step belongs to
    shunned: tuple[Atom, ...] = ()  # none of which is ever to be


def paraphrases(atom: Atom, card: TaskCard) -> tuple[str, ...]:
    """Returns six to ten statements that mean the atom, the canonical one first, with each name of
    its entities in turn."""
    subjects = _names(card.entity(atom.subject), card)
    objects = _names(card.entity(atom.object), card)
    return tuple(
        wording.format(s=subjects[i % len(subjects)], o=objects[i % len(objects)])
        for i, wording in enumerate(PREDICATES[atom.predicate].wordings)
    )


def describe_vocabulary(card: TaskCard) -> str:
    """Returns one line that lists what can be said about the card's entities."""
    hands = [e for e in card.entities if role(e) == "gripper"]
    things = [_names(e, card)[0] for e in card.entities if role(e) == "object"]
    parts = []
    for who, subjects in (("gripper", [_names(e, card)[0] for e in hands]), ("object", ["one"])):
        verbs = [
            p.caption.format(subject="", object="").strip()
            for p in PREDICATES.values()
            if who in p.spoken
        ]
        if who == "gripper" and subjects and things:
            parts.append(f"{subjects[0]} {' / '.join(verbs)} {' / '.join(things)}")
        elif who == "object" and len(things) > 1:
            parts.append(f"one of these {' / '.join(verbs)} another")
    for p in PREDICATES.values():
        if p.spoken <= {"gripper", "object", "body"}:
            continue  # said above, of a body, or by no sentence
        who, where = (
            [_names(e, card)[0] for e in card.entities if roles(e) & fit]
            for fit in (p.spoken, p.roles[-1])
        )
        if who and (p.arity == 1 or set(where) - set(who[:1])):
            parts.append(p.caption.format(subject=" / ".join(who), object=" / ".join(where)))
    parts.append("two goals joined by 'then' or 'and'")
    return "; ".join(parts)


def visible_in_frame(atom: Atom) -> bool:
    """Returns whether one frame shows that an atom holds; False for an entity that is chosen at the
    start of an episode."""
    fixed = all(isinstance(term, str) for term in atom.terms)
    return fixed and PREDICATES[atom.predicate].seen in ("frame", "asked")


def stages(formula: Formula, card: TaskCard) -> Plan:
    """Returns the plan of a formula.

    A goal about a thing gives no signal before the arm is there, so touching comes first: the thing
    that is to be moved, or the handle of a drawer. What is to be lifted is grasped before. Of
    several such goals at once, each is reached while the ones before it are kept, and the last step
    asks for all, and for what must be open for that to be seen. What must hold for a time in the
    end is asked for at each step. What must never be adds no step.
    """
    wanted, shunned = _split_constraints(formula)
    *before, last = parts_of(wanted, "then")
    held = last.parts[0] if isinstance(last, Joined) and last.operator == "hold" else last
    parts = enumerate((*before, held))
    steps = [(n, step) for n, part in parts for step in _steps(part, card, shunned)]
    return Plan(tuple(s for _, s in steps), tuple(n for n, _ in steps), shunned)


def _split_constraints(formula: Formula) -> tuple[Formula, tuple[Atom, ...]]:
    """What is wanted, and what is never to be besides."""
    wanted: list[Formula] = []
    shunned: list[Atom] = []
    for part in parts_of(formula, "and"):
        never = isinstance(part, Joined) and part.operator == "never"
        if never and isinstance(part.parts[0], Atom):
            shunned.append(part.parts[0])
        else:
            wanted.append(part)
    if not wanted or not shunned:
        return formula, ()
    return wanted[0] if len(wanted) == 1 else join("and", *wanted), tuple(shunned)


def _steps(formula: Formula, card: TaskCard, shunned: Sequence[Atom]) -> list[tuple[Atom, ...]]:
    together = _conjunction_atoms(formula)
    gripper = next((e.name for e in card.entities if role(e) == GRIPPER), "")
    steps: list[tuple[Atom, ...]] = []
    moved: list[Atom] = []
    for atom in together:
        if gripper and atom.subject != gripper:
            touched = Atom.of("touch", gripper, _grasped_part(atom.subject, card))
            if not any((a.predicate, a.terms) == ("touch", touched.terms) for a in shunned):
                steps.append((*moved, touched))
            if atom.predicate == "lifted":
                steps.append((*moved, Atom.of("grasped", atom.subject)))
            moved.append(atom)
            moved += _open_to_be_seen(atom, card)
    shut = [(atom.subject,) for atom in together if atom.predicate == "closed"]
    opened = (a for a in moved if a.predicate == "open" and a.terms not in shut)
    return [*steps, tuple(dict.fromkeys((*together, *opened)))]


def _open_to_be_seen(atom: Atom, card: TaskCard) -> list[Atom]:
    """What must be open for an atom to be seen: no frame shows what lies in a shut drawer, so a
    table without it looks as if it were in there."""
    if len(atom.terms) < 2 or achieved_by(atom, card) != "put":
        return []
    opens = "open" in card.entity(atom.object).affordances
    return [Atom.of("open", atom.object)] if opens else []


def _grasped_part(name: str, card: TaskCard) -> str:
    """What a hand goes to that wants to move an entity: its handle, where it has one."""
    body = card.entity(name).body
    return next((e.name for e in card.entities if e.kind == "handle" and e.body == body), name)


def _conjunction_atoms(formula: Formula) -> tuple[Atom, ...]:
    """The set of atoms of a conjunction, without repeats, in the order they were said."""
    parts = parts_of(formula, "and")
    if all(isinstance(part, Atom) for part in parts):
        return tuple(dict.fromkeys(part for part in parts if isinstance(part, Atom)))
    raise ValueError(
        f"captions express a sequence of relations, not {formula}: expected atoms "
        "joined by 'and' inside 'then', reached at the end, and 'never' constraints; "
        "use --reward offline"
    )


def _names(entity: CardEntity, card: TaskCard) -> tuple[str, ...]:
    """Noun phrases that mean this entity and no other, the canonical one first."""
    names = [entity.name.replace("_", " ")]
    for alias in entity.aliases:
        words = alias.lower().replace("_", " ")
        if entity.colour and entity.colour not in words.split():
            words = f"{entity.colour} {words}"
        shared = any(
            alias in other.aliases and entity.colour in ("", other.colour)
            for other in card.entities
            if other != entity
        )
        if not shared and words not in names:
            names.append(words)
    return tuple(f"the {name}" for name in names)
