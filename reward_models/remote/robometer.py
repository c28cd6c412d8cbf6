"""Robometer's evaluation server over HTTP: progress and success by frame, and the better film.

The protocol as its source has it (github.com/robometer/robometer, robometer/evals/eval_server.py at
c7f38e2): GET ``/health`` and ``/model_info``; POST ``/evaluate_batch_npy``, a form whose fields
``sample_0``, ... are JSON and whose files are the frames as .npy. The JSON twin ``/evaluate_batch``
is not used: the server's own type of a trajectory takes frames as a list of strings or as an array,
so frames in JSON are refused there. Nothing of theirs is copied here.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from reward_models.remote.cache import Cache
from reward_models.remote.questions import FIRST, SECOND, TIE
from reward_models.remote.transport import (
    Budget,
    Endpoint,
    ModelError,
    RetryableError,
    http_error,
    with_retries,
)
from reward_models.remote.vlm_judge import JudgeAnswer

Array = np.ndarray
Read = TypeVar("Read")


@dataclass
class Robometer:
    """Asks a server at ``endpoint.base_url``; ModelError says what it did not do."""

    endpoint: Endpoint
    budget: Budget  # of calls: the server says no tokens
    cache: Cache | None = None
    steps: bool = False  # each frame judged from those up to it, as many passes as frames
    tie: float = 0.0  # a chance so near to 1/2 is a tie

    @cached_property
    def name(self) -> str:
        """The name of the judge, with the server's model."""
        return f"robometer:{self.model_info()['model_path']}"

    def health(self) -> dict[str, Any]:
        """Returns the server's report.

        Raises:
            ModelError: The server is not healthy.
        """
        found = self._json("/health")
        if found.get("status") != "healthy":
            raise ModelError(f"{self.endpoint.model} is not healthy: {str(found)[:80]}")
        return found

    def model_info(self) -> dict[str, Any]:
        """Returns the server's model: ``model_path`` and more.

        Raises:
            ModelError: The answer has no ``model_path``.
        """
        found = self._json("/model_info")
        if not isinstance(found.get("model_path"), str):
            raise self._odd("/model_info", "model_path, a text", found)
        return found

    def compare(self, first: Array, second: Array, goal: str) -> JudgeAnswer:
        """Compares two films (k, H, W, 3) uint8; see ``VideoJudge``.

        The request calls the first film the chosen one. The server returns the chance that it is,
        and says whether it showed it second, in which case the chance is turned round.

        Returns:
            An answer whose ``value`` is FIRST, SECOND or TIE.
        """
        sample = {"sample_type": "preference"}
        films = {"chosen_trajectory": first, "rejected_trajectory": second}

        def chance_of(told: dict[str, Any]) -> float:
            found = told.get("outputs_preference") or {}
            [chance] = self._numbers(found, "prediction_probs", 1, found.get("prediction_probs"))
            [label] = self._numbers(found, "preference_labels", 1, found.get("preference_labels"))
            return chance if label == 1 else 1 - chance

        chance = self._evaluate(sample, films, goal, chance_of)
        if abs(chance - 0.5) <= self.tie:
            return JudgeAnswer(TIE)
        return JudgeAnswer(FIRST if chance > 0.5 else SECOND)

    def rate(self, frames: Array, goal: str) -> JudgeAnswer:
        """Rates a film (k, H, W, 3) uint8 by the progress at its end; see ``VideoJudge``."""
        return JudgeAnswer(float(self.progress(frames, goal).value[-1]))

    def progress(self, frames: Array, goal: str) -> JudgeAnswer:
        """Returns the progress (k,) of frames (k, H, W, 3) uint8, and ``success_prob`` (k,) where
        the model has such a head; see ``VideoJudge``."""

        def shares(told: dict[str, Any]) -> dict[str, Array]:
            read = {}
            for name, group, key in (
                ("progress", "outputs_progress", "progress_pred"),
                ("success_prob", "outputs_success", "success_probs"),
            ):
                films = (told.get(group) or {}).get(key)
                if films is None and name == "success_prob":
                    continue
                one = films[0] if isinstance(films, list) and len(films) == 1 else films
                if self.steps and len(frames) == 1 and isinstance(one, list):
                    one = one[-1:]  # the server does not take the last of a film of one frame
                read[name] = np.clip(self._numbers(told, key, len(frames), one), 0.0, 1.0)
            return read

        asked = {"sample_type": "progress"}, {"trajectory": frames}
        read = self._evaluate(*asked, goal, shares)
        return JudgeAnswer(read.pop("progress"), more=read)

    def _evaluate(
        self,
        sample: dict[str, Any],
        films: dict[str, Array],
        goal: str,
        read: Callable[[dict[str, Any]], Read],
    ) -> Read:
        """What ``read`` reads in the server's answer about one sample, from the cache if it was
        asked before."""
        content = hashlib.sha256(json.dumps([self.name, goal, self.steps, *films]).encode())
        for film in films.values():
            content.update(str(film.shape).encode() + np.ascontiguousarray(film).tobytes())
        key = content.hexdigest()

        def attempt() -> Any:
            self.budget.hold()
            try:
                return self._once("/evaluate_batch_npy", _form(sample, films, goal, self.steps))
            finally:
                self.budget.settle((0, 0.0), (0, 0.0))

        if self.cache is None:
            return read(with_retries(attempt, self.endpoint))
        with self.cache.only_one(key):
            if (kept := self.cache.get(key)) is not None:
                with contextlib.suppress(ModelError):  # it is asked again
                    return read(kept)
            said = with_retries(attempt, self.endpoint)
            found = read(said)  # what cannot be read is not kept: the next answer may be better
            self.cache.put(key, said)
        return found

    def _json(self, path: str) -> dict[str, Any]:
        return with_retries(lambda: self._once(path), self.endpoint)

    def _once(self, path: str, form: tuple[str, bytes] | None = None) -> dict[str, Any]:
        """A JSON object from the server."""
        e = self.endpoint
        request = urllib.request.Request(e.base_url.rstrip("/") + path)
        if form is not None:
            request.add_header("Content-Type", form[0])
            request.data = form[1]
        try:
            with urllib.request.urlopen(request, timeout=e.seconds) as answer:
                found = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            found = http_error(error.code, error.headers.get("Retry-After"))
            if isinstance(found, RetryableError):
                raise found from None
            raise ModelError(f"{e.model}{path} did not answer: {found}") from None
        except TimeoutError:
            raise RetryableError(f"no answer within {e.seconds:g} s") from None
        except (OSError, http.client.HTTPException):
            raise RetryableError("cannot connect") from None
        except ValueError:
            raise RetryableError("the answer is not JSON") from None
        if not isinstance(found, dict):
            raise self._odd(path, "an object", found)
        return found

    def _numbers(self, found: Any, name: str, count: int, values: Any) -> Array:
        """``count`` finite numbers; ModelError for anything else."""
        try:
            numbers = np.asarray(values, float).reshape(-1)
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if len(numbers) != count or not np.isfinite(numbers).all():
            raise self._odd("/evaluate_batch_npy", f"{name}, {count} numbers", found)
        return numbers

    def _odd(self, path: str, wanted: str, got: Any) -> ModelError:
        return ModelError(f"{self.endpoint.model}{path}: expected {wanted}, got {str(got)[:120]}")


def _form(
    sample: dict[str, Any], films: dict[str, Array], goal: str, steps: bool
) -> tuple[str, bytes]:
    """(content type, body) of a form with one sample, whose frames are files."""
    boundary, body = uuid.uuid4().hex, io.BytesIO()

    def part(name: str, more: str, content: bytes) -> None:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
        body.write(head.encode() + content + b"\r\n")

    told = dict(sample)
    for key, film in films.items():
        file, frames = f"sample_0_{key}_frames", io.BytesIO()
        np.save(frames, np.ascontiguousarray(film, np.uint8), allow_pickle=False)
        told[key] = {
            "frames": {"__numpy_file__": file},
            "frames_shape": list(film.shape),
            "task": goal,
            "id": "0",
            "metadata": {"subsequence_length": len(film)},
            "video_embeddings": None,
        }
        more = f'; filename="{file}.npy"\r\nContent-Type: application/octet-stream'
        part(file, more, frames.getvalue())
    part("sample_0", "", json.dumps(told).encode())
    part("use_frame_steps", "", b"true" if steps else b"false")
    body.write(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", body.getvalue()
