"""Messages, help texts and pages use the field's terms, not phrases that this project made up.

The phrases are those that readers could not parse; ``docs/glossary.md`` has the terms to use.
Single common words ("row", "told", "look") stay free where they mean what they say.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("sims", "reward_models", "real_robot", "robo_rl", "benchmarks")
PHRASES = re.compile(
    r"\b("
    r"nobody|somebody|whoever|anybody|anew"  # name the subject: the policy, the operator, the user
    r"|go(es|ing)? on (as|from|where|with|in)|it goes on|went on"  # continues, resumes
    r"|(is|are|was|were) told|told of|told apart"  # given, configured, reported
    r"|who (learns|is (asked|shown))|what (learns nothing|pays|it was told|is seen of)"
    r"|selection seed|judged on|nothing can be kept"
    r"|nothing is called|is called so|no \w+ is called"  # unknown X 'y'; available: ...
    r"|known( (tasks|robots|rewards|words|names))?(?=:)"  # available: ...
    r"|loses its head"  # fails
    r")\b",
    re.IGNORECASE,
)


def error_texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each string in a ``raise`` statement."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def help_texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of the comments behind class fields, which are the help of options."""
    source = path.read_text()
    fields = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.AnnAssign)
        for line in range(part.lineno, (part.end_lineno or part.lineno) + 1)
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.start[0] in fields:
            yield token.start[0], token.string


def found_in(texts: Iterator[tuple[int, str]], path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r} in {text.strip()[:90]!r}"
        for line, text in texts
        if (match := PHRASES.search(text))
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_errors_and_help_use_field_terms(package: str) -> None:
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        found += found_in(error_texts(path), path) + found_in(help_texts(path), path)
    assert not found, "\n".join(found)


def test_command_list_uses_field_terms() -> None:
    path = ROOT / "robo_rl/cli.py"
    strings = (
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert not found_in(strings, path)


def test_pages_use_field_terms() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    pages += [p for p in (ROOT / "docs").rglob("*.md") if "results" not in p.parts]
    exempt = {"faults.md", "renames.md", "glossary.md"}  # two generated; one names the old words
    found = []
    for page in pages:
        if page.name not in exempt:
            found += found_in(iter(enumerate(page.read_text().splitlines(), 1)), page)
    assert not found, "\n".join(found)
