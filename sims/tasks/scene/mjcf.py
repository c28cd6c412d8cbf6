"""Somebody's MJCF, read as data: bodies, geoms and joints, and nothing that could do anything else.

What stays is a short list of elements; physics settings, lights, cameras and the floor are the
arm's table's and are left out; whatever else MJCF knows (plugins, includes, actuators, ...) is
refused. Files are those beside the XML, in memory: MuJoCo is never given a path.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

KEPT = frozenset(
    "mujoco compiler default asset mesh texture material worldbody body frame geom site joint "
    "freejoint contact exclude".split()
)
LEFT_OUT = frozenset("option visual statistic size custom keyframe sensor light camera".split())
COMPILER = frozenset({"angle", "eulerseq", "autolimits", "meshdir", "texturedir", "assetdir"})
FILES = {"mesh": (".obj", ".stl"), "texture": (".png",)}
MOST_TEXT, MOST_FILES = 1 << 18, 1 << 22  # bytes of the XML or its card, of all other files
MOST_ELEMENTS, DEEPEST = 1_000, 40
MOST_PIXELS = 2_048  # of a side of a texture


class SceneError(ValueError):
    """A scene's file that cannot be used; the message names the file and the entry."""


def packed_scene(scene: str) -> str:
    """``pack_scene`` of a path; the text of a scene as it is; "" of none."""
    return scene if not scene or scene.startswith("{") else pack_scene(Path(scene))


def scene_label(scene: str) -> str:
    """What a record calls the text of a scene: ``kitchen.xml (sha256 0123456789ab)``."""
    digest = hashlib.sha256(scene.encode()).hexdigest()[:12]
    return f"{unpack_scene(scene)['name']} (sha256 {digest})"


def pack_scene(path: Path) -> str:
    """The scene of FILE.xml, its card FILE.toml and the files that the XML names, as one text:
    JSON ``{"name", "xml", "card", "files": {path: base64}}``. SceneError where it cannot be used.
    """
    card = path.with_suffix(".toml")
    for file, what in ((path, "the scene"), (card, "its card")):
        if not file.is_file():
            raise SceneError(f"{file}: no such file; expected {what}")
        if file.stat().st_size > MOST_TEXT:
            raise SceneError(f"{file}: expected at most {MOST_TEXT:,} bytes of text")
    try:
        texts = [file.read_text("utf-8") for file in (path, card)]
    except UnicodeDecodeError as error:
        raise SceneError(f"{path} and {card.name} must be text in UTF-8: {error}") from None
    folder, files, total = path.resolve().parent, {}, 0
    for name in named_files(path.name, parse_mjcf(path.name, texts[0])):
        file = (folder / name).resolve()
        if not file.is_relative_to(folder):
            raise SceneError(f"{path.name}: file {name!r} is outside the scene's folder")
        if not file.is_file():
            raise SceneError(f"{path.name}: cannot find file {name!r} in the scene's folder")
        total += file.stat().st_size
        if total > MOST_FILES:
            raise SceneError(
                f"{path.name}: expected at most {MOST_FILES:,} bytes for all of its files"
            )
        files[name] = base64.b64encode(file.read_bytes()).decode()
    whole = {"name": path.name, "xml": texts[0], "card": texts[1], "files": files}
    return json.dumps(whole, sort_keys=True)


