"""Clusters of kubectl: quantities, overhead, rules, budgets, and errors in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.consolidation import check
from planner_models.consolidation.designs import patterns, repack
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.kubectl import kubectl
from tests.models.consolidation.problem.readers.clusters import HOSTNAME, node, pod, read

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_requests_are_summed_and_pods_of_a_deployment_are_one_shape(tmp_path: Path) -> None:
    problem = read(
        tmp_path,
        node("n1"),
        pod("web-1", {"cpu": "500m", "memory": "1Gi"}),
        pod("web-2", {"cpu": 0.5, "memory": "1073741824"}),
        pod("job-1", {"cpu": "1e0", "memory": "1e3"}, owner=("Job", "job")),
    )
    assert problem.machines["machine"].tolist() == ["shop/web", "shop/job"]
    assert problem.count.tolist() == [2, 1]
    assert problem.vcpus.tolist() == [0.5, 1.0]
    assert problem.memory_gb.tolist() == [1.073741824, 1e-6]


def test_daemon_sets_are_overhead_of_every_host(tmp_path: Path) -> None:
    problem = read(
        tmp_path,
        node("n1", "4", "16Gi"),
        pod("agent-1", {"cpu": "100m", "memory": "1Gi"}, owner=("DaemonSet", "agent")),
        pod("web-1", {"cpu": "1"}),
    )
    assert problem.nodes["threads"].tolist() == [pytest.approx(3.9)]
    assert problem.nodes["memory_gb"].tolist() == [pytest.approx(15 * 1.073741824)]
    assert problem.host_shapes[0].whole[2] == 109


def test_init_containers_count_by_the_largest_and_sidecars_beside(tmp_path: Path) -> None:
    item = pod("web-1", {"cpu": "1"})
    item["spec"]["initContainers"] = [
        {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "setup", "resources": {"requests": {"cpu": "2"}}},
    ]
    assert read(tmp_path, node("n1"), item).vcpus.tolist() == [2.25]


def test_limits_stand_for_requests_that_are_missing(tmp_path: Path) -> None:
    item = pod("web-1")
    item["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}, "requests": {"memory": "1G"}}
    problem = read(tmp_path, node("n1"), item)
    assert (problem.vcpus.tolist(), problem.memory_gb.tolist()) == ([2.0], [1.0])


def test_a_pod_without_requests_takes_a_place_and_is_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = read(tmp_path, node("n1"), pod("web-1"))
    assert problem.needs[0].tolist() == [0.0, 0.0, 1.0]
    assert any("no requests of 1 pod, such as 'web-1'" in note for note in notes)


def allowed_types(problem: Consolidation, machine: str) -> list[str]:
    row = problem.machine_index.get_loc(machine)
    return [str(name) for name, may in zip(problem.type_index, problem.is_allowed[row], strict=True) if may]


def test_taints_need_tolerations_and_selectors_need_labels(tmp_path: Path) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    problem = read(
        tmp_path,
        node("n1"),
        node("n2", kind="g", taints=[taint]),
        node("n3", kind="d", labels={"disk": "ssd"}),
        pod("web-1", {"cpu": "1"}),
        pod(
            "train-1",
            {"cpu": "1"},
            owner=("Job", "train"),
            on="n2",
            tolerations=[{"key": "gpu", "operator": "Exists"}],
        ),
        pod("db-1", {"cpu": "1"}, owner=("StatefulSet", "db"), on="n3", nodeSelector={"disk": "ssd"}),
    )
    assert allowed_types(problem, "shop/web") == ["m", "d"]
    assert allowed_types(problem, "shop/train") == ["m", "g", "d"]
    assert allowed_types(problem, "shop/db") == ["d"]


@pytest.mark.parametrize(
    ("operator", "values", "types"),
    [("In", ["a"], ["m"]), ("NotIn", ["a"], ["k"]), ("Exists", [], ["m", "k"]), ("DoesNotExist", [], [])],
)
def test_required_node_affinity(tmp_path: Path, operator: str, values: list[str], types: list[str]) -> None:
    rule = {"key": "topology.kubernetes.io/zone", "operator": operator, "values": values}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}}
    nodes = [node("n1", zone="a"), node("n2", kind="k", zone="b")]
    problem = read(tmp_path, *nodes, pod("web-1", {"cpu": "1"}, affinity=affinity))
    assert allowed_types(problem, "shop/web") == (types or ["m", "k"])


def test_anti_affinity_keeps_pods_on_different_hosts(tmp_path: Path) -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "db"}}}
    affinity = {"podAntiAffinity": {REQUIRED: [term]}}
    pods = [
        pod(f"db-{row}", {"cpu": "1"}, owner=("StatefulSet", "db"), on=f"n{row + 1}", affinity=affinity)
        for row in range(3)
    ]
    problem = read(tmp_path, *(node(f"n{row + 1}") for row in range(4)), *pods)
    plan = patterns.plan(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert plan.fleet["hosts"].sum() == 3


def away_from(*apps: str) -> dict[str, object]:
    """Return the affinity of pods that keep away from those of some apps."""
    expression = {"key": "app", "operator": "In", "values": list(apps)}
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": [expression]}}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def test_anti_affinity_keeps_pods_away_from_those_of_others(tmp_path: Path) -> None:
    """Web keeps away from batch, and from itself: batch may share a host with batch."""
    web = [
        pod(f"web-{row}", {"cpu": "1"}, on=f"n{row + 1}", affinity=away_from("web", "batch"))
        for row in range(2)
    ]
    batch = [pod(f"batch-{row}", {"cpu": "1"}, owner=("Job", "batch"), on="n3") for row in range(3)]
    problem = read(tmp_path, *(node(f"n{row + 1}") for row in range(4)), *web, *batch)
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert decision.proof.bound == decision.proof.objective == 3.0
    on_hosts = decision.plan.placement.groupby("host")["machine"].agg(set)
    assert all(len(names) == 1 for names in on_hosts)


def test_spread_counts_the_nodes_that_selectors_allow(tmp_path: Path) -> None:
    """Four pods on two of four nodes, with a skew of one: two on each."""
    spread = {
        "topologySpreadConstraints": [
            {
                "topologyKey": HOSTNAME,
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
        "nodeSelector": {"pool": "fast"},
    }
    nodes = [node(f"n{row}", labels={"pool": "fast" if row < 3 else "slow"}) for row in range(1, 5)]
    problem = read(tmp_path, *nodes, *(pod(f"web-{row}", {"cpu": "1"}, **spread) for row in range(4)))
    assert problem.rules is not None
    assert problem.rules.query("kind == 'spread'")["most"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 2}, 2.0),
        ({"minAvailable": "100%"}, 0.0),
        ({"minAvailable": "60%"}, 1.0),
        ({"maxUnavailable": 0}, 0.0),
        ({"maxUnavailable": "30%"}, 2.0),
        ({}, 1.0),
    ],
)
def test_budgets_without_a_status_follow_from_their_numbers(
    tmp_path: Path, spec: dict[str, object], allowed: float
) -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
    problem = read(tmp_path, node("n1"), *(pod(f"web-{row}", {"cpu": "1"}) for row in range(4)), budget)
    assert problem.at_once.tolist() == [allowed]


def test_pods_that_share_a_budget_move_in_turn(tmp_path: Path) -> None:
    """A budget for two deployments allows one eviction at once, of both together."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
        "status": {"disruptionsAllowed": 1},
    }
    nodes = [node(f"n{row}") for row in (1, 2, 3)]
    pods = [
        pod("web-1", {"cpu": "1"}, on="n1"),
        pod("cart-1", {"cpu": "1"}, on="n2", owner=("ReplicaSet", "cart-5d4f8c7b6d")),
        pod("big-1", {"cpu": "2"}, on="n3", owner=("Job", "big")),
    ]
    problem = read(tmp_path, *nodes, *pods, budget)
    plan = repack.plan(problem, budget=1.0).plan
    assert plan is not None
    assert plan.moves is not None
    assert plan.moves["wave"].tolist() == [1.0, 2.0]
    assert not len(check(problem, plan))
    together = replace(plan, moves=plan.moves.assign(start_s=0.0))
    assert check(problem, together).frame["where"].tolist() == ["n3", "budget shop/shop"]


