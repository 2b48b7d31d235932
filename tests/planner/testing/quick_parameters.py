"""Parameters of designs whose defaults try a hundred settings, for tests that run every design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

QUICK_PARAMETERS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "circuitflows": {"resize_tuned": {"small": [4, 16], "large": [16, 64], "early": [0.0, 400.0]}},
}
"""By system and design, as a scenario writes them."""
