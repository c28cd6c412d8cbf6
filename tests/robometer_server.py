"""A local server with Robometer's protocol as its source has it.

Its model is the mean of a frame: progress is how light it is.
"""

from __future__ import annotations

import email
import email.policy
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


class RobometerServer:
    """``/health``, ``/model_info``, ``/evaluate_batch_npy``; ``script`` has a status for each of
    the first evaluations, or what is answered in place of one."""

    def __init__(self, script: list[Any] | None = None, heads: tuple[str, ...] = ("success",)):
        self.script, self.heads, self.asked = list(script or []), heads, []
        self.headers: dict[str, str] = {}
        self.status = "healthy"
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = {
                    "/health": {"status": server.status, "available_gpus": 1, "total_gpus": 1},
                    "/model_info": {"model_path": "light/Meter-1", "num_gpus": 1},
                }
                found = known.get(self.path)
                self.answer(404 if found is None else 200, found or {"detail": "Not Found"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path != "/evaluate_batch_npy":
                    return self.answer(404, {"detail": "Not Found"})
                samples, steps = read_form(self.headers["Content-Type"], body)
                server.asked.append((samples, steps))
                entry = server.script.pop(0) if server.script else None
                if isinstance(entry, int):
                    return self.answer(entry, {"detail": "no"})
                self.answer(200, entry if entry is not None else server.evaluate(samples, steps))

            def answer(self, status: int, found: Any) -> None:
                payload = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def evaluate(self, samples: list[dict[str, Any]], steps: bool) -> dict[str, Any]:
        found: dict[str, Any] = dict.fromkeys(
            ("outputs_preference", "outputs_progress", "outputs_success")
        )
        for sample in samples:
            if sample["sample_type"] == "preference":
                first, second = (
                    light(sample[f"{side}_trajectory"]["frames"])[-1]
                    for side in ("chosen", "rejected")
                )
                chance = 1 / (1 + np.exp(10 * (second - first)))
                found["outputs_preference"] = {
                    "predictions": [int(chance > 0.5)],
                    "prediction_probs": [float(chance)],
                    "preference_labels": [1],
                }
                continue
            progress = light(sample["trajectory"]["frames"]).tolist()
            if steps and len(progress) == 1:
                progress = 4 * progress  # as theirs: of a film of one frame, which it repeats
            found["outputs_progress"] = {"progress_pred": [progress]}
            if "success" in self.heads:
                success = [float(p > 0.9) for p in progress]
                found["outputs_success"] = {"success_probs": [success]}
        return found

    def __enter__(self) -> RobometerServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def light(frames: np.ndarray) -> np.ndarray:
    """(k,) from 0 to 1."""
    assert frames.dtype == np.uint8 and frames.ndim == 4
    return frames.mean(axis=(1, 2, 3)) / 255


def read_form(content_type: str, body: bytes) -> tuple[list[dict[str, Any]], bool]:
    """(samples with their arrays, use_frame_steps) of a form, as theirs reads it."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    form = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    arrays, fields = {}, {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if (file := part.get_filename()) is not None:
            assert file.endswith(".npy")
            arrays[name] = np.load(io.BytesIO(content), allow_pickle=False)
        else:
            fields[name] = json.loads(content)
    steps = bool(fields.pop("use_frame_steps", False))
    samples = [fields[f"sample_{number}"] for number in range(len(fields))]
    for sample in samples:
        for trajectory in (value for value in sample.values() if isinstance(value, dict)):
            trajectory["frames"] = arrays[trajectory["frames"]["__numpy_file__"]]
            assert list(trajectory["frames"].shape) == trajectory["frames_shape"]
    return samples, steps
