"""Renders one frame and prints which OpenGL did; ends with 1 and the reason where none can."""

from __future__ import annotations

import sys

from sims.rendering.cameras import RenderError, working_gl_backend
from sims.utils.versions import noted

if __name__ == "__main__":
    try:
        backend = working_gl_backend()
    except RenderError as error:
        sys.exit(str(error))
    print(f"{backend}: {noted.get('opengl', 'renderer unknown')}")
