"""The table of dependencies in THIRD_PARTY.md, from the metadata of what is installed.

    python -m benchmarks.licences

A package that is not installed here keeps the row that it has.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from robo_rl.runs.markdown import table
from sims.utils.process import ROOT

FILE = ROOT / "THIRD_PARTY.md"
BEGIN, END = "<!-- dependencies: begin -->\n", "<!-- dependencies: end -->\n"
_CLASSIFIER = "License :: OSI Approved :: "


def direct(pyproject: Mapping[str, Any]) -> dict[str, str]:
    """{canonical name: the extras that ask for it; "base" without one} of pyproject.toml."""
    project, found = pyproject["project"], {}
    groups = {"base": project["dependencies"], **project["optional-dependencies"]}
    for group, requirements in groups.items():
        for text in requirements:
            name = canonicalize_name(Requirement(text).name)
            found[name] = f"{found[name]}, {group}" if name in found else group
    return found


def licence_of(package: Distribution) -> str:
    """The licence that a package states: an SPDX expression, classifiers, or its first line.

    Raises:
        ValueError: The metadata name no licence; then the row is written by hand.
    """
    said = package.metadata
    text = said.get("License-Expression") or ", ".join(
        kind.removeprefix(_CLASSIFIER)
        for kind in said.get_all("Classifier", [])
        if kind.startswith(_CLASSIFIER)
    )
    text = text or next(iter((said.get("License") or "").strip().splitlines()), "")
    if not text or text.upper() == "UNKNOWN":
        raise ValueError(f"the metadata of {said['Name']} name no licence")
    return text if len(text) <= 300 else text[:297] + "..."  # some put the whole text there


def needed(package: Distribution) -> set[str]:
    """Canonical names of what a package requires here, without its own extras."""
    wanted = (Requirement(text) for text in package.requires or ())
    return {
        canonicalize_name(one.name)
        for one in wanted
        if one.marker is None or one.marker.evaluate({"extra": ""})
    }


def rows_of(text: str) -> dict[str, list[str]]:
    """{name: [name, licence, asked for by]} of THIRD_PARTY.md's table of dependencies."""
    inside = text.partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in inside.splitlines()]
    return {row[0]: row for row in rows[2:] if len(row) == 3}


def dependencies(pyproject: Mapping[str, Any], before: Mapping[str, list[str]]) -> list[list[str]]:
    """A row for each direct dependency and for all that these need, by name."""
    asked, rows = direct(pyproject), {}
    waiting = [(name, by) for name, by in asked.items()]
    while waiting:
        name, by = waiting.pop()
        if name in rows:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            if name in asked:
                rows[name] = [name, before.get(name, ["", ""])[1], by]
            continue
        stated = before.get(name, ["", ""])[1]
        try:
            stated = licence_of(package)
        except ValueError:
            if not stated:
                print(f"{name} states no licence: write it into {FILE.name}")
        rows[name] = [name, stated, asked.get(name, f"needed by {by}")]
        waiting += [(other, name) for other in sorted(needed(package)) if other not in asked]
    return [rows[name] for name in sorted(rows)]


def main() -> None:
    """Rewrites the table of licences in THIRD_PARTY.md."""
    text = FILE.read_text()
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = table(("package", "licence", "asked for by"), dependencies(pyproject, rows_of(text)))
    made = re.escape(BEGIN) + ".*" + re.escape(END)
    FILE.write_text(re.sub(made, lambda _: f"{BEGIN}{lines}{END}", text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