def test_pods_that_break_a_rule_today_stay_where_no_other_node_holds_them(tmp_path: Path) -> None:
    """Both databases are on one node, which their anti-affinity forbids since; the only other one is full."""
    away = away_from("full")
    pods = [
        pod("db-1", {"cpu": "1"}, owner=("StatefulSet", "db"), on="n1", affinity=away),
        pod("full-1", {"cpu": "2"}, owner=("Job", "full"), on="n1"),
        pod("other-1", {"cpu": "4"}, owner=("Job", "other"), on="n2"),
    ]
    problem = read(tmp_path, node("n1"), node("n2"), *pods)
    decision = repack.plan(problem, budget=1.0)
    assert decision.plan is not None
    assert decision.plan.refused is None
    assert "rules" not in (decision.guarantees or ())
    assert check(problem, decision.plan).frame["limit"].tolist() == ["rules"]


def test_a_cordoned_node_keeps_the_pods_that_may_not_be_evicted(tmp_path: Path) -> None:
    fixed = {"karpenter.sh/do-not-disrupt": "true"}
    pods = [
        pod("web-1", {"cpu": "1"}, on="n1"),
        pod("job-1", {"cpu": "1"}, on="n1", annotations=fixed, owner=("Job", "job")),
    ]
    problem = read(tmp_path, node("n1", unschedulable=True), node("n2"), *pods)
    decision = repack.plan(problem, budget=1.0)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert decision.plan.refused is not None
    assert decision.plan.refused["machine"].tolist() == ["shop/job"]


