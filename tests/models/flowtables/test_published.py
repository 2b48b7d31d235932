"""Values of the paper that our models give, and how the others are accounted for."""

from __future__ import annotations

import pytest

from planner.runs import reproduction
from planner.runs.reproduction import Verdict, read_published
from planner.runs.shipped_verdicts import load_shipped
from planner_models.flowtables import SYSTEM
from planner_models.flowtables.published import _find_rates, find_table_1

TARGETS = {target.name: target for target in SYSTEM.studies.targets}


class Quick:
    """A study of short runs that compares no scenario."""

    quick = True


@pytest.mark.parametrize("name", ["pipeline", "tuple_search", "tries"])
def test_formulas_and_tries_are_reproduced(name: str) -> None:
    result = reproduction.run_target(SYSTEM, TARGETS[name], quick=True)
    assert result.error is None
    assert {row.verdict for row in result.rows} <= {Verdict.REPRODUCED, Verdict.NO_NUMBER}


def test_every_published_value_has_one_verdict_and_others_a_reason() -> None:
    rows = [row for target in TARGETS.values() for row in target.rows]
    assert sorted(rows) == sorted(read_published("flowtables"))
    shipped = load_shipped()
    for name in TARGETS:
        for row in shipped[f"flowtables/{name}"].reproduction.rows:
            assert row.ours is not None or row.note or row.verdict is Verdict.NOT_AVAILABLE, row.id


def test_rates_are_those_of_table_1_at_its_ends_and_lookups_cost_time() -> None:
    missing, cached = _find_rates("row", 1.0, 0.0), _find_rates("row", 0.0, 0.0)
    assert missing == pytest.approx({"row_tps": 37, "row_user": 45, "row_kernel": 40})
    assert cached == pytest.approx({"row_tps": 117, "row_user": 0, "row_kernel": 20})
    searching = _find_rates("row", 0.0, 6.8)  # a microsecond of lookups at 6.8 million a second
    assert 1000 / searching["row_tps"] == pytest.approx(1000 / 117 + 1.0)
    assert searching["row_kernel"] == pytest.approx(searching["row_tps"] * (20 / 117 + 0.1))


@pytest.mark.slow
def test_optimizations_lower_flow_setups() -> None:
    values = find_table_1(Quick()).values  # type: ignore[arg-type]
    flows = {
        name: float(values[f"flow_t1_{name}_flows"] or 0)
        for name in ("disabled", "none", "priority", "prefix", "staged", "all")
    }
    assert flows["disabled"] >= flows["none"] > flows["priority"] > 50 * flows["prefix"]
    assert flows["priority"] > 50 * max(flows["staged"], flows["all"])
    assert set(values) <= find_table_1(Quick()).shortened  # type: ignore[arg-type]
