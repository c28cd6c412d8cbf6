"""Injects faults into ten modules and counts those that the fast tests find.

The faults are mutmut's (`pip install mutmut`): a seeded sample for each module, listed in a file so
that two commits are held against the same faults. Each fault is written into a copy of the
repository, in which the module's test files run until the first failure.

    python tests/mutation.py sample faults.json           # draws the list
    python tests/mutation.py run faults.json OUT.json    # resumes; OUT has the verdicts
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 240  # s, for the tests of one fault; a fault that hangs them is found
# Modules with the test files that are about them.
MODULES = {
    "sims/envs/batch_env.py": ["test_batch_env"],
    "sims/randomization/domain_randomization.py": ["test_randomize"],
    "sims/tasks/scene/tabletop.py": ["test_tasks", "test_robots"],
    "reward_models/goals/margins.py": ["test_margins", "test_goals"],
    "reward_models/vision/clip_score.py": ["test_reward_models", "test_clip_reward"],
    "real_robot/safety/filter.py": ["test_safety", "test_control_loop"],
    "real_robot/drivers/servo_bus.py": ["test_so101_bus", "test_so101_faults", "test_arm_faults"],
    "robo_rl/learners/demo_replay.py": ["test_demo_replay"],
    "robo_rl/goals/goal_task.py": ["test_goal_task"],
    "robo_rl/rollout/scoring.py": ["test_scoring", "test_async_scoring"],
}
PER_MODULE = 12


def faults_of(module: str) -> Iterator[tuple[dict, Callable[[], str]]]:
    """Each fault that mutmut can inject into ``module``: its key, and what makes the source."""
    import libcst
    from mutmut.mutation.file_mutation import create_mutations, deep_replace

    source = (ROOT / module).read_text()
    tree, mutations, *_ = create_mutations(module, source)
    seen: Counter[tuple] = Counter()
    for mutation in mutations:
        function = mutation.contained_by_top_level_function
        if not isinstance(function, libcst.FunctionDef):
            continue
        before, after = mutation.original_node, mutation.mutated_node
        old, new = (libcst.Module([]).code_for_node(node) for node in (before, after))
        if "XX" in new or old == new:  # another text of a message is not a fault
            continue
        place = (function.name.value, old, new)
        key = {"module": module, "function": place[0], "old": old, "new": new, "nth": seen[place]}
        seen[place] += 1
        yield key, lambda before=before, after=after: deep_replace(tree, before, after).code


def sample(path: Path) -> None:
    """Writes a seeded sample of faults."""
    rng = random.Random(0)
    chosen = []
    for module in MODULES:
        keys = [key for key, _ in faults_of(module)]
        chosen += rng.sample(keys, min(PER_MODULE, len(keys)))
    path.write_text(json.dumps(chosen, indent=1) + "\n")
    print(f"{len(chosen)} faults in {len(MODULES)} modules")


def verdict(copy: Path, key: dict, source: str) -> str:
    """``found``, ``missed`` or ``hangs``: what the tests say of the fault."""
    target = copy / key["module"]
    original = target.read_text()
    target.write_text(source)
    tests = [f"tests/{name}.py" for name in MODULES[key["module"]]]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    env = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    env |= {"ROBO_RL_CORES": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command,
            cwd=copy,
            env=env,
            timeout=TIMEOUT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    finally:
        target.write_text(original)
    return {0: "missed"}.get(run.returncode, "found")


def run(faults: Path, out: Path, workers: int) -> None:
    """Tries every fault of the list that ``out`` has no verdict of, and prints the counts."""
    listed = json.loads(faults.read_text())
    known = json.loads(out.read_text()) if out.exists() else []
    done = {json.dumps(entry["fault"]) for entry in known}
    sources = {}
    for module in MODULES:
        sources |= {json.dumps(key): make for key, make in faults_of(module)}
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        for number in range(workers):
            copy = Path(folder) / str(number)
            files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split("\n")
            for name in filter(None, files):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
            copies.put(copy)

        def one(key: dict) -> dict:
            make = sources.get(json.dumps(key))
            if make is None:
                return {"fault": key, "verdict": "absent"}  # the code has changed there
            copy = copies.get()
            try:
                return {"fault": key, "verdict": verdict(copy, key, make())}
            finally:
                copies.put(copy)

        for entry in pool.map(one, [key for key in listed if json.dumps(key) not in done]):
            known.append(entry)
            out.write_text(json.dumps(known, indent=1) + "\n")
            print(entry["verdict"], entry["fault"]["module"], entry["fault"]["function"])
    print(dict(Counter(entry["verdict"] for entry in known)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("sample", "run"))
    parser.add_argument("faults", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.what == "sample":
        sample(options.faults)
    elif options.out is None:
        parser.error("run needs OUT.json, where the verdicts are kept")
    else:
        run(options.faults, options.out, options.workers)


if __name__ == "__main__":
    main()