def test_no_pod_is_refused_where_all_have_a_node_at_the_same_price(tmp_path: Path) -> None:
    """Only n1 has the disk of the first app, whose pods keep away from those of the other."""
    nodes = [node("n1", labels={"disk": "ssd"}), node("n2"), node("n3")]
    first = pod("web-1", {"cpu": "1"}, on="n1", affinity=away_from("api"), nodeSelector={"disk": "ssd"})
    others = [
        pod(f"api-{row}", {"cpu": "3"}, on=f"n{row}", owner=("Job", "api"), affinity=away_from("api"))
        for row in (2, 3)
    ]
    decision = patterns.plan(read(tmp_path, *nodes, first, *others))
    assert decision.plan is not None
    assert decision.plan.refused is None
    assert decision.proof.objective == decision.proof.bound == 3.0


def test_pods_with_the_same_port_of_the_host_are_on_different_hosts(tmp_path: Path) -> None:
    pods = [pod(f"web-{row}", {"cpu": "1"}, on=f"n{row + 1}") for row in range(2)]
    for item in pods:
        item["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    problem = read(tmp_path, node("n1"), node("n2"), *pods)
    assert patterns.plan(problem).proof.objective == 2.0


def test_a_folder_has_nodes_and_pods_in_several_files(tmp_path: Path) -> None:
    for name, items in (("nodes", [node("n1")]), ("pods", [pod("web-1", {"cpu": "1"})])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"items": items}), encoding="utf-8")
    assert kubectl(cluster=tmp_path).count.tolist() == [1]


def test_budgets_and_annotations_keep_pods_where_they_are(tmp_path: Path) -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    nodes = [node(f"n{row}") for row in (1, 2, 3)]
    pods = [
        pod("web-1", {"cpu": "1"}, on="n1"),
        pod("bare", {"cpu": "1"}, owner=None, on="n2"),
        pod("free-1", {"cpu": "1"}, owner=("Job", "free"), on="n3"),
    ]
    problem = read(tmp_path, *nodes, *pods, budget)
    assert problem.at_once.tolist() == [0.0, 0.0, np.inf]
    plan = repack.plan(problem, budget=1.0).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert plan.moves is not None
    assert plan.moves["machine"].tolist() == ["shop/free"]
    assert set(plan.fleet["host"]) == {"n1", "n2"}


def test_types_have_their_prices(tmp_path: Path) -> None:
    prices = "Instance type,Price per h\nm,0.25\nk,0.5\n"
    problem = read(tmp_path, node("n1"), node("n2", kind="k"), pod("web-1", {"cpu": "1"}), prices=prices)
    assert problem.price.tolist() == [0.25, 0.5]


def test_topologies_give_the_numa_nodes(tmp_path: Path) -> None:
    zones = [
        {
            "name": f"node-{row}",
            "type": "Node",
            "resources": [
                {"name": "cpu", "capacity": "2", "allocatable": "2"},
                {"name": "memory", "capacity": "8Gi", "allocatable": "8Gi"},
            ],
        }
        for row in range(2)
    ]
    topology = {"kind": "NodeResourceTopology", "metadata": {"name": "n1"}, "zones": zones}
    problem = read(tmp_path, node("n1"), pod("web-1", {"cpu": "1"}), topology)
    assert problem.nodes["threads"].tolist() == [2.0, 2.0]


