"""Counts of the source code at a commit: size, folders, cycles, names and docstrings.

    python -m benchmarks.codebase COMMIT [COMMIT ...]

Files are read from Git, so old commits are counted by the same rules as the present one.
"""

from __future__ import annotations

import argparse
import ast
import io
import itertools
import re
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sims.utils.process import ROOT, start_user_program

PACKAGES = ("sims", "reward_models", "real_robot", "robo_rl", "benchmarks")
BENCHMARKS = ("benchmarks/", "robo_rl/experiments/")  # the latter until they were moved
EMULATORS = ("real_robot/emulators/",)
_BLANK = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)
_ARRAY = re.compile(r"\b(Array|ndarray|NDArray|Tensor)\b")
_SHAPE = re.compile(r"\([A-Za-z0-9_*+ .]+,[^()]*\)")  # "(N, 3)", "(k, H, W, 3)", "(N,)"

Functions = ast.FunctionDef | ast.AsyncFunctionDef
Files = Mapping[str, str]  # {path from the repository's root: text}


def files_at(commit: str) -> dict[str, str]:
    """The Python files of all packages at ``commit``.

    Args:
        commit: A commit, tag or branch of this repository.

    Returns:
        {path: text}, in the order of Git.

    Raises:
        ValueError: Git does not know ``commit``.
    """
    git = start_user_program(
        "git", "archive", commit, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    archive, error = git.communicate()
    if git.returncode:
        raise ValueError(f"git cannot read commit {commit!r}: {error.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {
            name: member.read().decode()
            for name in files.getnames()
            if name.endswith(".py") and name.split("/")[0] in PACKAGES
            if (member := files.extractfile(name)) is not None
        }


def code_lines(text: str) -> int:
    """Lines of ``text`` that hold code: no blank line, comment or docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | Functions)
        if documented and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def statements(tree: ast.AST) -> int:
    """Statements in ``tree`` without docstrings and other bare constants."""
    return sum(
        isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(tree)
    )


def folder_imports(files: Files, package: str) -> dict[str, dict[str, str]]:
    """{folder: {folder of the same package that it imports: "file:line"}}, wherever in a file."""
    modules = {}
    for path in files:
        parts = path.removesuffix(".py").split("/")
        if parts[0] == package:
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, dict[str, str]] = {}
    for path in modules.values():
        here = path.rpartition("/")[0]
        found.setdefault(here, {})
        for node in ast.walk(ast.parse(files[path])):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = path.split("/")[: -node.level]
                    base = ".".join([*above, *([base] if base else [])])
                names = [
                    full if (full := f"{base}.{alias.name}") in modules else base
                    for alias in node.names
                ]
            for name in names:
                there = modules[name].rpartition("/")[0] if name in modules else here
                if there != here:
                    found[here].setdefault(there, f"{path}:{node.lineno}")
    return found


def components(graph: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, {}):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(component)

    for node in graph:
        if node not in number:
            visit(node)
    return found


def public_functions(tree: ast.Module) -> Iterator[Functions]:
    """Functions, and methods of public classes, whose names have no leading underscore."""
    bodies = [tree.body]
    while bodies:
        for node in bodies.pop():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bodies.append(node.body)
            elif isinstance(node, Functions) and not node.name.startswith("_"):
                yield node


def raised_names(function: Functions) -> set[str]:
    """Exception classes that the body of ``function`` raises by name, without nested functions."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Functions | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = raised.attr if isinstance(raised, ast.Attribute) else getattr(raised, "id", "")
            if name[:1].isupper() and name != "AssertionError":
                names.add(name)
        waiting.extend(ast.iter_child_nodes(node))
    return names


def takes_arrays(function: Functions) -> bool:
    """Whether an argument or the returned value of ``function`` is annotated as an array."""
    of = function.args
    given = [*of.posonlyargs, *of.args, *of.kwonlyargs]
    types = [one.annotation for one in given if one.annotation is not None]
    types += [function.returns] if function.returns is not None else []
    return any(_ARRAY.search(ast.unparse(kind)) for kind in types)


@dataclass(frozen=True)
class Counts:
    """What is counted of one commit."""

    lines: dict[str, int]  # code lines of each package
    benchmarks: int  # code lines of the benchmarks, wherever they are
    emulators: int  # code lines
    statements: int  # without docstrings, benchmarks and emulators: whatever the layout
    files: int
    flat: int  # files directly in a package, without its __init__
    cycles: int  # groups of folders that import each other in a circle
    in_cycles: int  # folders in those
    classes: int  # public class names that are defined more than once
    definitions: int  # classes that have one of those names
    arrays: int  # public functions that take or return arrays
    shapes: int  # of those: with a shape in the docstring
    raising: int  # public functions that raise an error by name
    errors: int  # of those: that name one of the errors
    unformatted: int  # "fmt: skip" and "fmt: off" comments


def count(files: Files) -> Counts:
    """The counts of ``files``."""
    lines = {path: code_lines(text) for path, text in files.items()}
    trees = {path: ast.parse(text) for path, text in files.items()}
    defined = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    twice = [times for times in defined.values() if times > 1]
    functions = [one for tree in trees.values() for one in public_functions(tree)]
    arrays = [one for one in functions if takes_arrays(one)]
    raising = [(one, names) for one in functions if (names := raised_names(one))]
    circles = [
        circle for package in PACKAGES for circle in components(folder_imports(files, package))
    ]
    text_of = lambda one: ast.get_docstring(one) or ""  # noqa: E731
    return Counts(
        lines={
            package: sum(n for path, n in lines.items() if path.startswith(f"{package}/"))
            for package in PACKAGES
        },
        benchmarks=sum(n for path, n in lines.items() if path.startswith(BENCHMARKS)),
        emulators=sum(n for path, n in lines.items() if path.startswith(EMULATORS)),
        statements=sum(
            statements(tree)
            for path, tree in trees.items()
            if not path.startswith((*BENCHMARKS, *EMULATORS))
        ),
        files=len(files),
        flat=sum(
            path.count("/") == 1 and not path.startswith(BENCHMARKS)
            for path in files
            if not path.endswith("/__init__.py")
        ),
        cycles=len(circles),
        in_cycles=len(list(itertools.chain(*circles))),
        classes=len(twice),
        definitions=sum(twice),
        arrays=len(arrays),
        shapes=sum(bool(_SHAPE.search(text_of(one))) for one in arrays),
        raising=len(raising),
        errors=sum(any(name in text_of(one) for name in names) for one, names in raising),
        unformatted=sum(len(re.findall(r"# fmt: (?:skip|off)", text)) for text in files.values()),
    )


def table(commits: Mapping[str, Counts]) -> str:
    """A Markdown table: one column a commit."""

    def share(part: int, whole: int) -> str:
        return f"{part} of {whole} ({part / max(1, whole):.0%})".replace("%)", " %)")

    rows = {f"code lines, `{name}/`": lambda c, n=name: f"{c.lines[n]:,}" for name in PACKAGES}
    rows |= {
        "code lines, all": lambda c: f"{sum(c.lines.values()):,}",
        "without benchmarks": lambda c: f"{sum(c.lines.values()) - c.benchmarks:,}",
        "without benchmarks and emulators": (
            lambda c: f"{sum(c.lines.values()) - c.benchmarks - c.emulators:,}"
        ),
        "statements without benchmarks and emulators": lambda c: f"{c.statements:,}",
        "files": lambda c: f"{c.files}",
        "files without a folder": lambda c: f"{c.flat}",
        "import cycles between folders (folders in them)": (
            lambda c: f"{c.cycles} ({c.in_cycles})"
        ),
        "public class names defined more than once (definitions)": (
            lambda c: f"{c.classes} ({c.definitions})"
        ),
        "public functions with arrays: docstring has a shape": lambda c: share(c.shapes, c.arrays),
        "public functions that raise: docstring names the error": (
            lambda c: share(c.errors, c.raising)
        ),
        "`fmt: skip` and `fmt: off`": lambda c: f"{c.unformatted}",
    }
    lines = [f"| | {' | '.join(commits)} |", f"|---|{'---|' * len(commits)}"]
    for name, cell in rows.items():
        lines.append(f"| {name} | {' | '.join(cell(one) for one in commits.values())} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table of the commits that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="+", metavar="COMMIT")
    commits = parser.parse_args().commits
    print(table({commit: count(files_at(commit)) for commit in commits}))


if __name__ == "__main__":
    main()
