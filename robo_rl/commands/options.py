"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import tyro

Json = Annotated[bool, tyro.conf.arg(name="json")]  # of a field that cannot be named so
