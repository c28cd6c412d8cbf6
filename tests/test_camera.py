"""A camera's pictures are as old as it says, whoever looks how seldom: over a real connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cv2
import numpy as np
import pytest

from real_robot.perception.camera import VideoDevice

BITS, SIDE = 12, 16  # px, of a square that shows one bit of the picture's number


@pytest.fixture
def stream() -> Iterator[tuple[str, dict[int, float]]]:
    """A network camera of 30 pictures a second: its address, {number of a picture: s, when sent}.

    Its pictures show their number.
    """
    sent: dict[int, float] = {}

    class Camera(BaseHTTPRequestHandler):
        def log_message(self, *what: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=next")
            self.end_headers()
            begun = time.monotonic()
            try:
                for number in range(1 << BITS):
                    bits = number >> np.arange(BITS) & 1
                    image = np.tile(np.repeat(255 * bits, SIDE), (48, 1)).astype(np.uint8)
                    data = cv2.imencode(".jpg", cv2.merge([image] * 3))[1].tobytes()
                    sent[number] = time.monotonic()
                    head = f"--next\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}"
                    self.wfile.write(head.encode() + b"\r\n\r\n" + data + b"\r\n")
                    time.sleep(max(0.0, begun + number / 30 - time.monotonic()))
            except OSError:
                pass  # the client has closed the stream

    server = ThreadingHTTPServer(("127.0.0.1", 0), Camera)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/video.mjpg", sent
    server.shutdown()


@pytest.mark.fault(66)
def test_slow_reader_gets_the_newest_frame_and_its_time(
    stream: tuple[str, dict[int, float]], took: Callable[[float, str], None]
) -> None:
    address, sent = stream
    oldest = 0.0
    camera = VideoDevice(address, BITS * SIDE, 48)
    for _ in range(5):
        time.sleep(0.3)
        frame = camera.read()
        bits = frame.image[24, SIDE // 2 :: SIDE, 0] > 127
        number = int((bits << np.arange(BITS)).sum())
        assert max(sent) - number < 15  # it was 35 behind at the end, and more later
        assert -0.3 < frame.t - sent[number] < 0.8
        oldest = max(oldest, time.monotonic() - sent[number])
    took(oldest, "age of the oldest that was looked at")
    camera.close()


def test_video_file_is_read_frame_by_frame(tmp_path: object) -> None:
    file = str(tmp_path / "film.avi")
    film = cv2.VideoWriter(file, cv2.VideoWriter_fourcc(*"MJPG"), 30.0, (64, 48))
    for level in range(0, 250, 25):
        film.write(np.full((48, 64, 3), level, np.uint8))
    film.release()
    camera = VideoDevice(file, 64, 48)
    seen = [int(camera.read().image.mean().round(-1)) for _ in range(10)]
    assert seen == sorted(set(seen))
    with pytest.raises(OSError, match="no more pictures"):
        camera.read()


@pytest.fixture
def still_stream() -> Iterator[str]:
    """A network camera that repeats one picture: the address."""

    class Camera(BaseHTTPRequestHandler):
        def log_message(self, *what: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=next")
            self.end_headers()
            image = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
            data = cv2.imencode(".jpg", image)[1].tobytes()
            head = f"--next\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}"
            try:
                while True:
                    self.wfile.write(head.encode() + b"\r\n\r\n" + data + b"\r\n")
                    time.sleep(1 / 30)
            except OSError:
                pass  # the client has closed the stream

    server = ThreadingHTTPServer(("127.0.0.1", 0), Camera)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/video.mjpg"
    server.shutdown()


def test_camera_that_repeats_one_picture_has_failed(still_stream: str) -> None:
    camera = VideoDevice(still_stream, 64, 48)
    camera.read()
    begun = time.monotonic()
    with pytest.raises(OSError, match="the camera has repeated one picture for 2"):
        while time.monotonic() - begun < 10.0:
            camera.read()
    assert time.monotonic() - begun > 1.5
    camera.close()