BAD = {
    "quantity": (pod("web-1", {"cpu": "many"}), "pod web-1: container main: cpu: 'many' is no quantity"),
    "suffix": (pod("web-1", {"memory": "1Qi"}), "memory: '1Qi' has the unknown suffix 'Qi'"),
    "negative": (pod("web-1", {"cpu": "-1"}), "cpu: '-1' must be at least 0"),
}


@pytest.mark.parametrize(("item", "line"), BAD.values(), ids=list(BAD))
def test_wrong_quantities_are_named(tmp_path: Path, item: dict[str, object], line: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, node("n1"), item)
    assert line in error.value.faults[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "cluster.json row 1: is no JSON"),
        ('[{"kind": "\\ud800"}]', "cluster.json row 1: has half a character"),
        ("3", "cluster.json: must be a list of objects"),
        ('{"items": []}', "cluster.json: has no nodes"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        kubectl(cluster=path)
    assert line in error.value.faults[0]


def near(app: str, key: str = "topology.kubernetes.io/zone") -> dict[str, object]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {REQUIRED: [term]}}


def test_pods_near_others_stay_in_their_zone(tmp_path: Path) -> None:
    nodes = [node(f"n{row}", zone="a" if row < 3 else "b") for row in range(5)]
    pods = [
        pod("db-1", {"cpu": "1"}, owner=("StatefulSet", "db"), on="n0"),
        pod("web-1", {"cpu": "1"}, on="n1", affinity=near("db")),
        pod("web-2", {"cpu": "1"}, on="n2", affinity=near("db")),
        pod("job-1", {"cpu": "3"}, owner=("Job", "job"), on="n4"),
    ]
    problem = read(tmp_path, *nodes, *pods)
    assert [(domain, shapes.tolist()) for domain, shapes in problem.bundles] == [("zone", [0, 1])]
    cheapest = patterns.plan(problem).plan
    assert cheapest is not None
    assert not len(check(problem, cheapest))
    assert cheapest.fleet["hosts"].sum() == 2
    kept = repack.plan(problem, budget=1.0).plan
    assert kept is not None
    assert not len(check(problem, kept))
    assert kept.moves is not None
    assert set(kept.moves["machine"]) <= {"shop/job"}


def test_pods_near_others_on_several_hosts_are_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    pods = [
        pod("db-1", {"cpu": "1"}, owner=("StatefulSet", "db"), on="n1"),
        pod("web-1", {"cpu": "1"}, on="n2", affinity=near("db", HOSTNAME)),
    ]
    with observe_notes(notes.append):
        problem = read(tmp_path, node("n1"), node("n2"), *pods)
    assert not problem.bundles
    assert any("'shop/web' is near pods that are in several hosts" in note for note in notes)


@pytest.mark.parametrize(
    ("term", "members"),
    [
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, ["shop/db"]),
        (
            {"labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["shop", "stage"]},
            ["shop/db", "stage/db"],
        ),
        ({"labelSelector": {}, "namespaceSelector": {}}, ["shop/db", "stage/db", "shop/web"]),
        ({"labelSelector": None}, []),
        ({}, []),
    ],
)
def test_terms_select_pods_of_namespaces(tmp_path: Path, term: dict[str, object], members: list[str]) -> None:
    affinity = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOSTNAME, **term}]}}
    other = pod("db-9", {"cpu": "1"}, owner=("StatefulSet", "db"), on="n2")
    other["metadata"]["namespace"] = "stage"
    pods = [
        pod("db-1", {"cpu": "1"}, owner=("StatefulSet", "db"), affinity=affinity),
        other,
        pod("web-1", {"cpu": "1"}, on="n3"),
    ]
    problem = read(tmp_path, *(node(f"n{row}") for row in (1, 2, 3)), *pods)
    having = [str(name) for name, names in zip(problem.machine_index, problem.groups, strict=True) if names]
    assert having == members


