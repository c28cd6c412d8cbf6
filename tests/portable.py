"""`make portable`: repeats the tests whose result could depend on the processor, and reports it.

Two parts, each a series of pytest runs with one setting of torch's vector code
(``ATEN_CPU_CAPABILITY``) and one number of threads:

1. The tests that assert an outcome of learning (marker ``learns``, set by the fixture ``outcome``):
   ten training seeds natively, three seeds under every other setting.
2. All other tests of `make test` once under each CPU setting, with the one thread that they use.

Finished runs are kept in the folder ``--keep``, so an interrupted series resumes. The report lists
each outcome with its bound and its worst value under each setting, and each test that failed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

NATIVE = "native"
CAPABILITIES = (NATIVE, "default", "avx2")  # values of ATEN_CPU_CAPABILITY; native: unset
NATIVE_SEEDS, OTHER_SEEDS = 10, 3


@dataclass(frozen=True)
class Setting:
    """One kind of arithmetic: torch's vector code and its threads."""

    capability: str
    threads: int

    @property
    def title(self) -> str:
        return f"{self.capability}, {self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True)
class Run:
    """One pytest run of the series."""

    setting: Setting
    marks: str
    seed: int = 0
    tests: tuple[str, ...] = ()  # files; (): all

    @property
    def key(self) -> str:
        part = "learns" if self.marks.startswith("learns") else "others"
        return f"{part}-{self.setting.capability}-{self.setting.threads}-{self.seed}"


SETTINGS = [Setting(capability, threads) for capability in CAPABILITIES for threads in (1, 2)]


def series(tests: tuple[str, ...]) -> list[Run]:
    """Every run that `make portable` makes of these test files, the cheapest part first."""
    runs = []
    for setting in SETTINGS:
        seeds = NATIVE_SEEDS if setting == SETTINGS[0] else OTHER_SEEDS
        runs += [Run(setting, "learns and not slow", seed, tests) for seed in range(seeds)]
    others = [s for s in SETTINGS if s.threads == 1 and s.capability != NATIVE]
    return runs + [Run(setting, "not learns and not slow", tests=tests) for setting in others]


def execute(run: Run, keep: Path, workers: int) -> dict:
    """Runs pytest and returns its outcomes and failures; reads them where the run is finished."""
    done = keep / f"{run.key}.json"
    if done.exists():
        return json.loads(done.read_text())
    lines, junit = keep / f"{run.key}.jsonl", keep / f"{run.key}.xml"
    lines.unlink(missing_ok=True)
    env = dict(os.environ, OMP_NUM_THREADS=str(run.setting.threads))
    env.pop("ATEN_CPU_CAPABILITY", None)
    if run.setting.capability != NATIVE:
        env["ATEN_CPU_CAPABILITY"] = run.setting.capability
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        run.marks,
        "-n",
        str(workers),
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        f"--junitxml={junit}",
        f"--outcomes={lines}",
        f"--training-seed={run.seed}",
        f"--torch-threads={run.setting.threads}",
        *run.tests,
    ]
    start = time.monotonic()
    code = subprocess.run(command, env=env, stdout=subprocess.DEVNULL).returncode
    if code not in (0, 1, 5):  # 1: tests failed, which the report is for; 5: none was selected
        raise SystemExit(f"pytest ended with {code}: {' '.join(command)}")
    text = lines.read_text() if lines.exists() else ""
    result = {
        "outcomes": [json.loads(line) for line in text.splitlines()],
        "failed": failures(junit),
        "seconds": time.monotonic() - start,
    }
    done.write_text(json.dumps(result))
    return result


def failures(junit: Path) -> list[str]:
    """Names of the tests that failed, from pytest's own report."""
    cases = ElementTree.parse(junit).iter("testcase")
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def worst(values: list[dict]) -> float:
    """The value nearest to its bound, or farthest beyond it."""
    below = values[0]["below"] is not None
    return max(v["value"] for v in values) if below else min(v["value"] for v in values)


def report(results: dict[Run, dict]) -> str:
    """The page of figures, as Markdown."""
    found: dict[tuple[str, str], dict[Setting, list[dict]]] = defaultdict(lambda: defaultdict(list))
    failed: dict[str, list[str]] = defaultdict(list)
    for run, result in results.items():
        for line in result["outcomes"]:
            found[line["test"].removeprefix("tests/"), line["what"]][run.setting].append(line)
        for test in result["failed"]:
            failed[test].append(f"{run.setting.title}, seed {run.seed}")
    rows = []
    for (test, what), by_setting in sorted(found.items()):
        first = next(iter(by_setting.values()))[0]
        bound = f"> {first['above']:g}" if first["above"] is not None else f"< {first['below']:g}"
        cells = [f"{worst(by_setting[s]):.4g}" if s in by_setting else "" for s in SETTINGS]
        name = test.replace("|", r"\|")
        rows.append(f"| `{name}` | {what} | {bound} | " + " | ".join(cells) + " |")
    heads = " | ".join(setting.title for setting in SETTINGS)
    table = [f"| test | outcome | bound | {heads} |", "|---" * (3 + len(SETTINGS)) + "|", *rows]
    changed = [f"- `{test}`: {'; '.join(where)}" for test, where in sorted(failed.items())]
    minutes = math.ceil(sum(result["seconds"] for result in results.values()) / 60)
    return "\n".join(
        [
            "# Test outcomes under other CPU settings",
            "",
            f"Generated by `make portable` on {platform.machine()} in {minutes} minutes. A column",
            "is one value of `ATEN_CPU_CAPABILITY` and one number of torch threads. A cell is the",
            f"worst value of {NATIVE_SEEDS} training seeds natively with one thread, of",
            f"{OTHER_SEEDS} seeds elsewhere. All other tests of `make test` ran once in each CPU",
            "setting with one thread.",
            "",
            f"## Tests that failed: {len(failed)}",
            "",
            *(changed or ["None."]),
            "",
            f"## Outcomes of learning: {len(rows)}",
            "",
            *table,
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tests", nargs="*", help="test files (default: all)")
    parser.add_argument("--keep", type=Path, default=Path("runs/portable"))
    parser.add_argument("--report", type=Path, help="write the page here (default: print it)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    results = {}
    for number, run in enumerate(runs := series(tuple(options.tests)), 1):
        print(f"[{number}/{len(runs)}] {run.setting.title}, seed {run.seed}: {run.marks}")
        results[run] = execute(run, options.keep, options.workers)
        if failed := results[run]["failed"]:
            print("  failed:", *failed, sep="\n    ")
    page = report(results)
    if options.report:
        options.report.write_text(page)
    else:
        print(page)
    return int(any(result["failed"] for result in results.values()))


if __name__ == "__main__":
    raise SystemExit(main())
