"""Topologies that are no chain of tiers: their optimum by enumeration, and wrong input."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.designs import distributed, dns, optimum, vdn
from planner_models.livevideo.problem.generators import ec2_testbed
from planner_models.livevideo.problem.relays import add_relays, read_any_topology

EXACT = Options(time_limit_s=20, threads=1, gap=0.0)
Tables = dict[str, pd.DataFrame]


def tables_of(links: list[tuple[str, str, float, float]], requests: list[tuple[str, str]]) -> Tables:
    """Return tables of channels v and w of 2 and 1 Mbit/s."""
    names = sorted({end for link in links for end in link[:2]})
    return {
        "clusters": pd.DataFrame({"cluster": names, "tier": [name[0] for name in names]}),
        "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps", "cost"]),
        "objects": pd.DataFrame({"channel": ["v", "w"], "bitrate_kbps": [2_000.0, 1_000.0]}),
        "requests": pd.DataFrame(requests, columns=["group", "channel"]).assign(
            bitrate_kbps=[2_000.0 if channel == "v" else 1_000.0 for _, channel in requests], clients=1.0
        ),
        "settings": pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.05]}),
    }


@st.composite
def topologies(draw: st.DrawFn) -> Tables:
    """Draw a source, three inner clusters with links in any order without a cycle, and two groups."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    order = ["s", "a", "b", "c", "g", "h"]
    pairs = [("s", "a"), ("s", "g"), ("a", "h")]
    pairs += [
        (tail, head)
        for tail, head in itertools.combinations(order, 2)
        if tail not in "gh" and (tail, head) not in pairs and rng.random() < 0.45
    ]
    fed = {head for _, head in pairs}
    pairs = [(tail, head) for tail, head in pairs if tail == "s" or tail in fed]
    links = [(tail, head, float(rng.integers(1, 4)), float(rng.integers(0, 6))) for tail, head in pairs]
    requests = [("g", "v"), ("h", "v"), ("g", "w"), ("h", "w")]
    return tables_of(links, [requests[i] for i in sorted(rng.permutation(4)[:3])])


def best_by_force(tables: Tables) -> float:
    """Return the best value of all plans of Fig. 4.8 on the given links: all choices of parents."""
    links = list(tables["links"].itertuples(index=False))
    inner = sorted({link.head for link in links})
    plans = []
    for channel, rate in (("v", 2.0), ("w", 1.0)):
        trees = []
        for parents in itertools.product(
            *([None, *(n for n, x in enumerate(links) if x.head == c)] for c in inner)
        ):
            used = [n for n in parents if n is not None]
            graph = nx.DiGraph([(links[n].tail, links[n].head) for n in used])
            graph.add_node("s")
            fed = nx.descendants(graph, "s") | {"s"}
            if all(links[n].tail in fed for n in used):
                wanting = tables["requests"].loc[tables["requests"]["channel"] == channel, "group"]
                value = sum(group in fed for group in wanting)
                cost = sum(links[n].cost for n in used) * rate
                trees.append((value - 0.05 * cost, dict.fromkeys(used, rate)))
        plans.append(trees)
    return max(
        first + second
        for (first, one), (second, other) in itertools.product(*plans)
        if all(one.get(n, 0) + other.get(n, 0) <= links[n].capacity_mbps for n in {*one, *other})
    )


@given(topologies())
@settings(max_examples=25)
def test_the_optimum_is_that_of_the_given_links(tables: Tables) -> None:
    item = LiveVideo.from_tables(add_relays(tables))
    decision = optimum.distribute(item, options=EXACT)
    assert decision.plan is not None
    expected = best_by_force(tables)
    assert measure(item, decision.plan, None)["service_minus_cost"] == pytest.approx(expected)
    for design in (vdn.distribute, dns.distribute, distributed.distribute):
        plan = design(item).plan
        assert plan is not None
        assert not len(check(item, plan))
        value = measure(item, plan, None)["service_minus_cost"]
        assert value is not None
        assert value <= expected + 1e-9


def test_a_chain_of_tiers_stays_as_it_is() -> None:
    tables = ec2_testbed(videos=5).to_tables()
    notes: list[str] = []
    with observe_notes(notes.append):
        made = add_relays(tables)
    assert notes == []
    for name, table in tables.items():
        pd.testing.assert_frame_equal(made[name].reset_index(drop=True), table, check_dtype=False)


