"""Shared by all tests: the marker ``fault``, the fixtures ``took``, ``training_seed``, ``outcome``.

A test that asserts what a policy or model learned takes ``training_seed`` as its seed and checks
the figure with ``outcome``. ``make portable`` (tests/portable.py) repeats these tests with other
seeds, CPU settings and thread counts, and lists each figure's worst value beside its bound.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from faults import FAULTS, Shown

from robo_rl.runtime.threads import cores, limit_cores
from sims.rendering.render_pool import SETTING as RENDER_THREADS

OPERATORS = "torch.onnx._internal.exporter._registration"
SHOWN = pytest.StashKey[Shown]()
# Files that take 20 s and more: they come first, so that none is left to one worker at the end.
LONG = {
    "test_any_goal",
    "test_batch_env",
    "test_cameras",
    "test_cli",
    "test_embedded_clip",
    "test_async_scoring",
    "test_goal_task",
    "test_goals",
    "test_learners",
    "test_end_to_end",
    "test_on_arm",
    "test_residual",
    "test_scorers",
    "test_so101_faults",
    "test_sweep",
    "test_tasks",
    "test_clip_reward",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", metavar="FILE", help="write the table of faults that were shown")
    parser.addoption(
        "--training-seed", type=int, default=0, help="seed of every test that trains (default 0)"
    )
    parser.addoption(
        "--torch-threads", type=int, default=1, help="threads of torch in each test (default 1)"
    )
    parser.addoption(
        "--outcomes", metavar="FILE", help="append each outcome of learning as a line of JSON"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SHOWN] = Shown()
    # How long an example takes says more about what else the machine is doing.
    hypothesis.settings.register_profile(
        "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("any machine")
    config.addinivalue_line("markers", "learns: asserts an outcome of learning (set by `outcome`)")
    # Two workers on two cores have no thread to spare, and to measure that takes as long each time.
    os.environ.setdefault(RENDER_THREADS, "1")
    if (workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))) > 1:
        limit_cores(max(1, cores() // workers))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Sets torch's threads before each test, however many an earlier test left: two workers share
    two cores, and threads that wait for each other made small networks learn five times slower."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(item.config.getoption("--torch-threads"))
    # The exporter makes its table of a thousand operators anew for every graph; one does for all.
    if table := getattr(sys.modules.get(OPERATORS), "ONNXRegistry", None):
        if not hasattr(table.from_torchlib, "cache_info"):
            table.from_torchlib = staticmethod(functools.cache(table.from_torchlib))


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts long files first. Hands each test's fault numbers to its report, and refuses a number
    nobody knows."""
    items.sort(key=lambda item: item.path.stem not in LONG)
    for item in items:
        if "outcome" in getattr(item, "fixturenames", ()):
            item.add_marker("learns")
        numbers = sorted({n for mark in item.iter_markers("fault") for n in mark.args})
        if unknown := [n for n in numbers if n not in FAULTS]:
            raise pytest.UsageError(f"{item.nodeid}: no such fault {unknown}; see tests/faults.py")
        item.user_properties.append(("faults", numbers))


@pytest.fixture(autouse=True)
def _no_fault_of_another_test(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What latches in one test does not refuse the next emulator that gets the same port's name."""
    state = tmp_path_factory.getbasetemp() / "state" / str(abs(hash(request.node.nodeid)))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))


@pytest.fixture
def took(request: pytest.FixtureRequest) -> Callable[[float, str], None]:
    """``took(seconds, what)``: how long the promised behaviour took, for the table of faults."""

    def note(seconds: float, what: str) -> None:
        request.node.user_properties.append(("took", (float(seconds), what)))

    return note


@pytest.fixture(scope="session")
def training_seed(request: pytest.FixtureRequest) -> int:
    """The seed of every training whose outcome a test asserts."""
    return request.config.getoption("--training-seed")


@pytest.fixture
def outcome(request: pytest.FixtureRequest, training_seed: int) -> Callable[..., None]:
    """``outcome(what, value, above=..., below=...)`` asserts and records an outcome of learning.

    A bound belongs here only with a margin: the worst value over seeds, CPU settings and threads,
    which ``make portable`` lists, must keep clear of it.
    """
    file = request.config.getoption("--outcomes")

    def check(
        what: str, value: float, *, above: float | None = None, below: float | None = None
    ) -> None:
        value = float(value)
        if file:
            line = {
                "test": request.node.nodeid,
                "what": what,
                "value": value,
                "above": above,
                "below": below,
                "seed": training_seed,
            }
            with open(file, "a") as lines:
                lines.write(json.dumps(line) + "\n")
        assert above is None or value > above, f"{what}: expected above {above}, got {value:.6g}"
        assert below is None or value < below, f"{what}: expected below {below}, got {value:.6g}"

    return check


@pytest.fixture
def coarse_obs_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners with a replay buffer measure their observations' scale on few states: on all of
    them it takes seconds, and many tests are of something else."""
    monkeypatch.setattr("robo_rl.learners.obs_normalization._BEGINNINGS", 8)


@pytest.fixture(scope="module")
def short_video() -> Iterator[None]:
    """A run's video shows one row of episodes: to render and encode two takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robo_rl.training.train.SHOWN", 3)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> object:
    report = yield
    if report.when == "call" or report.failed:
        numbers = dict(report.user_properties).get("faults", [])
        times = [value for name, value in report.user_properties if name == "took"]
        name = item.nodeid.split("[")[0].removeprefix("tests/")
        item.config.stash[SHOWN].add(numbers, name, report.passed, times)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--faults")
    if path:
        command = "pytest " + shlex.join(map(str, session.config.invocation_params.args))
        Path(path).write_text(session.config.stash[SHOWN].page(command))
