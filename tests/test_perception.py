"""Simulated perception: as noisy, late and forgetful as it was told to be, and reproducible."""

from __future__ import annotations

import numpy as np
import pytest

from real_robot import SimPerception, VirtualClock

HOME = np.array([0.1, 0.2, 0.3])
LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def world(clock: VirtualClock) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """A cube that moves 1 m/s along x."""
    return {"cube": (HOME + [clock.now_ns() * 1e-9, 0, 0], LEVEL)}


def frames(clock: VirtualClock, eyes: SimPerception, n: int, dt: float = 0.05) -> list:
    out = []
    for _ in range(n):
        out.append(eyes.read())
        clock.advance(dt)
    return out


def test_perception_without_noise_is_exact_and_current() -> None:
    clock = VirtualClock(5.0)
    pose = SimPerception(lambda: world(clock), clock).read()["cube"]
    np.testing.assert_allclose(pose.pos, HOME + [5, 0, 0])
    np.testing.assert_allclose(pose.quat, LEVEL)
    assert pose.t == pytest.approx(5.0)


def test_perception_latency_delays_poses_with_timestamps() -> None:
    clock = VirtualClock()
    seen = frames(clock, SimPerception(lambda: world(clock), clock, latency=0.1), 5)
    assert seen[0] == {} and seen[1] == {}
    for k in (2, 3, 4):
        assert seen[k]["cube"].t == pytest.approx(0.05 * k - 0.1)
        assert seen[k]["cube"].pos[0] == pytest.approx(0.1 + seen[k]["cube"].t)


def test_perception_dropouts_age_poses() -> None:
    clock = VirtualClock()
    seen = frames(clock, SimPerception(lambda: world(clock), clock, dropout=0.5, seed=1), 200)
    ages = np.array([0.05 * k - s["cube"].t for k, s in enumerate(seen) if s])
    fresh = (ages < 1e-6).mean()
    assert 0.4 < fresh < 0.6 and ages.max() > 0.1


def test_perception_bias_is_constant_per_object() -> None:
    clock = VirtualClock()
    truth = {"cube": (HOME, LEVEL), "ball": (HOME + 0.1, LEVEL)}

    def off(seed: int) -> dict[str, np.ndarray]:
        eyes = SimPerception(lambda: truth, clock, bias=0.003, seed=seed)
        first, later = frames(clock, eyes, 2)
        for name, pose in first.items():
            np.testing.assert_array_equal(pose.pos, later[name].pos)
        return {name: pose.pos - truth[name][0] for name, pose in first.items()}

    one, again, other = off(1), off(1), off(2)
    for seen in (one, other):
        assert [np.linalg.norm(x) for x in seen.values()] == pytest.approx([0.003, 0.003])
    assert not np.allclose(one["cube"], one["ball"]) and not np.allclose(one["cube"], other["cube"])
    np.testing.assert_array_equal(one["cube"], again["cube"])


def test_perception_noise_has_its_size_and_seed() -> None:
    clock = VirtualClock()
    eyes = SimPerception(
        lambda: {"cube": (HOME, LEVEL)}, clock, noise=0.003, angle_noise=0.05, seed=2
    )
    poses = [frame["cube"] for frame in frames(clock, eyes, 600)]
    pos, quat = np.array([p.pos for p in poses]), np.array([p.quat for p in poses])
    np.testing.assert_allclose(pos.std(axis=0), 0.003, rtol=0.15)
    np.testing.assert_allclose(np.linalg.norm(quat, axis=1), 1.0)
    turn = 2 * np.arccos(np.clip(np.abs(quat[:, 0]), 0, 1))
    assert np.sqrt((turn**2).mean()) == pytest.approx(0.05, rel=0.15)
    again = SimPerception(
        lambda: {"cube": (HOME, LEVEL)}, clock, noise=0.003, angle_noise=0.05, seed=2
    )
    np.testing.assert_array_equal(again.read()["cube"].pos, pos[0])
