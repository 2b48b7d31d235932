"""Results of the papers stay reproduced: the verdicts of every target, run quickly and once.

A change that moves a count moves it in `data/reproduction/values.csv` too
(python -m benchmarks.verdicts --quick), where it is seen. Where a quick run is too short, values of full
runs ship. What a system expects of its targets besides is
in `tests/models/<system>/expected.py`.
"""

from __future__ import annotations

import pytest

from planner.runs import reproduction
from planner.runs.reproduction import Verdict
from planner.runs.shipped_verdicts import load_shipped
from tests.models.brokering import expected as brokering
from tests.models.livevideo import expected as livevideo
from tests.models.multicast import expected as multicast

EXPECTED = {**brokering.EXPECTED, **livevideo.EXPECTED, **multicast.EXPECTED}
HELD = load_shipped()
LONG = (
    "analytics/top_100",
    "brokering/figure_3_18",
    "brokering/table_3_3",
    "circuitflows/figure_2_11",
    "circuitflows/table_2_2",
    "brokering/savings",
    "livevideo/figure_4_5",
    "livevideo/figure_4_12",
    "livevideo/figure_4_13",
    "livevideo/figure_4_14",
    "livevideo/figure_4_16",
    "livevideo/figure_4_17",
    "livevideo/table_4_3",
    "livevideo/table_4_4",
    "livevideo/table_4_5",
    "livevideo/figure_4_11",
    "livevideo/figure_4_15",
    "circuitflows/figures_2_20_to_2_23",
    "multicast/figure_5a",
    "multicast/figure_5c",
    "multicast/figure_6",
)
"""Targets whose quick run takes three seconds and more; each of their systems has others."""
UNJUDGED = ("not covered", "not available", "no number to compare")
TARGETS = {f"{system.name}/{target.name}": (system, target) for system, target in reproduction.find_targets()}


def test_every_target_is_held() -> None:
    assert sorted(HELD) == sorted(TARGETS)
    assert set(EXPECTED) <= set(TARGETS)


def test_a_value_that_differs_has_a_reason() -> None:
    rows = [(name, row) for name, held in HELD.items() for row in held.reproduction.rows]
    differing = [(name, row) for name, row in rows if row.verdict is Verdict.NOT_REPRODUCED]
    assert differing
    assert not [(name, row.id) for name, row in differing if not row.note.strip()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            # a quick run of what ships by a full one compares no value
            marks=[pytest.mark.exhaustive] if name in LONG or HELD[name].run == "full" else [],
        )
        for name in sorted(TARGETS)
    ],
)
def test_verdicts_stay(name: str) -> None:
    system, target = TARGETS[name]
    result = reproduction.run_target(system, target, quick=True)
    assert result.error is None
    rows = "\n".join(
        f"{row.id or row.quantity}: {row.published} / {row.ours}: {row.verdict}" for row in result.rows
    )
    if HELD[name].run == "full":
        # a quick run says so; `tests/models/<system>` holds a part of what ships by full runs
        assert {str(row.verdict) for row in result.rows} <= {"shortened", *UNJUDGED}, rows
        return
    assert result.counts() == HELD[name].reproduction.counts(), rows
    if name in EXPECTED:
        EXPECTED[name](result)
