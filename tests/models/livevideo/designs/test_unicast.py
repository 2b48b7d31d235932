"""A unicast last hop: streams of each viewer, against an integer program over paths and worked examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.contract.drawing import NetworkMap
from planner.contract.studies import Decided
from planner.errors import InputError, PlanRejected
from planner.options import Options
from planner_models.livevideo import SYSTEM, LiveVideo, Trees
from planner_models.livevideo.designs import DESIGNS, integer_program, optimum, unicast
from planner_models.livevideo.designs.open_model import open_model
from planner_models.livevideo.designs.what_if import report_last_hop
from planner_models.livevideo.plan.check import check, compute_delivery
from planner_models.livevideo.plan.metrics import measure
from planner_models.livevideo.plan.plan import from_tables
from planner_models.livevideo.plan.presentation import describe_cluster, describe_link, draw
from planner_models.livevideo.problem.adjustments import adjust, remove_failed
from planner_models.livevideo.problem.validation import report_unreachable
from tests.models.livevideo.networks import problem, problems

QUICK = Options(time_limit_s=1.0, threads=1)
VALUE = "service_minus_cost"
TIERS = {"S": "source", "E": "edge", "A": "group", "B": "group"}


Column = tuple[str, int, tuple[int, ...]]
"""A variable: an object on a link ("use") or path ("path"), or a request's viewers on a link ("view")."""


class PathProgram:
    """Integer program over whole paths from sources to edges, for the oracle."""

    def __init__(self, item: LiveVideo) -> None:
        self.item = item
        level, last = item.level, item.group_level - 1
        self.objects: list[int] = np.unique(item.object).tolist()
        self.inner = np.flatnonzero(level[item.head] <= last).tolist()
        paths = [(link,) for link in self.inner if level[item.tail[link]] == 0]
        for step in range(1, last):
            below = [link for link in self.inner if level[item.tail[link]] == step]
            paths = [(*p, link) for p in paths for link in below if item.head[p[-1]] == item.tail[link]]
        into = [np.flatnonzero(item.head == group).tolist() for group in item.group]
        self.paths: list[tuple[int, ...]] = list(paths)
        self.columns: list[Column] = [("use", o, (link,)) for o in self.objects for link in self.inner]
        self.columns += [("path", o, path) for o in self.objects for path in self.paths]
        self.columns += [("view", q, (link,)) for q, links in enumerate(into) for link in links]
        self.index = {column: n for n, column in enumerate(self.columns)}

    def item_of(self, column: Column) -> int:
        return int(self.item.object[column[1]]) if column[0] == "view" else column[1]

    def upper(self, column: Column) -> float:
        kind, number, links = column
        item, o = self.item, self.item_of(column)
        tail = int(item.tail[links[0]])
        is_held = item.level[tail] > 0 or item.is_at_source[o, item.sources.tolist().index(tail)]
        is_allowed = item.forbidden_pairs is None or not item.forbidden_pairs[o, list(links)].any()
        most = float(item.clients[number]) if kind == "view" else 1.0
        return most if is_held and is_allowed else 0.0

    def gain(self, column: Column) -> float:
        if column[0] == "path":
            return 0.0
        item, o = self.item, self.item_of(column)
        value = item.service_weight * item.priority[o] if column[0] == "view" else 0.0
        return float(value - item.cost_weight * item.cost[column[2][0]] * item.bitrate_mbps[o])

    def rows(self) -> Iterator[tuple[dict[int, float], float]]:
        """Yield the coefficients of each constraint, and its upper limit."""
        item, index = self.item, self.index
        for link, capacity in enumerate(item.capacity_mbps.tolist()):
            used = [c for c in self.columns if c[0] != "path" and c[2] == (link,)]
            yield {index[c]: float(item.bitrate_mbps[self.item_of(c)]) for c in used}, capacity
        for n, (kind, number, links) in enumerate(self.columns):
            if kind == "path":
                for link in links:
                    yield {n: 1.0, index["use", number, (link,)]: -1.0}, 0.0
            edge = item.tail[links[0]]
            if kind == "view" and item.level[edge] > 0:
                o, clients = int(item.object[number]), float(item.clients[number])
                feeding = [index["path", o, path] for path in self.paths if item.head[path[-1]] == edge]
                yield {n: 1.0, **dict.fromkeys(feeding, -clients)}, 0.0
        for q, clients in enumerate(item.clients.tolist()):
            yield {n: 1.0 for n, column in enumerate(self.columns) if column[:2] == ("view", q)}, clients
        for o, cluster in itertools.product(self.objects, range(len(item.clusters))):
            into = [link for link in self.inner if item.head[link] == cluster]
            yield {index["use", o, (link,)]: 1.0 for link in into}, 1.0


