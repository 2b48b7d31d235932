"""Churn in time: deterministic by seed, rules add up to entries, tables hold, decisions pay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner.options import Options
from planner.runs.simulate import simulate
from planner_models.multicast import SYSTEM, Multicast, check
from planner_models.multicast.simulation import SIMULATION, ChurnExecution, simulate_churn
from tests.models.multicast.fabrics import datacenter, tree


def run(problem: Multicast, design: str, **parameters: Any) -> Any:
    return simulate_churn(
        problem,
        design=SYSTEM.design(design),
        information={},
        decision_parameters={},
        options=Options(),
        **({"duration_s": 40.0, "link_s": 1.0} | parameters),
    )


@pytest.mark.parametrize("design", SIMULATION.designs)
def test_rules_add_up_to_the_entries_of_each_plan(design: str) -> None:
    result = run(datacenter(table_size=20), design)
    changes = result.tables["changes"]
    assert (
        changes["entries"].diff().fillna(changes["entries"]) == changes["added"] - changes["removed"]
    ).all()
    assert result.tables["intervals"]["seconds"].sum() == pytest.approx(40)
    assert changes["cause"].value_counts()["decision"] == (result.rounds["outcome"] == "applied").sum() == 2
    assert set(result.metrics) == {metric.name for metric in SIMULATION.metrics}


def test_a_seed_fixes_the_run() -> None:
    problem = datacenter()
    item, same, other = (run(problem, "partitioned", churn_seed=seed) for seed in (1, 1, 2))
    assert item.tables["intervals"].equals(same.tables["intervals"])
    assert not item.tables["intervals"].equals(other.tables["intervals"])


def test_before_the_first_decision_all_groups_go_by_unicast() -> None:
    problem = datacenter()
    first = run(problem, "partitioned_aggregated").tables["intervals"].iloc[0]
    assert first["groups_by_unicast"] == len(problem.groups)
    assert first["host_traffic_mbps"] == pytest.approx(2 * problem.rate_mbps @ problem.member_counts)


def test_tables_hold_at_every_time() -> None:
    problem = datacenter(table_size=20)
    execution = ChurnExecution(problem, events=50, step_s=5.0, seed=3)
    execution.apply((problem, SYSTEM.design("partitioned_aggregated").run(problem, options=Options())))
    for time_s in (5.0, 12.0, 30.0):
        execution.advance(time_s)
        assert not len(check(execution.problem, execution.plan))
    members = execution.observe().member_counts
    assert (members > 0).all()
    assert not np.array_equal(members, problem.member_counts)


def test_churn_needs_tenants() -> None:
    with pytest.raises(InputError, match="tenants: dynamics need this table"):
        run(Multicast.from_tables(tree()), "partitioned")


@pytest.mark.slow
def test_the_shipped_scenario_shows_that_coordination_pays() -> None:
    result = simulate("multicast/churn_simulation")
    assert result.exit_code == 0
    traffic = {item.label: item.result.metrics["host_traffic_mbps"] for item in result.runs if item.result}
    assert traffic["partitioned_aggregated"] < traffic["partitioned"] < traffic["per_switch"]


def test_frames_show_the_tables_of_the_plan_in_force() -> None:
    result = run(datacenter(table_size=20), "partitioned_aggregated", frames=True)
    intervals, changes = result.tables["intervals"], result.tables["changes"]
    for frame in result.frames[:-1]:
        row = intervals[intervals["start_s"] <= frame.time_s].iloc[-1]
        assert frame.value == row["host_traffic_mbps"], frame.label
        before = changes[changes["time_s"] <= frame.time_s]
        entries = before["entries"].iloc[-1] if len(before) else 0.0
        used = [float(note.split(" of ")[0].replace(",", "")) for note in frame.drawing.nodes["note"]]
        fill = frame.drawing.nodes["value"]
        assert (fill.sum() > 0) == (entries > 0), frame.label
        assert sum(used) >= entries
