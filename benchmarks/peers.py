"""Peers of the benches in processes, and where pins clash in environments, of their own.

``python -m benchmarks.peers`` makes those environments, ``... peers fetch`` one of them; a
bench says which are missing. Their pythons also serve ``gym:ID --env-python``.
"""

from __future__ import annotations

import subprocess
import sys
import venv

from robo_rl.runtime.threads import user_environment
from sims.utils import process
from sims.utils.cache import cache_dir

# Pins that were tried together; what clashes with ours is why these environments are apart.
ENVIRONMENTS = {
    "envpool": ["envpool==1.2.5", "gymnasium==1.4.0"],
    "fetch": ["gymnasium-robotics==1.4.1", "mujoco==3.2.7", "gymnasium==1.4.0"],
    # Meta-World does not say that it needs packaging.
    "metaworld": ["metaworld==3.1.1", "mujoco==3.3.0", "gymnasium==1.4.0", "packaging"],
}

STEPPER = """
import json, sys, time
import numpy as np
kind, env_id, n, steps, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
if kind == "envpool":
    import envpool
    known = set(envpool.list_all_envs())
    env_id = env_id if env_id in known else env_id.replace("v5", "v4")
    env = envpool.make(env_id, env_type="gymnasium", num_envs=n, num_threads=threads)
else:
    import gymnasium
    if kind == "fetch":
        import gymnasium_robotics
        gymnasium.register_envs(gymnasium_robotics)
    make = lambda: gymnasium.make(env_id)
    env = gymnasium.vector.AsyncVectorEnv([make] * n)
low, high = np.asarray(env.action_space.low), np.asarray(env.action_space.high)
low, high = low.reshape(-1, low.shape[-1])[0], high.reshape(-1, high.shape[-1])[0]
u = np.random.default_rng(0).uniform(-1, 1, (steps, n, len(low)))
action = (low + (high - low) * (u + 1) / 2).astype(np.float32)
print(env_id, flush=True)
for line in sys.stdin:
    env.reset()
    for a in action:
        env.step(a)
    print(n * steps, flush=True)
env.close()
"""


class Peer:
    """A contender in a process of its own: a line in, one run, a line back.

    ``code`` prints its ``name`` when it is ready, then what a run did, as often as it is told. It
    has the variables of whoever started us and ``variables``: none of our settings of threads.
    """

    def __init__(self, python: str, code: str, *arguments: object, **variables: str):
        self._process = process.start_user_program(
            python,
            "-c",
            code,
            *map(str, arguments),
            variables=user_environment() | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.name = self._line()

    def __call__(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            messages = self._process.stderr.read().strip().splitlines() or ["it said nothing"]
            raise OSError(f"the subprocess of a compared library ended: {messages[-1]}")
        return line.strip()

    def close(self) -> None:
        """Ends the process."""
        with self._process:
            pass  # which closes its pipes and waits


def environment(name: str) -> str:
    """The python of the environment for a peer; empty where it has not been made."""
    folder = cache_dir() / "peers" / name
    return str(folder / "bin" / "python") if (folder / "made").exists() else ""


def make_environment(name: str) -> None:
    """Makes the environment for a peer; OSError with pip's last word where that fails."""
    folder = cache_dir() / "peers" / name
    venv.create(folder, with_pip=True, clear=True)
    pip = process.start_user_program(
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "-q",
        *ENVIRONMENTS[name],
        terminal=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = pip.communicate()
    if pip.returncode:
        messages = errors.strip().splitlines() or ["pip said nothing"]
        raise OSError(f"cannot create the virtual environment for {name}: {messages[-1]}")
    (folder / "made").touch()


def main(names: list[str]) -> int:
    """Makes the environments called ``names`` (all by default) and prints their pythons."""
    unknown = sorted(set(names) - set(ENVIRONMENTS))
    if unknown:
        print(
            f"unknown environment {', '.join(unknown)}; available: {', '.join(ENVIRONMENTS)}",
            file=sys.stderr,
        )
        return 1
    for name in names or ENVIRONMENTS:
        try:
            make_environment(name)
        except OSError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{name}: {environment(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
