"""`robo-rl fetch clip`: a file is downloaded once; without a network one line says so at once."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import open_clip
import pytest

from robo_rl.cli import main

Said = pytest.CaptureFixture[str]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    """Serves weights.pt, which open_clip's RN50 knows as the tags ``here`` and ``gone``."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "weights.pt").write_bytes(b"weights")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        known = open_clip.pretrained._PRETRAINED["RN50"]
        where = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setitem(known, "here", {"url": f"{where}/weights.pt"})
        monkeypatch.setitem(known, "gone", {"url": f"{where}/other.pt"})
        monkeypatch.setenv("HOME", str(tmp_path))
        yield server
        server.shutdown()


def test_weights_are_downloaded_once(
    server: ThreadingHTTPServer, tmp_path: Path, capsys: Said
) -> None:
    assert main(["fetch", "clip", "RN50:here", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"path": str(tmp_path / ".cache/clip/weights.pt"), "bytes": 7}
    server.shutdown()
    assert main(["fetch", "clip", "RN50:here"]) == 0
    assert "--clip.encoder RN50:here" in capsys.readouterr().out


def test_a_file_that_the_server_has_not_is_one_line(
    server: ThreadingHTTPServer, capsys: Said
) -> None:
    assert main(["fetch", "clip", "RN50:gone"]) == 1
    assert "cannot download" in capsys.readouterr().err


def test_without_a_network_it_fails_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/weights.pt"
        monkeypatch.setitem(open_clip.pretrained._PRETRAINED["RN50"], "here", {"url": url})
        assert main(["fetch", "clip", "RN50:here"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot reach 127.0.0.1" in line and "--clip.encoder RN50:FILE" in line


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("RN50", "expected MODEL:PRETRAINED"),
        ("RN51:openai", "unknown open_clip model 'RN51'"),
        ("RN50:mine", "unknown weights 'mine' for RN50; available: openai"),
    ],
)
def test_an_unknown_model_is_one_line(model: str, said: str, capsys: Said) -> None:
    assert main(["fetch", "clip", model]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