def unpack_scene(text: str) -> dict[str, Any]:
    """What ``pack_scene`` made; SceneError for any other text."""
    try:
        whole = json.loads(text)
        strings = [whole["name"], whole["xml"], whole["card"], *whole["files"].values()]
        assert all(isinstance(one, str) for one in strings)
        whole["files"] = {k: base64.b64decode(v, validate=True) for k, v in whole["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise SceneError(f"not a serialised scene, {error!r}: {text[:60]!r}") from None
    return whole


def parse_mjcf(name: str, xml: str) -> ET.Element:
    """The elements of an MJCF that may stay; SceneError names what may not."""
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", xml, re.IGNORECASE):
        raise SceneError(f"{name}: a scene must not declare a document type or entities")
    try:
        root = ET.fromstring(xml)
    except ET.ParseError as error:
        raise SceneError(f"{name} is not XML: {error}") from None
    if root.tag != "mujoco":
        raise SceneError(f"{name}: expected MJCF, <mujoco>, got <{root.tag}>")
    level, count, deep = [root], 0, 0
    while level:
        count, deep = count + len(level), deep + 1
        level = [child for element in level for child in element]
    if count > MOST_ELEMENTS or deep > DEEPEST:
        raise SceneError(
            f"{name}: expected at most {MOST_ELEMENTS} elements, {DEEPEST} deep; got {count}, "
            f"{deep} deep"
        )
    _pruned(name, root)
    return root


def element_text(element: ET.Element) -> str:
    """An element as a message names it: ``<geom name="lid">``."""
    name = element.get("name")
    return f'<{element.tag} name="{name}">' if name else f"<{element.tag}>"


def _pruned(name: str, element: ET.Element) -> None:
    """Takes out of ``element`` what is left out, and refuses what is not kept."""
    for child in list(element):
        floor = element.tag == "worldbody" and child.get("type") == "plane"
        if child.tag in LEFT_OUT or (child.tag == "geom" and floor):
            element.remove(child)
            continue
        if child.tag not in KEPT or not isinstance(child.tag, str):
            raise SceneError(
                f"{name}: {element_text(child)} cannot be in a scene; expected bodies with "
                f"geoms, joints "
                f"and sites, defaults and assets ({', '.join(sorted(KEPT))})"
            )
        _attributes(name, child)
        _pruned(name, child)


def _attributes(name: str, element: ET.Element) -> None:
    for key in element.keys():
        if element.tag == "compiler" and key not in COMPILER:
            del element.attrib[key]
        elif key == "plugin" or (key.startswith("file") and key != "file"):
            raise SceneError(f"{name}: {element_text(element)} cannot have {key!r} in a scene")
    if "file" in element.keys():
        kinds = FILES.get(element.tag, ())
        if not element.get("file", "").lower().endswith(kinds or ("\0",)):
            expected = f"a file that ends in {' or '.join(kinds)}" if kinds else "no file"
            raise SceneError(
                f"{name}: {element_text(element)} must have {expected}, got {element.get('file')!r}"
            )
    if element.tag == "mesh" and "builtin" in element.keys():
        raise SceneError(f"{name}: {element_text(element)} must be a file or vertices")
    for side in ("width", "height") if element.tag == "texture" else ():
        pixels = element.get(side, "1")
        if not (pixels.isdecimal() and int(pixels) <= MOST_PIXELS):
            raise SceneError(
                f"{name}: {element_text(element)} must have a {side} of at most {MOST_PIXELS}"
            )


def named_files(name: str, root: ET.Element) -> list[str]:
    """Returns the files that a scene names, as paths relative to its folder.

    The elements of ``root`` are given these paths, and the compiler's folders are removed.

    Args:
        name: the scene's name, for errors.
        root: the scene's XML, which is changed.

    Raises:
        SceneError: a file is outside the scene's folder.
    """
    folders = {"mesh": "", "texture": ""}
    for compiler in root.iter("compiler"):
        both = compiler.attrib.pop("assetdir", "")
        for kind in folders:
            folders[kind] = compiler.attrib.pop(f"{kind}dir", "") or both or folders[kind]
    found: dict[str, None] = {}
    for element in root.iter():
        if "file" not in element.keys():
            continue
        path = Path(folders[element.tag]) / element.get("file", "")
        if path.is_absolute() or ".." in path.parts:
            raise SceneError(
                f"{name}: {element_text(element)} must be a file in the folder of the scene or "
                f"below, "
                f"got {str(path)!r}"
            )
        if not element.get("name"):
            element.set("name", path.stem)
        element.set("file", path.as_posix())
        found[path.as_posix()] = None
    return list(found)


def check_textures(name: str, files: dict[str, bytes]) -> None:
    """SceneError for a picture that is none, or that would fill the memory."""
    for path, data in files.items():
        if not path.lower().endswith(".png"):
            continue
        if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) < 24:
            raise SceneError(f"{name}: {path!r} is not a PNG")
        if max(struct.unpack(">II", data[16:24])) > MOST_PIXELS:
            raise SceneError(f"{name}: {path!r} must be at most {MOST_PIXELS} pixels wide and high")
