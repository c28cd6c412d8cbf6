"""RunDir: everything one training run writes, in files that only ever hold data.

```
runs/<name>/config.json      the resolved configuration
            versions.json    versions, threads and processor that it was begun with
            metrics.csv      one row per rollout, appended; readable after a crash
            looks.csv        one row per periodic evaluation on validation episodes
            tensorboard/     the rows of both once more, for TensorBoard
            checkpoints/step_00012800/{weights.safetensors, state.npz, meta.json}
                        best/          the weights of the policy that did best in looks.csv
            scorer.json      what its reward looks at frames with, and in which number format
            result.json      what it came to; there when it has finished
```

A checkpoint is renamed into place when it is complete, and reading one never runs code: tensors
are safetensors, arrays npz without pickles, the rest JSON. Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from robo_rl.runtime.renamed_options import current_names
from robo_rl.runtime.threads import simulation_threads
from sims.utils.versions import versions as environment
from sims.utils.versions import warn_of_engine

Array = np.ndarray

RESULT, BEST, SCORER = "result.json", "best", "scorer.json"
WEIGHTS, STATE, META = "weights.safetensors", "state.npz", "meta.json"
KEEP = 2  # checkpoints kept: the last one and one to fall back to
VERSIONS, RESUMED = "versions.json", "resumed_with"  # file; its entry of what differed later


class CheckpointError(Exception):
    """A checkpoint cannot be trusted; the message names the file and why."""


@dataclass(frozen=True)
class Checkpoint:
    """The data from which a run continues."""

    step: int  # env_steps
    weights: Mapping[str, Array]  # networks and optimisers
    state: Mapping[str, Array]  # simulator, buffers, random generators
    meta: Mapping[str, Any]  # JSON: counters
    kept: int = 0  # bytes of the state, of one that was read


def jsonable(value: Any) -> Any:
    """Returns ``value`` as JSON types: dataclasses as dicts, tuples as lists, others as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: jsonable(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        entries = sorted(value) if isinstance(value, set | frozenset) else value
        return [jsonable(entry) for entry in entries]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def atomic_write(path: Path, data: bytes) -> None:
    """Writes a file so that a reader sees the old content or the new, never half of either."""
    path = Path(path)
    # Not by tempfile, whose files nobody else may read.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Writes ``jsonable(value)`` atomically, indented."""
    atomic_write(path, (json.dumps(jsonable(value), indent=2) + "\n").encode())


def versions() -> dict[str, str]:
    """What a result depends on beside its command and seed (``sims/utils/versions.py``), and the
    number of simulation threads."""
    return environment() | {"simulation_threads": str(simulation_threads())}


def warn_of_run(path: Path) -> None:
    """An OtherEngine warning where the run in ``path`` was begun with another MuJoCo."""
    if (versions_file := path / VERSIONS).exists():
        warn_of_engine(read_json(versions_file), f"the run {path}")


def _sync_folder(folder: Path) -> None:
    """Makes a rename inside ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class CsvTable:
    """A CSV file of rows that are appended; readable after a crash."""

    def __init__(self, path: Path):
        self.path = path
        self._columns: list[str] = []

    def append(self, row: Mapping[str, float | int | str]) -> None:
        """Adds a row; a column not seen before widens the file."""
        if not self._columns and self.path.exists():
            # Also drops the half row that a killed process may have left.
            self._columns, rows = self._read()
            self._write(rows)
        if any(name not in self._columns for name in row):
            _, rows = self._read()
            self._columns += [name for name in row if name not in self._columns]
            self._write(rows)
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(row)

    def read(self) -> dict[str, Array]:
        """Returns {column: (rows,)}; float with nan for blanks, or str where not numbers."""
        columns, rows = self._read()
        found: dict[str, Array] = {}
        for name in columns:
            cells = [row.get(name) or "" for row in rows]
            try:
                found[name] = np.array([float(cell) if cell else np.nan for cell in cells])
            except ValueError:
                found[name] = np.array(cells)
        return found

    def drop_after(self, last: int, column: str = "env_steps") -> None:
        """Removes rows whose ``column`` is past ``last``."""
        self._columns, rows = self._read()
        if self._columns:
            self._write([row for row in rows if float(row[column]) <= last])

    def _read(self) -> tuple[list[str], list[dict[str, str]]]:
        if not self.path.exists():
            return [], []
        text = self.path.read_bytes().decode()
        whole = text[: text.rfind("\n") + 1]  # a row without its newline was cut by a crash
        reader = csv.DictReader(io.StringIO(whole, newline=""))
        return list(reader.fieldnames or []), list(reader)

    def _write(self, rows: list[dict[str, str]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        atomic_write(self.path, text.getvalue().encode())


def read_json(path: Path) -> Any:
    """Returns what a JSON file holds; ValueError names the file where it holds none."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged, it is not JSON ({error}): restore it, or remove its folder"
        ) from None