def best_over_paths(item: LiveVideo) -> float:
    """Return the best objective value, by an integer program of its own."""
    program = PathProgram(item)
    rows = list(program.rows())
    matrix = np.zeros((len(rows), len(program.columns)))
    for row, (coefficients, _) in enumerate(rows):
        matrix[row, list(coefficients)] = list(coefficients.values())
    result = milp(
        [-program.gain(column) for column in program.columns],
        constraints=LinearConstraint(matrix, -np.inf, [limit for _, limit in rows]),
        bounds=Bounds(0, [program.upper(column) for column in program.columns]),
        integrality=np.ones(len(program.columns)),
    )
    return float(-result.fun)


def by_unicast(item: LiveVideo, clients: float = 1.0) -> LiveVideo:
    """Return the problem with a unicast last hop and that many times the clients."""
    requests = item.requests.assign(clients=item.requests["clients"] * clients)
    return adjust(replace(item, requests=requests), last_hop="unicast")


@given(
    st.integers(2, 4).flatmap(lambda tiers: problems(tiers=tiers, rules=True)), st.sampled_from([1.0, 3.0])
)
@settings(max_examples=8)
def test_the_optimum_is_that_of_paths_and_no_plan_or_bound_passes_it(one: LiveVideo, clients: float) -> None:
    item = by_unicast(one, clients)
    best = best_over_paths(item)
    exact = optimum.distribute(item)
    assert exact.proof.objective == pytest.approx(best, abs=1e-6)
    assert exact.plan is not None
    assert not len(check(item, exact.plan))
    for design in DESIGNS:
        decision = design.run(design.observe(item), options=QUICK, previous=None)
        assert decision.plan is not None
        assert not len(check(item, decision.plan)), design.name
        value = measure(item, decision.plan, None)[VALUE]
        assert value is not None
        assert value <= best + 1e-6, design.name
    assert integer_program.find_dual_prices(item, Options()) is not None


@given(problems(tiers=4, rules=True))
@settings(max_examples=3)
def test_the_search_has_a_true_bound_and_the_model_in_words_the_same_optimum(one: LiveVideo) -> None:
    item = by_unicast(one, 4.0)
    best = best_over_paths(item)
    prices = unicast.Prices(item, QUICK)
    prices.run(QUICK_DEADLINE)
    assert prices.bound >= best - 1e-6
    decision = unicast.distribute(item, options=QUICK)
    assert decision.plan is not None
    assert measure(item, decision.plan, None)[VALUE] == pytest.approx(best, rel=2e-3, abs=1e-6)
    written = integer_program.solve(item, options=Options(backend="pyomo:appsi_highs"))
    assert written.proof.objective == pytest.approx(best, abs=1e-6)


@given(problems(tiers=3))
@settings(max_examples=4)
def test_groups_of_one_viewer_are_served_as_by_multicast(one: LiveVideo) -> None:
    single = replace(one, requests=one.requests.assign(clients=1.0))
    multicast = optimum.distribute(single).proof.objective
    assert optimum.distribute(by_unicast(single)).proof.objective == pytest.approx(multicast, abs=1e-6)


