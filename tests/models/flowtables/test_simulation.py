"""The simulated cache against a plain one of dictionaries, and against what can be said in advance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner.options import Options
from planner_models.flowtables import SYSTEM, FlowTables
from planner_models.flowtables.designs.reactive import MASKS_OF_MISSES
from planner_models.flowtables.plan.check import classify_headers, follow
from planner_models.flowtables.problem.generators import changing_rules
from planner_models.flowtables.simulation import make_packets, simulate
from tests.models.flowtables.switches import FIELDS, every_header

RULES = [(9, "a=1/2 c=1", "out:1"), (8, "b=4/1", "drop"), (7, "a=0/1 b=1/2", "out:2"), (1, "", "out:1")]
CHANGES = [
    (3.3, "remove", 8, "b=4/1", "drop"),
    (3.3, "add", 8, "b=6/2", "out:2"),
    (6.05, "add", 10, "c=3", "drop"),
    (11.0, "remove", 1, "", "out:1"),
]


def make_switch(**costs: float) -> FlowTables:
    """Return a switch whose rules change three times while 120 connections arrive in 12 s."""
    random = np.random.default_rng(3)
    headers = [every_header()[row] for row in random.integers(0, 256, size=40)]
    flows = pd.DataFrame(
        {
            "header": random.choice(headers, size=120),
            "packets": random.integers(1, 6, size=120).astype(float),
            "start_s": np.sort(random.random(120) * 12),
        }
    )
    return FlowTables(
        fields=FIELDS,
        rules=pd.DataFrame(RULES, columns=["priority", "match", "action"]),
        flows=flows,
        changes=pd.DataFrame(CHANGES, columns=["time_s", "change", "priority", "match", "action"]),
        costs=pd.DataFrame([{"idle_s": 2.0, **costs}]),
    )


def run(problem: FlowTables, design: str, **parameters: Any) -> Any:
    return simulate(
        problem, design=SYSTEM.design(design), information={}, decision_parameters={}, options=Options(),
        packet_gap_s=0.7, **parameters,
    )  # fmt: skip


def simulate_plainly(problem: FlowTables, design: str) -> dict[str, float]:
    """Return the counts of a cache held in a dictionary of cubes, in the order of installation."""
    entries: dict[tuple[int, int], list[Any]] = {}
    layout = problem.layout
    start_s = problem.flows["start_s"].to_numpy(float)
    packets = make_packets(problem, start_s, np.arange(len(problem.flows)), 0.7)
    end_s = max(start_s.max(), problem.change_times.max()) + 2.0
    events = [(time, 2, flow) for time, flow in zip(*packets, strict=True) if time < end_s]
    events += [(time, 0, 0) for time in problem.change_times]
    events += [(float(time), 1, 0) for time in np.arange(1.0, end_s + 0.5)]
    counts = dict.fromkeys(("misses", "wrong_packets", "stale_s", "most_megaflows", "packets"), 0.0)
    now, changed_s = problem.rules_after(0.0), 0.0
    for time, kind, flow in sorted(events):
        if kind == 0:
            now, changed_s = problem.rules_after(time), time
        elif kind == 1:
            for (value, mask), (action, last_s) in list(entries.items()):
                settled = follow(now, *layout.to_words([value, mask]))
                is_right = settled is not None and now.actions[settled] == action
                if not is_right:
                    counts["stale_s"] = max(counts["stale_s"], time - changed_s)
                if not is_right or last_s <= time - problem.cost("idle_s"):
                    del entries[value, mask]
        else:
            header = problem.headers[flow : flow + 1]
            number = layout.to_numbers(header)[0]
            right = now.actions[int(classify_headers(now, header)[0])]
            result = [cube for cube in entries if (number ^ cube[0]) & cube[1] == 0]
            counts["packets"] += 1
            if not result:
                counts["misses"] += 1
                mask = layout.to_numbers(MASKS_OF_MISSES[design](now)(header))[0]
                result = [(number & mask, mask)]
                entries[result[0]] = [right, time]
            assert len({entries[cube][0] for cube in result}) == 1  # else the order of masks would matter
            for cube in result[:1]:
                counts["wrong_packets"] += entries[cube][0] != right
                entries[cube][1] = time
        counts["most_megaflows"] = max(counts["most_megaflows"], len(entries))
    return counts


@pytest.mark.parametrize(("design", "micro"), [("microflows", 0), ("tuple_search", 8)])
def test_counts_are_those_of_a_plain_cache(design: str, micro: int) -> None:
    """With entries that never overlap, so that the order of masks does not matter."""
    problem = make_switch(microflow_entries=micro)
    plain = simulate_plainly(problem, design)
    result = run(problem, design)
    counts = {name: result.metrics[name] for name in ("misses", "wrong_packets", "most_megaflows")}
    assert counts == {name: plain[name] for name in counts}
    assert result.metrics["stale_s"] == pytest.approx(plain["stale_s"])
    assert result.metrics["wrong_packets"] > 0
    assert result.metrics["hit_rate"] == pytest.approx(100 * (1 - plain["misses"] / plain["packets"]))


@pytest.mark.slow
def test_stale_entries_last_until_revalidation() -> None:
    problem = make_switch()
    for design in ("all", "pool", "merged"):
        result = run(problem, design, period_s=2.0)
        assert 0 < result.metrics["stale_s"] <= 1.0 + 1e-9
        slow = run(problem.with_costs(revalidate_s=4.0), design, period_s=2.0)
        assert slow.metrics["stale_s"] > 1.0
        assert slow.metrics["wrong_packets"] >= result.metrics["wrong_packets"]
    calm = FlowTables(rules=problem.rules, flows=problem.flows, fields=problem.fields, costs=problem.costs)
    still = run(calm, "all")
    assert still.metrics["wrong_packets"] == still.metrics["stale_s"] == 0


def test_a_full_cache_installs_no_more_entries() -> None:
    result = run(make_switch(flow_limit=3.0), "all")
    assert result.metrics["most_megaflows"] == 3
    assert result.metrics["uncached"] > 0


def test_faults_of_changes_name_their_row() -> None:
    problem = make_switch()
    wrong = pd.DataFrame(
        [
            (1.0, "remove", 5, "a=1", "drop"),
            (2.0, "add", 9, "a=0/1 c=1", "drop"),
            (3.0, "add", 8, "b=4/1", "out:1"),
            (4.0, "add", 3, "d=1", "out:1"),
        ],
        columns=["time_s", "change", "priority", "match", "action"],
    )
    with pytest.raises(InputError) as error:
        FlowTables(rules=problem.rules, flows=problem.flows, fields=FIELDS, changes=wrong)
    lines = str(error.value).splitlines()
    assert lines[0] == "changes row 1: removes a rule that is not there: match 'a=1'"
    assert lines[1].startswith(
        "changes row 2: after this change, rules row 5: overlaps row 1 of the same priority 9"
    )
    assert lines[2] == "changes row 3: adds a rule that is there: match 'b=4/1'"
    assert lines[3].startswith(
        "changes row 4: after this change, rules row 5: match 'd=1': there is no field 'd'"
    )


def test_generated_changes_replace_rules_in_time() -> None:
    problem = changing_rules(rules=30, connections=200, connections_per_s=20.0, change_s=2.0, seed=2)
    assert len(problem.change_times) == 5
    assert len(problem.rules_after(10.0).rules) == len(problem.rules)
    again = FlowTables.from_tables(problem.to_tables())
    assert again.rules_after(10.0).matches == problem.rules_after(10.0).matches
