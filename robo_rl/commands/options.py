"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import tyro

Json = Annotated[bool, tyro.conf.arg(name="json")]  # `--json`, of a field that is not named so