def two_edges(clients: float = 300.0, **columns: object) -> LiveVideo:
    """Return a group below two edges of 100 and 60 Mbit/s, and another that one viewer requests from."""
    links = [("S", "E", 9.0, 1.0), ("S", "E2", 9.0, 1.0), ("E", "A", 100.0, 1.0), ("E2", "A", 60.0, 2.0)]
    return problem(
        [*links, ("E2", "B", 5.0, 0.0)],
        [("v", 2000.0, 1.0)],
        [("A", "v", 2000.0, clients), ("B", "v", 2000.0, 1.0)],
        tiers=TIERS,
        settings=pd.DataFrame(
            {"service_weight": [1.0], "cost_weight": [1e-3], "chunk_s": [2.0], "last_hop": ["unicast"]}
            | columns
        ),
    )


@pytest.mark.parametrize("design", [design.name for design in DESIGNS])
def test_a_large_group_is_served_in_part_and_by_several_edges(design: str) -> None:
    """50 viewers fit on 100 Mbit/s and 30 on 60; DNS and the nearest edge send a whole group one way."""
    (chosen,) = (each for each in DESIGNS if each.name == design)
    item = two_edges()
    decision = chosen.run(chosen.observe(item), options=QUICK, previous=None)
    assert decision.plan is not None
    viewers = decision.plan.viewers
    assert viewers is not None
    served = dict(zip(viewers["edge"] + viewers["group"], viewers["clients"], strict=True))
    if design in ("cdn", "cdn_1s", "everything_everywhere"):
        assert served.pop("E2B") == 1
        assert served in ({"EA": 50.0}, {"E2A": 30.0})
        return
    assert served == ({"EA": 50.0, "E2A": 30.0, "E2B": 1.0})
    metrics = measure(item, decision.plan, None)
    assert metrics["unserved_clients"] == 220
    assert metrics["partial_requests"] == 1
    # 1 for each of 81 clients, less a thousandth of 2 x 2 to the edges, 50 x 2 x 1 and 30 x 2 x 2 to viewers
    assert metrics[VALUE] == pytest.approx(81 - 1e-3 * (4 + 100 + 120))
    assert metrics["traffic_mbps"] == pytest.approx(4 + 160 + 2)
    assert SYSTEM.plan.headline.words(metrics).startswith(
        "serves 81 of 301 clients at the requested bitrate, 1 request in part,"
    )


def plan_of(*viewers: tuple[str, str, float], unserved: float | None = None) -> Trees:
    """Return a plan with trees to both edges and (group, edge, clients) rows of viewers."""
    rows = [(group, "v", 2000.0, edge, clients) for group, edge, clients in viewers]
    columns = ["group", "channel", "bitrate_kbps", "edge", "clients"]
    left = None if unserved is None else pd.DataFrame([("A", "v", 2000.0, unserved)], columns=UNSERVED)
    tree = pd.DataFrame([("v", 2000.0, "S", "E")], columns=["channel", "bitrate_kbps", "tail", "head"])
    return Trees(trees=tree, viewers=pd.DataFrame(rows, columns=columns), unserved=left)


UNSERVED = ["group", "channel", "bitrate_kbps", "clients"]
QUICK_DEADLINE = unicast.Deadline.of(QUICK)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (plan_of(("A", "E", 0.5)), "viewers row 1: clients must be a whole number"),
        (plan_of(("A", "E2", 1.0)), "viewers row 1: E2 does not receive v/2000"),
        (plan_of(("A", "E", 301.0)), "viewers: serve 301 clients of v/2000 to A, must be at most 300"),
        (plan_of(("A", "E", 1.0), ("A", "E", 2.0)), "viewers row 1: the edge has two rows"),
        (plan_of(("C", "E", 1.0)), "viewers row 1: E->C is no link of the problem"),
        (plan_of(("A", "E", 9.0), unserved=300.0), "unserved row 1: clients is 300, must be 291"),
    ],
)
def test_a_plan_that_breaks_a_rule_of_viewers_is_rejected(plan: Trees, message: str) -> None:
    with pytest.raises(PlanRejected, match=message.replace("(", r"\(")):
        check(two_edges(), plan)


