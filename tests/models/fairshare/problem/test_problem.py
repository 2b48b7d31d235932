"""Faults of tables, one line each, and adjustments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import planner
from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.fairshare import SYSTEM, SharedStore
from planner_models.fairshare.problem import generators
from planner_models.fairshare.problem import problem as problem_module
from planner_models.fairshare.problem.adjustments import adjust

Tables = dict[str, pd.DataFrame]


def tables() -> Tables:
    return {
        "nodes": pd.DataFrame(
            {
                "node": ["n1", "n2", "n3"],
                "rate_kops": 10.0,
                "memory_gb": [4.0, 8.0, 4.0],
                "domain": ["a", "a", "b"],
            }
        ),
        "tenants": pd.DataFrame(
            {
                "tenant": ["Ünïcode", "B"],
                "weight": [1.0, 2.0],
                "mix": ["elastic", "fixed"],
                "replicas": [1, 2],
            }
        ),
        "partitions": pd.DataFrame(
            {
                "tenant": ["Ünïcode", "B", "B"],
                "partition": ["p", "p", "q"],
                "demand_kops": 5.0,
                "size_gb": 1.0,
            }
        ),
        "placed": pd.DataFrame({"tenant": ["B"], "partition": ["p"], "node": ["n1"]}),
    }


def cell(table: str, row: int, column: str, value: object) -> Callable[[Tables], None]:
    def change(inputs: Tables) -> None:
        frame = inputs[table].astype(object)
        frame.loc[row, column] = value
        inputs[table] = frame

    return change


def rules(table: str, *rows: tuple[str, str, str]) -> Callable[[Tables], None]:
    def change(inputs: Tables) -> None:
        inputs[table] = pd.DataFrame(list(rows), columns=["tenant", "partition", "node"])

    return change


def both(*changes: Callable[[Tables], None]) -> Callable[[Tables], None]:
    def change(inputs: Tables) -> None:
        for item in changes:
            item(inputs)

    return change


def grouped(group: str, parent: str = "") -> Callable[[Tables], None]:
    """Return a change after which tenant B is in a group, and group g is part of another."""

    def change(inputs: Tables) -> None:
        inputs["tenants"] = inputs["tenants"].assign(group=["", group])
        inputs["groups"] = pd.DataFrame({"group": ["g", "h"], "parent": [parent, "g"], "weight": 1.0})

    return change


FAULTS = {
    "tenants row 2: group 'k' is no group of table groups; valid: g, h": grouped("k"),
    "groups row 1: parent 'k' is no group of table groups; valid: g, h": grouped("g", "k"),
    "groups row 1: group 'g' is part of itself by way of its parents, must not be": grouped("g", "h"),
    "tenants row 2: limit_kops is 3, must be at least reserved_kops, 4": lambda inputs: inputs.update(
        tenants=inputs["tenants"].assign(reserved_kops=[np.nan, 4.0], limit_kops=[np.nan, 3.0])
    ),
    "tenants row 1: limit_kops is 0.0, must be greater than 0": lambda inputs: inputs.update(
        tenants=inputs["tenants"].assign(limit_kops=[0.0, 3.0])
    ),
    "tenants row 1: weight is 0.0, must be greater than 0": cell("tenants", 0, "weight", 0.0),
    "tenants row 1: weight is empty": cell("tenants", 0, "weight", float("nan")),
    "tenants row 2: replicas is 3, must be at most 2, the number of domains": cell(
        "tenants", 1, "replicas", 3
    ),
    "tenants row 2: most_nodes is 1, must be at least replicas, 2": cell("tenants", 1, "most_nodes", 1.0),
    "tenants row 1: mix is 'even', must be one of elastic, fixed": cell("tenants", 0, "mix", "even"),
    "partitions row 2: tenant 'C' is no tenant; valid: B, Ünïcode": cell("partitions", 1, "tenant", "C"),
    "partitions row 3: demand_kops is -1.0, must be at least 0": cell("partitions", 2, "demand_kops", -1.0),
    "partitions row 3: size_gb is 9, must be at most the memory of a node; the largest, 'n2', has 8 GB": cell(
        "partitions", 2, "size_gb", 9.0
    ),
    "placed row 1: node 'n9' is no node; valid: n1, n2, n3": cell("placed", 0, "node", "n9"),
    "placed row 1: tenant 'B' has no partition 'z'; valid: p, q": cell("placed", 0, "partition", "z"),
    "placed row 2: tenant 'B', partition 'p', node 'n1' is there already in row 1": rules(
        "placed", ("B", "p", "n1"), ("B", "p", "n1")
    ),
    "pinned row 1: partition 'p' of tenant 'B' is pinned to node 'n2', where table forbidden forbids it": (
        both(rules("pinned", ("B", "p", "n2")), rules("forbidden", ("*", "*", "n2")))
    ),
    "pinned: partition 'p' of tenant 'Ünïcode' is pinned to 2 nodes, must be at most its replicas, 1": rules(
        "pinned", ("Ünïcode", "p", "n1"), ("Ünïcode", "p", "n2")
    ),
    "pinned row 1: node '*' is no node; valid: n1, n2, n3": rules("pinned", ("B", "p", "*")),
    "partitions: every demand_kops is 0, one must be greater": lambda inputs: inputs.update(
        partitions=inputs["partitions"].assign(demand_kops=0.0)
    ),
}


@pytest.mark.parametrize("message", FAULTS)
def test_a_fault_is_one_line(message: str) -> None:
    inputs = tables()
    FAULTS[message](inputs)
    with pytest.raises(InputError) as raised:
        SharedStore.from_tables(inputs)
    assert message in raised.value.faults


def test_resources_need_their_tables() -> None:
    inputs = tables()
    inputs["uses"] = pd.DataFrame({"tenant": ["B"], "resource": ["cpu"], "per_op": [1.0]})
    with pytest.raises(InputError, match="uses row 1: resource 'cpu' is no resource of table resources"):
        SharedStore.from_tables(inputs)


@pytest.mark.parametrize(
    ("limit", "most", "message"),
    [
        ("MOST_NODES", 2, "nodes: has 3 rows, must have up to 2"),
        ("MOST_TENANTS", 1, "tenants: has 2 rows, must have up to 1"),
        ("MOST_PAIRS", 5, "tenants: 2 tenants on 3 nodes are 6 pairs, must be up to 5"),
        ("MOST_REPLICAS", 5, "tenants row 2: replicas is 2, must be at most 1 with 3 partitions"),
        (
            "MOST_PLACES",
            8,
            "forbidden: 3 partitions on 3 nodes are 9 pairs, must be up to 8 with such rules",
        ),
    ],
)
def test_a_store_that_would_need_too_much_memory_is_one_line(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int, message: str
) -> None:
    inputs = tables()
    rules("forbidden", ("B", "p", "n2"))(inputs)
    monkeypatch.setattr(problem_module, limit, most)
    with pytest.raises(InputError) as raised:
        SharedStore.from_tables(inputs)
    assert raised.value.faults == (message,)


def test_a_generator_refuses_too_many_partitions() -> None:
    with pytest.raises(InputError, match="10,000 for each of 1,000 tenants are 10,000,000, must be up to"):
        generators.zipf(tenants=1_000, partitions=10_000)


def test_rules_mark_the_places_that_they_name() -> None:
    random = np.random.default_rng(1)
    for _ in range(30):
        inputs = tables()
        names = {
            "tenant": ["Ünïcode", "B", "*"], "partition": ["p", "q", "*"], "node": ["n1", "n2", "n3", "*"],
        }  # fmt: skip
        rows = {tuple(random.choice(values) for values in names.values()) for _ in range(3)}
        rows -= {row for row in rows if row[:2] == ("Ünïcode", "q")}
        if not rows:
            continue
        rules("forbidden", *sorted(rows))(inputs)
        problem = SharedStore.from_tables(inputs)
        marked = [
            [
                any(t in (owner, "*") and p in (name, "*") and n in (node, "*") for t, p, n in rows)
                for node in problem.node_names
            ]
            for owner, name in zip(problem.tenant_names[problem.tenant], problem.partition_names, strict=True)
        ]
        assert problem.is_forbidden is not None
        assert problem.is_forbidden.tolist() == marked


def test_adjustments() -> None:
    problem = SharedStore.from_tables(tables())
    changed = adjust(
        problem,
        scale=2.0,
        rate_scale=0.5,
        weights={"B": 10.0},
        weight_factors={"B": 0.5},
        demand_factors={"B": 0.5},
        rate_factors={"n2": 4.0},
        fail_nodes=("b",),
    )
    assert changed.demand_kops.tolist() == [10.0, 5.0, 5.0]
    assert changed.rate_kops.tolist() == [5.0, 20.0, 0.0]
    assert changed.weight.tolist() == [1.0, 5.0]
    assert changed.wanted_replicas.tolist() == [1, 1, 1]  # one domain is left


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": {"Bb": 2.0}}, "weights: 'Bb' is no tenant; did you mean 'B'?"),
        ({"weight_factors": {"C": 2.0}}, "weight_factors: 'C' is no tenant; valid: B, Ünïcode"),
        ({"rate_factors": {"n": 2.0}}, "rate_factors: 'n' is no node; did you mean"),
        ({"fail_nodes": ("n7",)}, "fail_nodes: 'n7' is no node; valid: a, b, n1"),
    ],
)
def test_adjustments_of_unknown_names(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match="is no") as raised:
        adjust(SharedStore.from_tables(tables()), **given)  # type: ignore[arg-type]
    assert raised.value.faults[0].startswith(message)


def test_adjusted_demand_changes_events_too() -> None:
    inputs = tables()
    inputs["events"] = pd.DataFrame(
        {"at_s": [1.0, 2.0], "tenant": ["B", "Ünïcode"], "partition": ["*", "p"], "demand_kops": [4.0, 2.0]}
    )
    changed = adjust(SharedStore.from_tables(inputs), scale=2.0, demand_factors={"B": 3.0})
    assert changed.events is not None
    assert changed.events["demand_kops"].tolist() == [24.0, 4.0]


def pinned(*rows: tuple[str, str, str], failed: tuple[str, ...] = (), **columns: object) -> SharedStore:
    inputs = tables()
    rules("pinned", *rows)(inputs)
    nodes = inputs["nodes"]
    inputs["nodes"] = nodes.assign(failed=nodes["node"].isin(failed).astype(float))
    inputs["tenants"] = inputs["tenants"].assign(**columns)
    return SharedStore.from_tables(inputs)


def test_a_pin_to_a_failed_node_is_set_aside_with_a_line() -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = pinned(("B", "p", "n1"), ("B", "q", "n3"), failed=("n1",))
    assert "warning: pinned row 1: node 'n1' has failed, so this pin is set aside" in notes
    assert problem.is_pinned is not None
    assert problem.is_pinned.sum() == 1


@pytest.mark.parametrize("design", [design.name for design in SYSTEM.designs])
def test_every_design_has_a_plan_whichever_node_fails(design: str) -> None:
    problem = pinned(("B", "p", "n1"), ("Ünïcode", "p", "n3"))
    for node in ("n1", "n2", "n3"):
        run = planner.solve(adjust(problem, fail_nodes=(node,)), design=design)
        assert run.error is None
        assert not {"pinned", "failed"} & set(run.violations.frame["limit"])


def test_pins_that_no_placement_satisfies_are_faults() -> None:
    with pytest.raises(InputError, match="of which some are in one domain"):
        pinned(("B", "p", "n1"), ("B", "p", "n2"))
    inputs = tables()
    inputs["partitions"] = inputs["partitions"].assign(size_gb=[2.0, 1.5, 1.5])
    rules("pinned", ("*", "*", "n1"))(inputs)
    with pytest.raises(InputError, match=r"pinned to node 'n1' take 5 GB, must be at most its memory, 4 GB"):
        SharedStore.from_tables(inputs)
    with pytest.raises(InputError, match="is pinned to 2 nodes, must be at most its most_nodes, 1"):
        pinned(("B", "p", "n1"), ("B", "q", "n3"), most_nodes=1.0, replicas=1.0)