def test_pods_of_one_owner_with_other_selectors_are_other_shapes(tmp_path: Path) -> None:
    """During a rolling update the new pods need disks that only one node has."""
    problem = read(
        tmp_path,
        node("n1"),
        node("n2", kind="d", labels={"disk": "ssd"}),
        pod("web-1", {"cpu": "1"}),
        pod("web-2", {"cpu": "1"}, on="n2", nodeSelector={"disk": "ssd"}),
    )
    assert problem.count.tolist() == [1, 1]
    assert [allowed_types(problem, str(name)) for name in problem.machine_index] == [["m", "d"], ["d"]]


def test_fields_that_are_absent_or_null_are_read(tmp_path: Path) -> None:
    """An export with null lists, a pending pod, nodes without allocatable amounts or a number of pods."""
    bare = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": None},
        "status": {"capacity": {"cpu": 4, "memory": 16e9}},
    }
    pending = pod("web-1", {"cpu": "1500m", "memory": "1.5e3M"})
    pending["spec"] |= {"nodeName": None, "initContainers": None, "tolerations": None, "affinity": None}
    pending["status"] = {"phase": "Pending"}
    del pending["metadata"]["namespace"]
    problem = read(tmp_path, bare, pending, pod("done-1", {"cpu": "64"}) | {"status": {"phase": "Succeeded"}})
    assert problem.machines["machine"].tolist() == ["default/web"]
    assert problem.vcpus.tolist() == [1.5]
    assert problem.memory_gb.tolist() == [1.5]
    assert problem.host_shapes[0].whole[2] == 110.0
    plan = patterns.plan(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))


@pytest.mark.parametrize(
    ("requests", "spec"),
    [({"nvidia.com/gpu": "1"}, {}), ({"cpu": "64"}, {}), ({"cpu": "1"}, {"nodeSelector": {"disk": "fast"}})],
)
def test_pending_pods_that_no_node_can_hold_are_left_out_and_named(
    tmp_path: Path, requests: dict[str, str], spec: dict[str, object]
) -> None:
    notes: list[str] = []
    pending = pod("batch-1", requests, owner=("Job", "batch"), on="", **spec)
    with observe_notes(notes.append):
        problem = read(tmp_path, node("n1"), pod("web-1", {"cpu": "1"}), pending)
    assert len(problem.machines) == 1
    assert any(note.startswith("warning: 1 pending pod is left out, such as 'batch-1'") for note in notes)


@pytest.mark.parametrize(
    ("items", "line"),
    [
        ([node("n1"), pod("web-1"), pod("web-1")], "pod 'shop/web-1' is there twice; keep one"),
        ([node("n1"), node("n1"), pod("web-1")], "node 'n1' is there twice; keep one"),
        (
            [node("n1"), pod("web-1", {"cpu": "100"}, on="")],
            "no pods but those of DaemonSets and pending ones that no node can hold",
        ),
    ],
)
def test_lists_that_cannot_be_counted_are_refused(
    tmp_path: Path, items: list[dict[str, object]], line: str
) -> None:
    with pytest.raises(InputError, match=line):
        read(tmp_path, *items)


@pytest.mark.parametrize("skew", ["x", 0, 1.5, {"a": 1}])
def test_a_wrong_skew_is_named(tmp_path: Path, skew: object) -> None:
    spread = {
        "maxSkew": skew,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    with pytest.raises(InputError, match=r"pods of 'shop/web': maxSkew is .*, must be a whole number from 1"):
        read(tmp_path, node("n1"), pod("web-1", topologySpreadConstraints=[spread]))


def test_pods_on_nodes_that_are_not_in_the_list_are_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = read(tmp_path, node("n1"), pod("web-1"), pod("web-2", on="n2"))
    assert problem.count.tolist() == [2]
    assert any("1 pod is on nodes that are not in the list, such as 'web-2'" in note for note in notes), notes


def test_pods_that_are_not_ready_are_not_healthy(tmp_path: Path) -> None:
    """One of two may be unavailable, and one already is: none may be evicted."""
    unready = pod("web-2")
    unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    problem = read(tmp_path, node("n1"), pod("web-1"), unready, budget)
    assert problem.at_once.tolist() == [0.0]


def test_null_values_of_taints_and_tolerations_are_empty(tmp_path: Path) -> None:
    item = pod("web-1", on="", tolerations=[{"key": "k", "value": None, "effect": "NoSchedule"}])
    problem = read(tmp_path, node("n1", taints=[{"key": "k", "effect": "NoSchedule"}]), item)
    assert problem.count.tolist() == [1]