def test_trees_end_at_edges_and_an_overload_degrades_the_viewers_of_its_link_only() -> None:
    item = two_edges()
    tree = pd.DataFrame(
        [("v", 2000.0, "S", "E"), ("v", 2000.0, "E", "A")],
        columns=["channel", "bitrate_kbps", "tail", "head"],
    )
    with pytest.raises(PlanRejected, match="trees row 2: E->A leads to a group, must be a row of viewers"):
        check(item, replace(plan_of(), trees=tree))
    both = pd.DataFrame(
        [("v", 2000.0, "S", "E"), ("v", 2000.0, "S", "E2")],
        columns=["channel", "bitrate_kbps", "tail", "head"],
    )
    plan = replace(plan_of(("A", "E", 51.0), ("A", "E2", 30.0)), trees=both)
    (row,) = check(item, plan).frame.to_dict(orient="records")
    assert (row["limit"], row["where"], row["amount"], row["allowed"]) == ("capacity", "E->A", 102.0, 100.0)
    metrics = measure(item, plan, None)
    assert (metrics["degraded_clients"], metrics["unserved_clients"]) == (51, 220)
    assert metrics["average_bitrate_kbps"] == pytest.approx(2000 * 30 / 301)


def test_a_plan_has_viewers_where_the_last_hop_is_unicast_and_only_there() -> None:
    tables = plan_of(("A", "E", 1.0)).to_tables()
    with pytest.raises(InputError, match="viewers: the plan has no such table"):
        from_tables(two_edges(), {"trees": tables["trees"]})
    with pytest.raises(InputError, match="viewers: the plan is for a unicast last hop"):
        from_tables(adjust(two_edges(), last_hop="multicast"), tables)
    assert compute_delivery(two_edges(), from_tables(two_edges(), tables)).clients.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clients": 2.5}, "requests row 1: clients is 2.5, must be a whole number"),
        ({"last_hop": "anycast"}, "last_hop"),
        ({"lowest": 1000.0}, "requests row 1: lowest_kbps is 1000, must be bitrate_kbps (2000) or blank"),
        (
            {"pinned": ("v", "*", "E", "A")},
            "pinned row 1: E->A leads to a group, must be a link between clusters",
        ),
    ],
)
def test_what_does_not_go_with_a_unicast_last_hop_is_one_line(
    change: dict[str, object], message: str
) -> None:
    item = two_edges()
    requests, rules = item.requests, {}
    if "clients" in change:
        requests = requests.assign(clients=[change["clients"], 1.0])
    if "lowest" in change:
        requests = requests.assign(lowest_kbps=[change["lowest"], 2000.0])
        objects = pd.DataFrame({"channel": "v", "bitrate_kbps": [2000.0, 1000.0], "priority": 1.0})
        rules["objects"] = objects
    if "pinned" in change:
        columns = ["channel", "bitrate_kbps", "tail", "head"]
        rules["pinned"] = pd.DataFrame([change["pinned"]], columns=columns)
    if "last_hop" in change:
        rules["settings"] = item.settings.assign(last_hop=change["last_hop"])
    with pytest.raises(InputError) as caught:
        replace(item, requests=requests, **rules)
    assert len(caught.value.faults) == 1
    assert message in str(caught.value)


def test_parameters_that_do_not_go_with_it_are_refused_by_name() -> None:
    designs = {design.name: design for design in DESIGNS}
    with pytest.raises(InputError, match="lower_bitrates: with last_hop = unicast"):
        designs["cdn"].decide(two_edges(), lower_bitrates=True)
    with pytest.raises(InputError, match="most_moved counts trees that reach groups"):
        designs["vdn"].decide(two_edges(), most_moved=1)


def test_service_for_all_names_the_group_whose_links_are_too_small() -> None:
    (line,) = report_unreachable(two_edges())
    assert line.endswith(
        "the viewers of group 'A' need 600 Mbit/s with a stream each (last_hop = unicast), and its links "
        "have 160 Mbit/s"
    )
    assert report_unreachable(two_edges(80.0)) == []
    designs = {design.name: design for design in DESIGNS}
    everyone = designs["optimum"].decide(two_edges(80.0), options=Options(service="all"))
    assert everyone.plan is not None
    assert everyone.proof.objective == pytest.approx(81 - 0.224)


