"""Speed of the working tree beside an earlier commit: ``make perf [AGAINST=COMMIT]``.

Each measurement is a process of its own, in the working tree (A) or in a temporary checkout of the
commit (B), with the same interpreter and packages, in the order A B B A A B B A ... A figure is the
median of the ratios of neighbours, so that a machine that slows down meets both sides. The command
fails where the working tree is more than 10 % slower.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sims.utils.process import ROOT, start_user_program

SLOWER = 1.10  # of the commit's time: the most that passes
PAIRS = 6  # of neighbours, for each figure
SECONDS = 300  # until a measurement is given up

# Each prints one number. They run on old commits too, so they use public names alone, and the
# bundle that the tests of that commit make.
_SIM = """
import time, numpy as np, sims
env = sims.make("reach", {envs}, seed=0)
rng = np.random.default_rng(0)
controls = rng.uniform(-1, 1, (50, {envs}, env.act_dim))
def work():
    env.reset()
    for control in controls:
        {each}
work()
start = time.perf_counter()
for _ in range({rounds}):
    work()
print({rounds} * len(controls) * {count} / (time.perf_counter() - start))
"""
_LOOP = """
import sys, tempfile, time
from pathlib import Path
sys.path.append(str(Path.cwd() / "tests"))
import numpy as np, reach_bundle, sims
from real_robot import NullDriver, Pose, RunConfig, run
class Poses:
    def read(self):
        pose = np.array([0.2, 0.0, 0.02]), np.array([1.0, 0, 0, 0]), time.monotonic()
        return {"red_cube": Pose(*pose), "blue_ball": Pose(*pose), "green_cylinder": Pose(*pose)}
with tempfile.TemporaryDirectory() as folder:
    bundle = reach_bundle.write(Path(folder), "so101")
    driver = NullDriver(sims.ROBOTS["so101"], period=0.01)
    config = RunConfig(realtime=True, patience=1e6)
    result = run(driver, bundle, perception=Poses(), seconds=4.0, config=config)
print(1e6 * result.latency["work"].p99)
"""
_IMPORT = """
import time
start = time.process_time()
import robo_rl.cli, robo_rl.commands.train
print(1e3 * (time.process_time() - start))
"""


@dataclass(frozen=True)
class Measurement:
    """One figure: its unit, the program that prints it, and whether more is better."""

    unit: str
    program: str
    more: bool


MEASUREMENTS = {
    "reach, 256 environments": Measurement(
        "steps/s", _SIM.format(envs=256, rounds=4, each="env.step(control)", count=256), True
    ),
    "reach, rendered every step": Measurement(
        "frames/s",
        _SIM.format(envs=8, rounds=2, each="env.step(control); env.render()", count=8),
        True,
    ),
    "control loop, work p99": Measurement("us", _LOOP, False),
    "import of the command line": Measurement("ms", _IMPORT, False),
}


@dataclass(frozen=True)
class Comparison:
    """Figures of both sides, pair by pair."""

    name: str
    what: Measurement
    ours: Sequence[float]
    before: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        """Our time over the commit's, of each pair: above 1 is slower."""
        pairs = zip(self.ours, self.before, strict=True)
        return [b / a if self.what.more else a / b for a, b in pairs]

    @property
    def passed(self) -> bool:
        """Whether the median of the ratios is within ``SLOWER``."""
        return median(self.ratios) <= SLOWER

    def line(self) -> str:
        """The figures as one line of text."""
        ratios = self.ratios
        return (
            f"{self.name}: {median(self.ours):,.4g} {self.what.unit}, before "
            f"{median(self.before):,.4g}; time ratio {median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} pairs)"
            + ("" if self.passed else f": more than {SLOWER - 1:.0%} slower")
        )


def compare(
    name: str, what: Measurement, measure: Callable[[bool], float], pairs: int = PAIRS
) -> Comparison:
    """Measures both sides in the order A B B A A B ...

    Args:
        name: What is measured, for people.
        what: Its unit and direction.
        measure: The figure of the working tree (True) or of the commit (False).
        pairs: How many of each.

    Returns:
        The figures; pair ``i`` was measured one after the other.
    """
    figures: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(pairs):
        for ours in (True, False) if pair % 2 == 0 else (False, True):
            figures[ours].append(measure(ours))
    return Comparison(name, what, figures[True], figures[False])


def figure_of(program: str, tree: Path) -> float:
    """The number that ``program`` prints with the packages of ``tree``.

    Raises:
        RuntimeError: The program failed, or imported another copy of the packages.
    """
    check = "\nimport sims; print(sims.__file__)"
    process = start_user_program(
        sys.executable,
        "-c",
        program + check,
        variables={**os.environ, "PYTHONPATH": str(tree)},
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, error = process.communicate(timeout=SECONDS)
    if process.returncode:
        said = error.strip().splitlines() or [f"exit status {process.returncode}"]
        raise RuntimeError(f"a measurement failed in {tree}: {said[-1]}")
    figure, file = out.split()[-2:]
    if not Path(file).is_relative_to(tree):
        raise RuntimeError(f"expected the packages of {tree}, got {file}")
    return float(figure)


def _git(*command: str) -> str:
    git = start_user_program(
        "git", *command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, error = git.communicate()
    if git.returncode:
        raise ValueError(f"git {' '.join(command)}: {error.strip()}")
    return out.strip()


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A temporary worktree of ``commit``."""
    with tempfile.TemporaryDirectory(prefix="robo-rl-perf-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def main() -> int:
    """Prints a line for each figure; returns 1 where one is slower."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="", metavar="COMMIT", help="empty: the last tag")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="measurements of each side")
    options = parser.parse_args()
    against = options.against
    if not against:
        try:
            against = _git("describe", "--tags", "--abbrev=0")
        except ValueError:
            parser.error("this repository has no tag: give a commit, make perf AGAINST=COMMIT")
    slower = 0
    with checkout(against) as tree:
        print(f"beside {against}, {_git('rev-parse', '--short', against)}", flush=True)
        for name, what in MEASUREMENTS.items():
            found = compare(
                name,
                what,
                lambda ours, program=what.program: figure_of(program, ROOT if ours else tree),
                options.pairs,
            )
            print(found.line(), flush=True)
            slower += not found.passed
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
