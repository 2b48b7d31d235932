"""Switching of bitrates in sessions: closed forms, a replay of its own, conservation, and wrong input."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.notes import observe_notes
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner_models.livevideo import SYSTEM, LiveVideo, Trees, check
from planner_models.livevideo.problem import generators
from planner_models.livevideo.simulation.control import simulate, simulate_designs
from planner_models.livevideo.simulation.events import Change, Control
from planner_models.livevideo.simulation.execution import DataPlane
from planner_models.livevideo.simulation.switching import COLUMNS, SwitchRule
from tests.models.livevideo import networks

QUICK = Options(time_limit_s=0.5, threads=1, gap=1e-3)
TIERS = {"s": "source", "e": "edge", "a": "group", "b": "group"}
RULE = SwitchRule(period_s=4.0)
LADDER = (2.0, 1.0, 0.5)


def line(*, link_mbps: float = 2.0, groups: tuple[str, ...] = ("a",)) -> LiveVideo:
    """Return a line of a source, an edge and groups, each with a channel of its own at three bitrates."""
    links = [("s", "e", link_mbps, 1.0), *(("e", group, 99.0, 0.0) for group in groups)]
    settings = {"service_weight": [1.0], "cost_weight": [1e-4], "chunk_s": [1e-3]}  # joins at once
    return networks.problem(
        links,
        [(f"v{group}", 1000 * rate, 1.0) for group in groups for rate in LADDER],
        [(group, f"v{group}", 2_000.0, 1.0) for group in groups],
        tiers={name: tier for name, tier in TIERS.items() if tier != "group" or name in groups},
        settings=pd.DataFrame(settings),
    )


def shares(*steps: tuple[float, float]) -> tuple[Change, ...]:
    """Return changes of the link out of the source to a share of its capacity, from a time on."""
    return tuple(Change(time_s=time, link=0, share=share) for time, share in steps)


def run(problem: LiveVideo, *, control: Control = "distributed", **parameters: Any) -> SimulationResult:
    return simulate(
        problem, control=control, stale_change=99.0, options=QUICK, **{"switching": RULE, **parameters}
    )


def steps_of(result: SimulationResult) -> list[tuple[float, str, float, float]]:
    columns = ["time_s", "group", "from_kbps", "to_kbps"]
    return [tuple(row) for row in result.tables["switches"][columns].itertuples(index=False)]


def test_a_client_goes_down_with_its_link_and_up_again() -> None:
    """From 10 to 21 s three quarters of 2 Mbit/s come: 1 Mbit/s from 12 s, and 2 Mbit/s again from 24 s."""
    result = run(line(), until_s=30.0, changes=shares((10.0, 0.75), (21.0, 1.0)))
    assert steps_of(result) == [(12.0, "a", 2_000.0, 1_000.0), (24.0, "a", 1_000.0, 2_000.0)]
    assert result.tables["switches"]["received_share"].tolist() == pytest.approx([0.875, 1.0])
    assert list(result.tables["switches"]) == list(COLUMNS)
    assert result.metrics["switches"] == 2.0
    (client,) = result.tables["clients"].itertuples()
    assert client.mean_kbps * 30.0 == pytest.approx(1000 * (10 * 2.0 + 2 * 1.5 + 12 * 1.0 + 6 * 2.0))
    assert client.stalled_s == pytest.approx(2 * 0.25)


def test_clients_who_do_not_switch_stall_all_the_time() -> None:
    result = run(line(), until_s=30.0, changes=shares((10.0, 0.75), (21.0, 1.0)), switching=None)
    assert "switches" not in result.tables
    assert "switches" not in result.metrics
    assert result.tables["clients"]["stalled_s"].tolist() == pytest.approx([11 * 0.25])


def test_a_share_above_the_limit_is_no_reason_to_switch() -> None:
    low = run(line(), until_s=30.0, changes=shares((10.0, 0.75)), switching=SwitchRule(period_s=4, below=0.7))
    assert low.tables["switches"].empty


def test_two_clients_share_what_a_link_has() -> None:
    """Both receive 80%, both go down one after the other, and the first has capacity to go up again."""
    item = line(link_mbps=4.0, groups=("a", "b"))
    item = item.with_requests(item.requests.assign(arrival_s=[0.0, 1.0]))
    result = run(item, until_s=40.0, changes=shares((10.0, 0.8)))
    assert steps_of(result) == [
        (12.0, "a", 2_000.0, 1_000.0),
        (13.0, "b", 2_000.0, 1_000.0),
        (16.0, "a", 1_000.0, 2_000.0),
    ]
    assert result.tables["overloads"]["lasted_s"].sum() == pytest.approx(2.0)


@pytest.mark.parametrize("control", ["centralized", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_a_controller_decides_on_what_clients_ask_for(control: Control) -> None:
    """Under centralized control clients wait for the next decision; with both, their clusters act at once."""
    result = run(
        line(link_mbps=4.0), control=control, until_s=60.0, period_s=5.0, computing_s=0.5,
        changes=shares((20.0, 0.4), (40.0, 1.0)),
    )  # fmt: skip
    (down, up) = steps_of(result)
    assert down[2:] == (2_000.0, 1_000.0)
    assert up[2:] == (1_000.0, 2_000.0)
    assert 20.0 < down[0] <= 20.0 + 4.0 + (6.0 if control == "centralized" else 0.0)
    assert 40.0 <= up[0] <= 40.0 + 4.0 + (6.0 if control == "centralized" else 0.0)
    assert result.tables["clients"]["bitrate_kbps"].tolist() == [2_000.0]


def replay(steps: list[tuple[float, float]], until_s: float, rule: SwitchRule) -> tuple[float, list[float]]:
    """Return the Mbit that a client alone on a link of 2 Mbit/s receives, and its bitrates in turn.

    Counts quarters of a second; changes of the link are not at these.
    """
    rung, megabits, watched, came = 0, 0.0, 0, 0.0
    rates = [LADDER[0]]
    capacity = 2.0
    quarters = round(until_s * 4)
    for quarter in range(quarters):
        begin, end = quarter / 4, (quarter + 1) / 4
        if quarter and quarter % round(rule.period_s * 4) == 0:
            share = came / watched
            new = rung
            if share < rule.below:
                came_mbps = share * LADDER[rung] + 1e-9
                new = next((n for n in range(rung + 1, 3) if LADDER[n] <= came_mbps), 2)
            elif share > 1 - 1e-9 and rung > 0 and LADDER[rung - 1] <= capacity + 1e-9:
                new = rung - 1
            if new != rung:
                rung = new
                rates.append(LADDER[rung])
            watched, came = 0, 0.0
        cuts = [begin, *(time for time, _ in steps if begin <= time < end), end]
        share = 0.0
        for left, right in itertools.pairwise(cuts):
            capacity = next((2.0 * part for time, part in reversed(steps) if time <= left), 2.0)
            share += 4 * (right - left) * min(1.0, capacity / LADDER[rung])
        watched += 1
        came += share
        megabits += 0.25 * share * LADDER[rung]
    return megabits, rates


@given(
    st.lists(st.tuples(st.integers(1, 78), st.sampled_from([0.3, 0.45, 0.7, 0.8, 0.97, 1.0])), max_size=6),
    st.sampled_from([1.0, 2.5, 4.0]),
    st.sampled_from([0.6, 0.95, 1.0]),
)
@settings(max_examples=25)
def test_a_replay_finds_the_same_bitrates(
    drawn: list[tuple[int, float]], period_s: float, below: float
) -> None:
    steps = [(half / 2 + 0.125, share) for half, share in sorted(dict(drawn).items())]
    rule = SwitchRule(period_s=period_s, below=below)
    result = run(line(), until_s=40.0, changes=shares(*steps), switching=rule)
    megabits, rates = replay(steps, 40.0, rule)
    table = result.tables["switches"]
    assert [2.0, *(table["to_kbps"] / 1000)] == rates
    assert result.tables["clients"]["mean_kbps"].tolist() == pytest.approx([1000 * megabits / 40.0])


def require_consistent(problem: LiveVideo, result: SimulationResult, rule: SwitchRule) -> None:
    """Check that streams and clients agree, and that each switch follows the rule."""
    trees, clients, switches = (result.tables[name] for name in ("trees", "clients", "switches"))
    check(problem, Trees(trees=trees, viewers=result.tables.get("viewers")))
    served = clients[clients["bitrate_kbps"] > 0]
    watching = Counter[tuple[str, str, float]]()
    number = served["viewers"] if "viewers" in served else np.ones(len(served))
    for row, count in zip(served.itertuples(), number, strict=True):
        watching[row.group, row.channel, row.bitrate_kbps] += count
    if problem.is_unicast:
        sent = result.tables["viewers"].groupby(["group", "channel", "bitrate_kbps"])["clients"].sum()
        assert watching == Counter(sent.to_dict())
    else:
        groups = set(problem.clusters.loc[problem.level == problem.group_level, "cluster"])
        last = trees[trees["head"].isin(groups)]
        assert set(watching) == set(zip(last["head"], last["channel"], last["bitrate_kbps"], strict=True))
    is_down = switches["to_kbps"] < switches["from_kbps"]
    assert (switches.loc[is_down, "received_share"] < rule.below).all()
    assert (switches.loc[~is_down, "received_share"] > 1 - 1e-6).all()
    rungs = sorted(set(problem.objects["bitrate_kbps"]))
    steps = switches["to_kbps"].map(rungs.index) - switches["from_kbps"].map(rungs.index)
    assert ((steps == 1) | is_down).all()


@pytest.mark.slow
@given(st.data(), st.sampled_from(["distributed", "centralized", "hybrid"]), st.integers(0, 99))
@settings(max_examples=25)
def test_streams_and_clients_agree(data: st.DataObject, control: Control, seed: int) -> None:
    item = generators.ec2_testbed(videos=data.draw(st.integers(3, 14)), link_mbps=4.0, seed=seed)
    core = np.flatnonzero(item.level[item.tail] < 2)
    changes = data.draw(
        st.lists(
            st.builds(
                lambda time, link, share: Change(time_s=time, link=int(core[link % len(core)]), share=share),
                st.floats(0, 25),
                st.integers(0, 99),
                st.sampled_from([0.0, 0.3, 0.6, 0.85, 1.0]),
            ),
            max_size=6,
        )
    )
    rule = SwitchRule(period_s=2.0)
    result = simulate(
        item, control=control, until_s=30.0, period_s=4.0, computing_s=1.0, changes=tuple(changes),
        stale_change=data.draw(st.sampled_from([0.2, 0.5])), switching=rule, options=QUICK, seed=seed,
    )  # fmt: skip
    require_consistent(item, result, rule)


def test_capacity_is_what_streams_leave() -> None:
    """Residual capacities after many switches are those of the streams, counted anew."""
    item = generators.ec2_testbed(videos=25, link_mbps=8.0)
    changes = tuple(
        Change(time_s=5.3 + 7 * n, link=link, share=share)
        for n, share in enumerate((0.85, 0.6, 1.0, 0.7, 1.0))
        for link in (0, 3)
    )
    execution = DataPlane(
        problem=item,
        control="distributed",
        changes=changes,
        stale_change=9.0,
        switching=SwitchRule(period_s=2.0),
    )
    execution.advance(60.0)
    assert len(execution.switches) > 5
    load = np.zeros(len(item.links))
    for o, link, count in execution.streams.carried():
        load[link] += count * item.bitrate_mbps[o]
    assert execution.streams.residual_mbps == pytest.approx(execution.capacity - load)


@pytest.mark.parametrize("control", ["distributed", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_viewers_of_a_unicast_last_hop_switch_one_by_one(control: Control) -> None:
    """Ten viewers of 2 Mbit/s share a last hop that falls from 20 to 17 Mbit/s: some of them go down."""
    item = networks.problem(
        [("s", "e", 99.0, 1.0), ("e", "a", 20.0, 0.0)],
        [("v", 1000 * rate, 1.0) for rate in LADDER],
        [("a", "v", 2_000.0, 10.0)],
        tiers={"s": "source", "e": "edge", "a": "group"},
    )
    tables = item.to_tables()
    item = LiveVideo.from_tables({**tables, "settings": tables["settings"].assign(last_hop="unicast")})
    changes = (Change(time_s=10.0, link=1, share=0.85), Change(time_s=60.0, link=1, share=1.0))
    result = run(item, control=control, until_s=100.0, computing_s=1.0, changes=changes, watch_s=50.0, seed=3)
    require_consistent(item, result, RULE)
    switches = result.tables["switches"]
    assert (switches["to_kbps"] < switches["from_kbps"]).any()
    assert (switches["to_kbps"] > switches["from_kbps"]).any()
    assert (switches["viewers"] == 1).all()


def of_design(problem: LiveVideo, **parameters: Any) -> SimulationResult:
    design = SYSTEM.design("distributed")
    return simulate_designs(
        problem, design=design, information={}, decision_parameters={}, options=QUICK, **parameters
    )


def test_the_assumed_rule_is_said() -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        of_design(line(), switch_s=4.0, switch_below=0.9)
    (note,) = notes
    assert note == (
        "assumed: a client that received less than 90% of its stream in 4 s requests the highest bitrate "
        "that would have come, one that received all of it the next higher one; the switch itself takes no "
        "time"
    )


@pytest.mark.parametrize(
    ("objects", "parameters", "message"),
    [
        (3, {"switch_below": 0.8}, "switch_below is 0.8, without effect while clients do not switch: set "),
        (3, {"switch_s": 4.0, "adapt": False}, "switch_s: clients request a single bitrate; set simulation."),
        (1, {"switch_s": 4.0}, "switch_s: every channel has a single bitrate, so that nobody switches"),
    ],
)
def test_wrong_input_is_one_line(objects: int, parameters: dict[str, Any], message: str) -> None:
    item = line()
    tables = item.to_tables()
    item = LiveVideo.from_tables({**tables, "objects": pd.DataFrame(tables["objects"].iloc[:objects])})
    with pytest.raises(InputError) as caught:
        of_design(item, **parameters)
    (fault,) = caught.value.faults
    assert fault.startswith(f"simulation.{message}")