def test_pins_are_served_to_all_of_their_clients_first() -> None:
    item = two_edges(20.0)
    rule = pd.DataFrame([("v", "*", "*", "*")], columns=["channel", "bitrate_kbps", "tail", "head"])
    pinned = replace(item, pinned=rule)
    for name in ("cdn", "overlay_multicast", "vdn"):
        (design,) = (each for each in DESIGNS if each.name == name)
        decision = design.run(design.observe(pinned), options=QUICK, previous=None)
        assert decision.plan is not None
        assert not len(check(pinned, decision.plan))
        assert measure(pinned, decision.plan, None)["unserved_clients"] == 0


def test_plans_on_degraded_information_are_realized_within_the_true_links() -> None:
    item = replace(
        two_edges(), clusters=two_edges().clusters.assign(latitude=40.0, longitude=[0.0, 1.0, 2.0, 3.0, 3.1])
    )
    for name, information in (
        ("vdn", {"noise": 0.5, "seed": 3}),
        ("vdn", {"granularity_km": 500.0}),
        ("hybrid", {"age_s": 30.0, "noise": 0.5}),
        ("centralized", {"age_s": 20.0}),
        ("cdn", {"age_s": 5.0, "noise": 0.5}),
    ):
        (design,) = (each for each in DESIGNS if each.name == name)
        observed = design.observe(item, **information)
        decision = design.run(observed, options=QUICK, previous=None)
        assert decision.plan is not None
        plan = SYSTEM.plan.realize(item, observed, decision.plan)
        assert not len(check(item, plan)), name
        assert 30 <= compute_delivery(item, plan).clients.sum() <= 81, name
        assert design.signalling is not None
        assert design.signalling(item, plan).bytes >= 0


def test_the_open_model_counts_viewers() -> None:
    model = open_model(two_edges())
    start = model.start(QUICK)  # type: ignore[misc]
    assert start is not None
    assert sorted(start.tolist()) == [1, 1, 1, 30, 50]
    assert measure(two_edges(), model.read(start), None)["unserved_clients"] == 220


def test_the_map_the_facts_of_a_link_and_failures_count_streams_of_viewers() -> None:
    item = two_edges()
    decision = optimum.distribute(item)
    assert decision.plan is not None
    decided = Decided(
        design=DESIGNS[1],
        parameters={},
        decision=decision,
        metrics=measure(item, decision.plan, None),
    )
    facts = {fact.label: fact.value for fact in describe_link(item, decided, "E->A", QUICK).facts}
    assert (facts["Load"], facts["Viewers with a stream each"]) == (100.0, 50.0)
    facts = {fact.label: fact.value for fact in describe_cluster(item, decided, "E2", QUICK).facts}
    assert facts["Clients served from here"] == 31
    drawing = draw(item, decision.plan)[0]
    assert isinstance(drawing, NetworkMap)
    lost = drawing.nodes.set_index("node")["lost"]
    assert (lost["A"], lost["B"]) == (220, 0)
    assert "60 of 60 Mbit/s" in set(drawing.links["note"])
    failed = remove_failed(item, clusters=("E",))
    after = optimum.distribute(failed).plan
    assert after is not None
    assert compute_delivery(failed, after).clients.tolist() == [30, 1]


def test_explain_counts_the_requests_served_in_part_and_by_several_edges() -> None:
    item = two_edges()
    decision = optimum.distribute(item)
    assert decision.plan is not None
    section, sentence = report_last_hop(item, compute_delivery(item, decision.plan))
    assert sentence == (
        "Each viewer takes a stream of its own over the last hop: 1 of 2 requests is served in part, "
        "1 request is served by several edges."
    )
    row = section.frame.iloc[0]
    assert (row["group"], row["clients"], row["unserved_clients"]) == ("A", 300, 220)
    assert (row["load_mbps"], row["capacity_mbps"]) == (160, 160)


def test_without_time_there_is_still_a_plan_within_the_bound() -> None:
    item = two_edges()
    decision = unicast.distribute(item, options=Options(time_limit_s=1e-6, threads=1))
    assert decision.plan is not None
    assert not len(check(item, decision.plan))
    assert compute_delivery(item, decision.plan).clients.tolist() == [80, 1]
    assert decision.proof.bound is not None
    assert decision.proof.bound >= 81 - 0.224 - 1e-9
