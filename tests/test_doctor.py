"""`robo-rl doctor`: what is broken is found, with its remedy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from robo_rl.cli import main
from robo_rl.commands import doctor

Said = pytest.CaptureFixture[str]


def test_a_working_machine_passes(tmp_path: Path, capsys: Said) -> None:
    status = main(["doctor", "--runs", str(tmp_path / "runs"), "--json"])
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["OpenGL"]["state"] == "ok" and found["OpenGL"]["found"].startswith(("egl", "os"))
    assert {"threads", "CUDA", "serial ports", "runs folder", "temporary folder"} <= set(found)
    assert status == any(one["state"] == "broken" for one in found.values())
    assert all(one["remedy"] for one in found.values() if one["state"] != "ok")
    assert not (tmp_path / "runs").exists()


def test_a_backend_that_gives_no_context_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "broken" in said and "no OpenGL backend works" in said and "apt install" in said


def test_a_port_that_cannot_be_opened_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ttyUSB0").symlink_to(tmp_path / "gone")
    reader, writer = os.openpty()
    (tmp_path / "ttyUSB1").symlink_to(os.ttyname(writer))
    monkeypatch.setattr(doctor, "PORTS", (f"{tmp_path}/ttyUSB*",))
    broken, fine = doctor._serial_ports()
    os.close(reader), os.close(writer)
    assert broken.state == "broken" and "sudo usermod -aG dialout" in broken.remedy
    assert fine.state == "ok" and "ttyUSB1" in fine.found


def test_a_full_disk_and_a_folder_that_cannot_be_written_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (found,) = doctor._folder("runs folder", tmp_path / "file" / "runs")
    assert found.state == "broken" and "not writable" in found.found
    monkeypatch.setattr(doctor, "SCARCE", 1e18)
    (found,) = doctor._folder("runs folder", tmp_path)
    assert found.state == "note" and found.remedy
    monkeypatch.setattr(doctor, "SPACE", 1e18)
    (found,) = doctor._folder("runs folder", tmp_path)
    assert found.state == "broken" and "runs prune" in found.remedy


def test_a_core_limit_that_is_no_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBO_RL_CORES", "many")
    (found,) = doctor._threads()
    assert found.state == "broken" and "unset ROBO_RL_CORES" in found.remedy
