"""The table and cameras of arms that reach half a metre: UR5e and FR3 work at the same place."""

from __future__ import annotations

from sims.rendering.cameras import Camera
from sims.robots.robot import Workspace

BENCH = Workspace(
    table=(0.6, 0.7, 0.1),
    table_x=0.40,
    light=(0.55, 0.3, 1.4),
    shoulder_x=0.0,
    reach=(0.40, 0.51),
    sector=0.38,
    inner_reach=(0.41, 0.50),
    inner_sector=0.26,
    air_reach=(0.36, 0.58),
    air_sector=0.55,
    air_top=0.26,
    aside=(0.44, 0.20, 0.16),
    turn=0.3,
    jitter=0.04,
    span=1.1,
    front=Camera("front", pos=(0.95, 0.0, 0.44), target=(0.45, 0.0, 0.11), fovy=44.0),
    # From above at an angle: straight down, the arm would hide what it works on.
    top=Camera("top", pos=(0.80, -0.42, 0.80), target=(0.44, 0.02, 0.04), fovy=30.0),
)
