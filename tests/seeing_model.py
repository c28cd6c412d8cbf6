"""What a model answers that sees how light a picture is, takes that for progress, and is right.

`python tests/seeing_model.py` serves one that sees what the embedded CLIP sees, for trying commands
without a model: it prints its address, and shows that a wire works, not what a model is worth.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

Worth = Callable[[np.ndarray, str], float]  # of a picture (H, W, 3) for a goal's sentence


def light(picture: np.ndarray, goal: str) -> float:
    """From 0 to 1."""
    del goal
    return float(picture.mean()) / 250


def film(*shades: float, side: int = 16) -> np.ndarray:
    """Frames of so much light, from 0 to 1."""
    rng = np.random.default_rng([round(1e6 * shade) for shade in shades])
    grain = rng.integers(-3, 4, (len(shades), side, side, 3))
    return (250 * np.array(shades).reshape(-1, 1, 1, 1) + grain).clip(0, 255).astype(np.uint8)


def shades(request: dict[str, Any], worth: Worth = light) -> list[float]:
    """What each picture of a request is worth."""
    found = []
    goal = re.search(r"goal[^:\n]*: (.*)", words(request))
    assert goal is not None
    for message in request["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else []:
            if part["type"] == "image_url":
                data = part["image_url"]["url"].removeprefix("data:image/png;base64,")
                picture = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), 1)
                found.append(worth(picture[..., ::-1], goal[1].strip()))
    return found


def words(request: dict[str, Any]) -> str:
    content = request["messages"][0]["content"]
    return content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content)


def seeing(request: dict[str, Any], worth: Worth = light) -> str:
    """What a model answers that sees what a picture is worth, and is right."""
    seen, text = shades(request, worth), words(request)
    if "two short films" in text and seen:
        half = len(seen) // 2
        return f"Film 1 ends at {seen[half - 1]:.6f}, film 2 at {seen[-1]:.6f}."
    if "Two short films" in text:
        one, two = map(float, re.findall(r"at (\d\.\d+)", text))
        gap = one - two
        return f"ANSWER: {'tie' if abs(gap) < 0.002 else 1 if gap > 0 else 2}"
    if "Rate how far" in text:
        return f"It is light.\nANSWER: {1 + round(4 * min(seen[-1], 1.0))}"
    percent = ", ".join(str(min(100, round(100 * s))) for s in seen[1:])
    return f"One by one.\nANSWER: {percent}"


def by_clip() -> Worth:
    """What the embedded CLIP's likeness to the sentence is worth, from 0 to 1."""
    from reward_models.vision.encoders import EmbeddedClip

    encoder, lock = EmbeddedClip(), threading.Lock()

    def worth(picture: np.ndarray, goal: str) -> float:
        with lock:
            [row] = encoder.encode(np.ascontiguousarray(picture)[None])
            return float((1 + row @ encoder.encode_texts((goal,))[0]) / 2)

    return worth


if __name__ == "__main__":
    from openai_server import OpenAIServer

    clip = by_clip()
    with OpenAIServer(lambda request: seeing(request, clip)) as server:
        print(f"--model.base-url {server.url} --model.key-variable ''", flush=True)
        threading.Event().wait()
