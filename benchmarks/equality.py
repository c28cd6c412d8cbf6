"""Compares what commands give at two commits: weights, actions, scores and figures, bit for bit.

    python -m benchmarks.equality BEFORE AFTER [--keep FOLDER] [--only N ...]

Every command of equality.toml runs once in a checkout of each commit, with this Python and the same
seeds. Their files are compared array by array and number by number. Versions, times and
paths do not count. Finished commands are kept in ``--keep``, so an interrupted comparison resumes.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from benchmarks.perf import checkout
from sims.utils.process import ROOT, start_user_program

SPEC = ROOT / "benchmarks" / "equality.toml"
COMPARED = {".safetensors", ".npz", ".json", ".csv", ".py"}


def execute(number: int, argv: list[str], tree: Path, work: Path) -> None:
    """Runs one command with the code of ``tree`` in ``work``, unless it is already done.

    Raises:
        SystemExit: The command failed; its error output is in the message.
    """
    out = work / f"stdout{number}.json"
    if out.exists():
        return
    process = start_user_program(
        sys.executable,
        "-m",
        "robo_rl.cli",
        *argv,
        variables=os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"},
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    printed, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"{tree}: robo-rl {' '.join(argv)}\n{errors[-2000:]}")
    out.write_text(printed if "--json" in argv else "{}")


def leaves(value: Any, spec: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Each number or text in ``value`` (JSON) with its place; ignored keys are left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in spec["ignored"]:
                yield from leaves(inner, spec, f"{at}/{spec['renamed'].get(key, key)}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, spec, f"{at}/{number}")
    else:
        yield at, spec["renamed"].get(value, value) if isinstance(value, str) else value


def contents(file: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """What ``file`` holds, by place: arrays of weights, numbers of JSON and tables, text."""
    if file.suffix == ".safetensors":
        return load_file(file)
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            return {spec["renamed"].get(key, key): arrays[key] for key in arrays.files}
    text = file.read_text()
    if file.suffix == ".json":
        return dict(leaves(json.loads(text), spec))
    if file.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        return dict(leaves(rows, spec))
    return {"text": text}


def same(a: Any, b: Any) -> bool:
    """True if both are bit-equal; a NaN equals a NaN."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (a == b or (a != a and b != b))


def differences(before: Path, after: Path, spec: dict[str, Any]) -> tuple[int, list[str], int]:
    """The number of values compared, each place that changed or is gone, and how many are new."""
    a, b = contents(before, spec), contents(after, spec)
    places = [
        f"{key}: {_short(a[key])} -> {_short(b[key])}"
        for key in a.keys() & b.keys()
        if not same(a[key], b[key])
    ]
    places += [f"{key}: only before" for key in a.keys() - b.keys()]
    return len(a), sorted(places), len(b.keys() - a.keys())


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {value.shape} of sum {np.nansum(value):.9g}"
    return repr(value)[:60]


def compare(number: int, command: dict[str, Any], works: list[Path], spec: dict) -> dict[str, Any]:
    """Compares all results of one command: files, values, new values, and places that differ."""
    names = [f"stdout{number}.json"]
    for result in command.get("results", []):
        files: set[str] = set()
        for work in works:
            found = [work / result, *(work / result).rglob("*")]
            files |= {str(f.relative_to(work)) for f in found if f.suffix in COMPARED}
        names += sorted(files)
    values, new, places = 0, 0, []
    for name in names:
        if missing := [work.name for work in works if not (work / name).is_file()]:
            places.append(f"{name}: not in {', '.join(missing)}")
            continue
        count, found, more = differences(works[0] / name, works[1] / name, spec)
        values += count
        new += more
        places += [f"{name} {place}" for place in found]
    return {"files": len(names), "values": values, "new": new, "differences": places}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("commits", nargs=2)
    parser.add_argument("--keep", type=Path, default=Path("runs/equality"))
    parser.add_argument("--only", type=int, nargs="*", help="numbers of commands (default: all)")
    options = parser.parse_args()
    spec = tomllib.loads(SPEC.read_text())
    works = [(options.keep / side).resolve() for side in ("before", "after")]
    print("| command | files | values | differences | new |\n|---|---|---|---|---|")
    differing = 0
    with ExitStack() as stack:
        trees = [stack.enter_context(checkout(commit)) for commit in options.commits]
        for number, command in enumerate(spec["command"], 1):
            if options.only and number not in options.only:
                continue
            for tree, work in zip(trees, works, strict=True):
                work.mkdir(parents=True, exist_ok=True)
                execute(number, command["argv"], tree, work)
            result = compare(number, command, works, spec)
            found = result["differences"]
            differing += bool(found)
            line = f"| `{' '.join(command['argv'])}` | {result['files']} | {result['values']} |"
            print(line, len(found), "|", result["new"], "|", flush=True)
            for place in found:
                print(f"{number}: {place}", file=sys.stderr)
    return int(differing > 0)


if __name__ == "__main__":
    raise SystemExit(main())
