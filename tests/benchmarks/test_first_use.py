"""The benchmark of first use: two fresh processes agree, and a difference is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import first_use

pytestmark = pytest.mark.slow


def test_two_fresh_processes_agree_and_a_difference_is_found(tmp_path: Path) -> None:
    first, second = (first_use.run_scenario(("traffic/abilene",), str(tmp_path)) for _ in range(2))
    first_use.check_same("traffic", first, second)
    assert first.user_s > 0
    assert first.seconds > 0
    design, (objective, headline) = next(iter(first.values.items()))
    other = replace(second, values={**second.values, design: (0.5 * (objective or 1.0), headline)})
    with pytest.raises(AssertionError, match="traffic, optimum"):
        first_use.check_same("traffic", first, other)