def check_writable(path: Path) -> None:
    """ValueError where no folder ``path`` can be made, or written in; one is tried."""
    try:
        there = next(folder for folder in (path, *path.parents) if folder.exists())
        if not there.is_dir():
            raise NotADirectoryError
        os.rmdir(tempfile.mkdtemp(prefix=".robo-rl-", dir=there))
    except OSError as error:
        why = f" ({error.strerror})" if error.strerror else ""
        raise ValueError(
            f"cannot create run directory {path}: {there} is not a writable folder{why}"
        ) from None


def run_folder(runs: Path, name: str) -> Path:
    """The folder of a run; ValueError where ``name`` leads out of the folder of all ``runs``."""
    inside = os.path.normpath(name)
    if os.path.isabs(inside) or inside.split(os.sep)[0] in (os.curdir, os.pardir):
        raise ValueError(
            f"--name: expected a name below {runs}, got {name!r}; --runs FOLDER is where runs go"
        )
    return runs / name


def slug(text: str, most: int = 60) -> str:
    """``text`` as a part of a run's name; of a longer one the end is a hash, so that two that
    differ late have two names."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(words) <= most:
        return words
    return f"{words[: most - 9].strip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


class RunDir:
    """One run's folder. ``create`` starts a new one, ``open`` continues one."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self.metrics_path = self.path / "metrics.csv"
        self.checkpoints_path = self.path / "checkpoints"
        self._metrics = CsvTable(self.metrics_path)
        self.evaluations = CsvTable(self.path / "looks.csv")

    @staticmethod
    def check_free(path: Path) -> None:
        """ValueError when ``path`` holds a run, or can hold none: asked before minutes are spent on
        a new one."""
        check_writable(path)
        if (path / "config.json").exists():
            ended = RunDir(path).config.get("learner") == "clone"
            raise ValueError(
                f"{path} already holds a behaviour-cloning run, which cannot be resumed; give the "
                "new run another name"
                if ended
                else f"{path} already holds a run; continue it with --resume {path}, or give "
                "the new run another name"
            )

    @classmethod
    def create(cls, path: Path, config: Any) -> RunDir:
        """A new run; ValueError when the folder holds a run already."""
        cls.check_free(path)
        run = cls(path)
        run.checkpoints_path.mkdir(parents=True, exist_ok=True)
        write_json(run.path / VERSIONS, versions())
        write_json(run.path / "config.json", config)
        return run

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """The run in ``path``; ValueError when there is none."""
        run = cls(path)
        if not (run.path / "config.json").is_file():
            if (run.path / "manifest.json").is_file():
                raise ValueError(
                    f"{run.path} is a policy bundle, not a run folder; run it with robo-rl deploy "
                    f"{run.path}"
                )
            raise ValueError(f"no run in {run.path}: config.json is missing")
        return run

    @classmethod
    @contextlib.contextmanager
    def under_way(
        cls, path: Path, config: Any, *, resume: bool = False, goes_on: bool = True
    ) -> Iterator[RunDir]:
        """Opens a new run, or one that is resumed, for the time of its training.

        A new run that fails or is stopped leaves no folder if it has no metrics or checkpoint to
        resume from, or if nothing of its kind can be resumed. The configuration of a resumed run is
        replaced by ``config`` if that differs, and it is then no longer finished.

        Args:
            path: The run's folder.
            config: The configuration.
            resume: Whether the run exists and is resumed.
            goes_on: Whether a run of this kind can be resumed after it was stopped.

        Yields:
            The run.

        Raises:
            KeyboardInterrupt: Ctrl-C stopped it; the message has the command that resumes the run.
        """
        new = [folder for folder in (path, path.parent) if not resume and not folder.exists()]
        run = cls.open(path) if resume else cls.create(path, config)
        if resume:
            warn_of_run(path)
        try:
            with run._training_lock():
                if resume:
                    run._resumed_with(versions())
                if run.config != jsonable(config):
                    write_json(path / "config.json", config)
                    (path / RESULT).unlink(missing_ok=True)
                yield run
        except BaseException as error:
            begun = run.metrics_path.exists() or bool(run.checkpoint_paths())
            if path in new and not (goes_on and begun):
                shutil.rmtree(path)
                if path.parent in new:
                    with contextlib.suppress(OSError):  # somebody else's run is there by now
                        path.parent.rmdir()
            elif goes_on and isinstance(error, KeyboardInterrupt):
                reason = str(error) or "stopped by Ctrl-C"
                raise KeyboardInterrupt(f"{reason}; resume with: {run.resume_command}") from None
            raise

    def _resumed_with(self, now: Mapping[str, str]) -> None:
        """Notes what differs ``now`` from what the run last went on with."""
        if not (path := self.path / VERSIONS).exists():
            return
        begun = read_json(path)
        resumed = begun.get(RESUMED, [])
        last = {name: value for made in (begun, *resumed) for name, value in made.items()}
        if other := {name: now[name] for name in now if now[name] != last.get(name)}:
            write_json(path, begun | {RESUMED: [*resumed, other]})

    @contextlib.contextmanager
    def _training_lock(self) -> Iterator[None]:
        """Locks the run against other processes; ValueError where another one trains in it. The
        lock is released when the process ends."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"{self.path} is being trained by another process: wait for it or stop it, or "
                    "start a run with another --name"
                ) from None
            yield
        finally:
            os.close(folder)

    @property
    def in_use(self) -> bool:
        """Whether another process is training in it."""
        try:
            with self._training_lock():
                return False
        except ValueError:
            return True

    @property
    def config(self) -> dict[str, Any]:
        """The configuration the run was created with.

        A run of before ``dtype`` was an option looked at frames in the number format that was
        quicker on its machine, which its scorer.json has: it stays in that one.
        """
        config = current_names(read_json(self.path / "config.json"))
        scoring, scorer = config.get("scoring"), self.path / SCORER
        if isinstance(scoring, dict) and "dtype" not in scoring and scorer.exists():
            if found := read_json(scorer).get("dtype"):
                scoring["dtype"] = found
        return config

    @property
    def result(self) -> dict[str, Any]:
        """What the run came to; ValueError before it has finished.

        A run of 0.1.0 with rate limits was evaluated without them, and within them beside it.
        """
        self.check_finished()
        result = read_json(self.path / RESULT)
        if within := result.pop("evaluation_shaped", None):
            result["evaluation_unlimited"] = result["evaluation"]
            result["evaluation"] = within | {"rate_limited": True}
        return result

    @property
    def judged(self) -> dict[str, Any]:
        """``result`` of a run that held an exam; ValueError where it was learned on an arm."""
        result = self.result
        if "evaluation" not in result:
            raise ValueError(
                f"{self.path} was trained on an arm: evaluate it with robo-rl deploy "
                f"{self.path / 'bundle'}; its report is {self.path / 'report.html'}"
            )
        return result

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return (self.path / RESULT).exists()

    def finish(self, result: Mapping[str, Any]) -> None:
        """Writes what the run came to, which makes it a finished one; one checkpoint is left of it,
        to go on from for more."""
        write_json(self.path / RESULT, result)
        for old in self.checkpoint_paths()[:-1]:
            shutil.rmtree(old)

    def check_finished(self) -> None:
        """ValueError where there is no result yet."""
        if not self.finished:
            raise ValueError(f"{self.path} has not finished; resume it with: {self.resume_command}")

    @property
    def resume_command(self) -> str:
        """The command that resumes the run."""
        command = "learn-on-arm" if self.config.get("learner") == "on-arm" else "train"
        return f"robo-rl {command} --resume {self.path}"

    # Metrics.
    def append(self, row: Mapping[str, float | int | str]) -> None:
        """Adds a row to metrics.csv; a column not seen before widens the file."""
        self._metrics.append(row)

    def metrics(self) -> dict[str, Array]:
        """Returns {column: (rows,)} of metrics.csv; float, nan for blanks, or str of other text."""
        return self._metrics.read()

    def spent(self) -> dict[str, float]:
        """``wall_s`` and ``processor_s`` of learning until the newest checkpoint, its last update
        and its last look counted; {} where there is none."""
        if not (paths := self.checkpoint_paths()):
            return {}
        extra = json.loads((paths[-1] / META).read_bytes())["meta"].get("extra", {})
        return {name: float(extra[name]) for name in ("wall_s", "processor_s") if name in extra}

    def drop_metrics_after(self, step: int) -> None:
        """Removes rows past ``step`` env_steps: a resumed run makes them again."""
        self._metrics.drop_after(step)
        self.evaluations.drop_after(step)

    # Checkpoints.
    def save_checkpoint(self, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint, then renames it into place; keeps the last ``KEEP``."""
        final = self._written(checkpoint, f"step_{checkpoint.step:08d}")
        for old in self.checkpoint_paths()[:-KEEP]:
            shutil.rmtree(old)
        return final

    def save_best(self, checkpoint: Checkpoint) -> Path:
        """Writes what was best so far beside the checkpoints to go on from, in place of the last
        such."""
        return self._written(checkpoint, BEST)

    def best(self) -> Checkpoint | None:
        """Returns the best checkpoint so far, None without one; CheckpointError where it is
        damaged."""
        path = self.checkpoints_path / BEST
        return load_checkpoint(path) if path.exists() else None

    def _written(self, checkpoint: Checkpoint, name: str) -> Path:
        self.checkpoints_path.mkdir(parents=True, exist_ok=True)
        for left_over in self.checkpoints_path.glob(".*"):
            shutil.rmtree(left_over)
        final = self.checkpoints_path / name
        folder = final.with_name(f".{final.name}")
        folder.mkdir()
        weights = save_safetensors({k: v.copy() for k, v in checkpoint.weights.items()})
        atomic_write(folder / WEIGHTS, weights)
        digests = {
            WEIGHTS: hashlib.sha256(weights).hexdigest(),
            STATE: write_npz(folder / STATE, checkpoint.state),
        }
        meta = {"step": checkpoint.step, "sha256": digests, "meta": checkpoint.meta}
        meta["versions"] = versions()
        write_json(folder / META, meta)
        if final.exists():  # the same step again: a run resumed and stopped at once
            shutil.rmtree(final)
        folder.rename(final)
        _sync_folder(self.checkpoints_path)
        return final

    def checkpoint_paths(self) -> list[Path]:
        """Folders of the complete checkpoints, oldest first."""
        found = [p for p in self.checkpoints_path.glob("step_*") if re.search(r"_\d+$", p.name)]
        return sorted(found, key=lambda path: int(path.name.split("_")[1]))

    def latest_checkpoint(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; None when the run has not made one.

        One that fails its checks is skipped with a warning; CheckpointError when all do.
        """
        paths = self.checkpoint_paths()
        refused: CheckpointError | None = None
        for path in reversed(paths):
            try:
                return load_checkpoint(path)
            except CheckpointError as error:
                refused = refused or error
                warnings.warn(f"skipping an unreadable checkpoint: {error}", stacklevel=2)
        if refused is not None:
            raise CheckpointError(
                f"none of the {len(paths)} checkpoints of {self.path} can be read; {refused}"
            ) from refused
        return None


def load_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in folder ``path``; CheckpointError names the file that is not as written."""
    meta_path = path / META
    try:
        meta = json.loads(meta_path.read_bytes())
        step, digests, counters = int(meta["step"]), dict(meta["sha256"]), dict(meta["meta"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{meta_path} is not a checkpoint's JSON: {error!r}") from error
    for name in (WEIGHTS, STATE):
        _verify(path / name, digests.get(name))
    return Checkpoint(
        step=step,
        weights=read_safetensors(path / WEIGHTS),
        state=read_npz(path / STATE),
        meta=counters,
        kept=(path / STATE).stat().st_size,
    )


def _verify(path: Path, digest: str | None) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if found != digest:
        raise CheckpointError(f"{path} is damaged: sha256 {found}, {META} says {digest}")


def read_safetensors(path: Path) -> dict[str, Array]:
    """Arrays of a safetensors file; CheckpointError for any other content."""
    try:
        return load_safetensors(path.read_bytes())
    except (SafetensorError, ValueError, KeyError, TypeError, struct.error) as error:
        raise CheckpointError(f"{path} is not a safetensors file: {error}") from error


def write_npz(path: Path, arrays: Mapping[str, Array]) -> str:
    """Writes ``arrays`` to a file without a copy of them in memory; its sha256."""
    with path.open("wb") as file:
        hashed = _HashingWriter(file)
        with zipfile.ZipFile(hashed, "w") as whole:
            for name, array in arrays.items():
                with whole.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return hashed.sha256.hexdigest()


class _HashingWriter:
    """Writes to ``file`` and hashes what is written; it cannot seek, so zip files are written from
    beginning to end."""

    def __init__(self, file: BinaryIO):
        self._file, self.sha256 = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def read_npz(path: Path) -> Mapping[str, Array]:
    """Arrays of an npz file, each read when it is asked for; CheckpointError for pickles, object
    arrays or any other content."""
    return _Npz(path)


# What numpy and zipfile raise for content that is none of theirs.
_NO_NPZ = (ValueError, EOFError, KeyError, RuntimeError, OSError, zipfile.BadZipFile, zlib.error)


class _Npz(Mapping[str, Array]):
    def __init__(self, path: Path):
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
            for name in self._zip.namelist():
                with self._zip.open(name) as member:
                    _check_plain(member)
        except _NO_NPZ as error:
            raise self._refused(error) from error
        # In the order in which they were written.
        self._names = dict.fromkeys(name.removesuffix(".npy") for name in self._zip.namelist())

    def _refused(self, error: Exception) -> CheckpointError:
        return CheckpointError(f"{self._path} is not an npz file of plain arrays: {error}")

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        try:
            with self._zip.open(f"{name}.npy") as member:
                return np.lib.format.read_array(member, allow_pickle=False)
        except _NO_NPZ as error:
            raise self._refused(error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _check_plain(member: IO[bytes]) -> None:
    """ValueError where a file does not begin as one of an array of plain numbers or words does."""
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        _, _, dtype = np.lib.format.read_array_header_1_0(member)
    elif version == (2, 0):
        _, _, dtype = np.lib.format.read_array_header_2_0(member)
    else:
        raise ValueError(f"unsupported array format {version}")
    if dtype.hasobject:
        raise ValueError("arrays of Python objects are not allowed")
