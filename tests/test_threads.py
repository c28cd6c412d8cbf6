"""How many cores a program takes, and what it says of a wrong wish."""

from __future__ import annotations

import pytest

from robo_rl.runtime.threads import CORES, cores


def test_cores_follow_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CORES, raising=False)
    assert cores() >= 1
    monkeypatch.setenv(CORES, "3")
    assert cores() == 3
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv(CORES, wrong)
        with pytest.raises(
            ValueError, match=f"{CORES} must be a whole number from 1, got '{wrong}'"
        ):
            cores()
