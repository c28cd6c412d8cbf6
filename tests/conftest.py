"""Shared by all tests: the marker ``fault``, the fixture ``took``, the page ``--faults`` writes."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import FAULTS, Shown

from robo_rl.threads import cores, limit_cores
from sims.frame_pool import SETTING as RENDER_THREADS

OPERATORS = "torch.onnx._internal.exporter._registration"
SHOWN = pytest.StashKey[Shown]()
# Files that take 20 s and more: they come first, so that none is left to one worker at the end.
LONG = {
    "test_any_goal", "test_batch_env", "test_cameras", "test_cli", "test_embedded_clip",
    "test_far_scorer", "test_goal_task", "test_goals", "test_learners", "test_line", "test_on_arm",
    "test_residual", "test_scorers", "test_so101_faults", "test_sweep", "test_tasks", "test_visual",
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", metavar="FILE", help="write the table of faults that were shown")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SHOWN] = Shown()
    # Two workers on two cores have no thread to spare, and to measure that takes as long each time.
    os.environ.setdefault(RENDER_THREADS, "1")
    if (workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))) > 1:
        limit_cores(max(1, cores() // workers))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Torch computes on one thread, however many an earlier test left it: threads that wait for one
    another on cores which two workers share made small networks learn five times slower."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    # The exporter makes its table of a thousand operators anew for every graph; one does for all.
    if table := getattr(sys.modules.get(OPERATORS), "ONNXRegistry", None):
        if not hasattr(table.from_torchlib, "cache_info"):
            table.from_torchlib = staticmethod(functools.cache(table.from_torchlib))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts long files first. Hands each test's fault numbers to its report, and refuses a number
    nobody knows."""
    items.sort(key=lambda item: item.path.stem not in LONG)
    for item in items:
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