def skipping() -> Tables:
    """Return a source with a direct link to an edge beside one over a reflector."""
    return tables_of(
        [("s", "r", 1.0, 1.0), ("r", "e", 1.0, 1.0), ("s", "e", 2.0, 5.0), ("e", "g", 9.0, 0.0)],
        [("g", "v"), ("g", "w")],
    )


def test_a_link_that_skips_a_tier_passes_a_relay() -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        made = add_relays(skipping())
    assert made["clusters"].set_index("cluster")["tier"].to_dict() == {
        "e": "e", "g": "g", "r": "r", "s": "s", "s~e": "r"
    }  # fmt: skip
    rows = {(row.tail, row.head): (row.capacity_mbps, row.cost) for row in made["links"].itertuples()}
    assert rows["s", "s~e"] == (2.0, 0.0)
    assert rows["s~e", "e"] == (2.0, 5.0)
    assert ("s", "e") not in rows
    (note,) = notes
    assert note == (
        "assumed: links over several levels pass 1 relay, clusters without limits or costs, named after the "
        "link; Algorithm 1 counts them as hops"
    )
    plan = optimum.distribute(LiveVideo.from_tables(made), options=EXACT).plan
    assert plan is not None
    assert {("s~e", "e"), ("r", "e")} <= set(zip(plan.trees["tail"], plan.trees["head"], strict=True))


def test_rules_hold_on_the_pieces_of_a_link() -> None:
    rule = pd.DataFrame({"channel": ["v"], "bitrate_kbps": ["*"], "tail": ["s"], "head": ["e"]})
    pinned = add_relays({**skipping(), "pinned": rule})["pinned"]
    assert list(zip(pinned["tail"], pinned["head"], strict=True)) == [("s", "s~e"), ("s~e", "e")]
    forbidden = add_relays({**skipping(), "forbidden": rule})
    assert forbidden["forbidden"][["tail", "head"]].to_numpy().tolist() == [["s~e", "e"]]
    plan = optimum.distribute(LiveVideo.from_tables(forbidden), options=EXACT).plan
    assert plan is not None
    assert "v" not in set(plan.trees["channel"])


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([("s", "r", 1.0, 1.0), ("r", "q", 1.0, 1.0), ("q", "r", 1.0, 1.0), ("r", "g", 1.0, 1.0)],
         "links: links form a cycle: q -> r -> q; streams go one way, leave out one of these links"),
        ([("s", "g", 1.0, 1.0), ("g", "h", 1.0, 1.0)],
         "links row 2: leads out of the group 'g': groups only receive"),
        ([("s", "r", 1.0, 1.0), ("g", "r", 0.0, 0.0)],
         "links row 2: leads out of the group 'g': groups only receive"),
    ],
)  # fmt: skip
def test_wrong_topologies_are_one_line(links: list[tuple[str, str, float, float]], message: str) -> None:
    with pytest.raises(InputError) as caught:
        add_relays(tables_of(links, [("g", "v")]))
    assert caught.value.faults == (message,)


def test_a_star_in_a_rule_and_a_relays_name_are_refused() -> None:
    rule = pd.DataFrame({"channel": ["v"], "bitrate_kbps": ["*"], "tail": ["*"], "head": ["e"]})
    with pytest.raises(InputError, match="name tail and head"):
        add_relays({**skipping(), "forbidden": rule})
    tables = skipping()
    added = pd.DataFrame({"cluster": ["s~e"], "tier": ["s"]})
    clusters = pd.concat([tables["clusters"], added], ignore_index=True)
    with pytest.raises(InputError, match="'s~e' is the name of a relay here"):
        add_relays({**tables, "clusters": clusters})


def test_a_cluster_that_nobody_feeds_is_no_source_unless_its_tier_says_so() -> None:
    tables = skipping()
    clusters = pd.concat([tables["clusters"], pd.DataFrame({"cluster": ["e9"], "tier": ["e"]})])
    with pytest.raises(
        InputError, match="'e9' has no link into it, as sources have, and other clusters of its"
    ):
        add_relays({**tables, "clusters": clusters.reset_index(drop=True)})


def test_a_folder_is_read(tmp_path: Path) -> None:
    for name, table in skipping().items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    item = read_any_topology(path=tmp_path)
    assert len(item.links) == 5
    assert len(item.clusters) == 5
