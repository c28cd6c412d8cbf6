"""Other people's tasks: modules that call ``sims.register``, brought in by name, file or package.

A package announces its module in its own pyproject, and whoever installs it has its tasks:

    [project.entry-points."robo_rl.tasks"]
    roll = "my_tasks.roll"

A module that is not installed is named by the person who runs it (``robo-rl --import roll.py``).
Nothing that was downloaded is imported because a file says so: a run or a bundle names its task,
and whoever opens it says where that task comes from.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "robo_rl.tasks"
# Processes that a command starts bring in the same modules; separated as paths are.
VARIABLE = "ROBO_RL_IMPORT"


def import_plugin(module: str) -> None:
    """Imports a module by its dotted name or its file, here and in processes started from here.

    ValueError with the module's own complaint where it cannot be imported.
    """
    try:
        module = _from_file(Path(module)) if module.endswith(".py") else _from_name(module)
    except Exception as error:
        raise ValueError(
            f"cannot import {module!r}: {type(error).__name__}: {error}; expected a module's name "
            "or a .py file that calls sims.register"
        ) from error
    if module not in _requested_modules():
        os.environ[VARIABLE] = os.pathsep.join([*_requested_modules(), module])


def import_announced_plugins() -> None:
    """Brings in what installed packages announce, and what the process that started us did.

    A package that cannot be imported is a warning: its tasks are missing, all others work.
    """
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            warnings.warn(
                f"the tasks that {point.value!r} announces are missing: "
                f"{type(error).__name__}: {error}",
                stacklevel=2,
            )
    for module in _requested_modules():
        import_plugin(module)


def _requested_modules() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def _from_name(module: str) -> str:
    """The module's name after the folder that it or its package lies in, which a process started
    from here need not have on its path."""
    folder, name = os.path.split(module)
    if folder and folder not in sys.path:
        sys.path.append(folder)
    importlib.import_module(name)
    top = sys.modules[name.partition(".")[0]]
    found = getattr(top, "__path__", None) or [top.__file__]
    return os.path.join(os.path.dirname(os.path.abspath(found[0])), name)


def _from_file(path: Path) -> str:
    path = path.resolve(strict=True)
    name = path.stem
    if getattr(sys.modules.get(name), "__file__", None) == str(path):
        return str(path)
    if name in sys.modules:
        raise ValueError(f"a module named {name!r} is already imported; rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return str(path)
