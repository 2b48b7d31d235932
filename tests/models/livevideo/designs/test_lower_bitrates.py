"""Denied clients request lower bitrates: by hand, against enumeration, and for every design."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.livevideo import SYSTEM, LiveVideo, check, measure
from planner_models.livevideo.designs import DESIGNS
from planner_models.livevideo.plan.check import compute_delivery, received_mbps
from planner_models.livevideo.plan.plan import build_plan
from tests.models.livevideo.networks import problem, problems

TIERS = {"S": "source", "E": "edge", "A": "group", "B": "group"}


def ladder() -> LiveVideo:
    """Return a channel requested at the highest of three bitrates, and links that carry the lower two."""
    return problem(
        [("S", "E", 3.0, 1.0), ("E", "A", 9.0, 0.0), ("E", "B", 1.0, 0.0)],
        [("v", 400.0, 1.0), ("v", 1000.0, 1.0), ("v", 4000.0, 1.0)],
        [("A", "v", 4000.0, 2.0), ("B", "v", 4000.0, 3.0)],
        tiers=TIERS,
    )


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_clients_step_down_to_the_first_bitrate_that_fits(design: object) -> None:
    item = ladder()
    plain = design.decide(item)  # type: ignore[attr-defined]
    assert measure(item, plain.plan, None)["clients_served"] == 0.0
    decision = design.decide(item, lower_bitrates=True)  # type: ignore[attr-defined]
    assert not len(check(item, decision.plan))
    metrics = measure(item, decision.plan, None)
    assert metrics["clients_at_bitrate"] == 0.0
    assert metrics["clients_served"] == 100.0
    assert metrics["lower_bitrate_clients"] == 5.0
    assert metrics["unserved_clients"] == 0.0
    assert metrics["delivered_kbps"] == 1000.0
    assert decision.plan.unserved["clients"].sum() == 5.0  # at the bitrates that they requested first
    assert decision.proof.objective == metrics["service_minus_cost"]


@pytest.mark.slow
@given(problems(), st.sampled_from(DESIGNS))
def test_no_plan_with_lower_bitrates_beats_its_bound_or_breaks_a_rule(one: LiveVideo, design: object) -> None:
    seen = design.observe(one)  # type: ignore[attr-defined]
    decision = design.decide(seen, lower_bitrates=True)  # type: ignore[attr-defined]
    if decision.plan is None:
        return
    plan = SYSTEM.plan.realize(one, seen, decision.plan)
    broken = check(one, plan)
    claimed = {"capacity", "forbidden", "pinned"} if decision.guarantees is None else decision.guarantees
    assert not set(broken.frame["limit"]) & set(claimed)
    objective = measure(one, plan, None)["service_minus_cost"] or 0.0
    if decision.proof.bound is not None and decision.guarantees is None:
        assert objective <= decision.proof.bound + 1e-9


@given(problems(), st.integers(0, 10**6))
def test_received_bitrates_are_those_of_a_search_request_by_request(one: LiveVideo, seed: int) -> None:
    random = np.random.default_rng(seed)
    sent: set[tuple[int, int]] = set()
    rows: list[tuple[int, int]] = []
    for item in range(len(one.objects)):
        for link in np.argsort(one.level[one.tail], kind="stable").tolist():
            tail, head = int(one.tail[link]), int(one.head[link])
            has = one.level[tail] == 0 or (item, tail) in sent
            if has and (item, head) not in sent and random.random() < 0.6:
                sent.add((item, head))
                rows.append((item, link))
    pairs = np.array(rows, dtype=np.int64).reshape(-1, 2)
    plan = build_plan(one, pairs[:, 0], pairs[:, 1])
    delivery = compute_delivery(one, plan)
    over = delivery.load_mbps > one.capacity_mbps * (1 + 1e-9)
    parent = {(item, int(one.head[link])): link for item, link in rows}

    def is_intact(item: int, cluster: int) -> bool:
        while one.level[cluster] > 0:
            link = parent.get((item, cluster))
            if link is None or over[link]:
                return False
            cluster = int(one.tail[link])
        return True

    for q, value in enumerate(received_mbps(one, delivery).tolist()):
        requested, group = int(one.object[q]), int(one.group[q])
        rates = [
            float(one.bitrate_mbps[item])
            for item in range(len(one.objects))
            if one.channel_number[item] == one.channel_number[requested]
            and one.bitrate_mbps[item] <= one.bitrate_mbps[requested]
            and is_intact(item, group)
        ]
        assert value == max(rates, default=0.0)
