"""A local server that speaks the OpenAI protocol and answers what a test tells it to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class OpenAIServer:
    """Answers ``/v1/chat/completions`` with ``script``: one entry per request, the last for ever;
    or what it makes of the request.

    An entry is a text; or a dict with ``status`` (and ``headers``), ``sleep`` s, ``finish``,
    ``raw`` bytes in place of a protocol answer, ``drop``, and ``text``.
    """

    def __init__(self, script: list[Any] | Callable[[dict[str, Any]], Any]):
        self.script, self.requests, self.keys = script, [], []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = json.loads(body)
                server.keys.append(self.headers.get("Authorization", ""))
                server.requests.append(request)
                if callable(server.script):
                    entry = server.script(request)
                else:
                    entry = server.script[min(len(server.requests), len(server.script)) - 1]
                entry = {"text": entry} if isinstance(entry, str) else entry
                time.sleep(entry.get("sleep", 0.0))
                if entry.get("drop"):
                    return  # not a word
                status = entry.get("status", 200)
                payload = entry.get("raw")
                if payload is None:
                    payload = json.dumps(server._answer(entry, status)).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(payload)))
                    for name, value in entry.get("headers", {}).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(payload)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client did not wait

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def _answer(self, entry: dict[str, Any], status: int) -> dict[str, Any]:
        if status != 200:
            # As bad endpoints do: the error quotes the caller's key.
            return {"error": {"message": f"bad request of {self.keys[-1]}", "type": "error"}}
        text = entry.get("text", "")
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "test",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": entry.get("finish", "stop"),
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {
                "prompt_tokens": 700,
                "completion_tokens": max(1, len(text) // 4),
                "total_tokens": 700 + max(1, len(text) // 4),
            },
        }

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
