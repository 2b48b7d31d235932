"""A traffic problem's packets as an execution: balance of links and switches."""

from __future__ import annotations

import pytest

from planner.contract.frames import no_frames
from planner_models.packets.hops.network import PacketSettings
from planner_models.traffic.problem import generators
from planner_models.traffic.simulation.flow_arrivals import Lognormal, Poisson
from planner_models.traffic.simulation.flow_network import FlowDynamics, FlowSettings
from planner_models.traffic.simulation.packet_network import LinkFailure, PacketExecution, PacketFlows


@pytest.mark.parametrize(("mode", "fails"), [("hash", ()), ("scatter", ("edge-0-0->aggregation-0-0",))])
def test_what_enters_a_link_or_a_switch_leaves_it(mode: str, fails: tuple[str, ...]) -> None:
    """Short queues lose packets, a link is cut, and flows of UDP are among the others; then all end."""
    problem = generators.fat_tree(k=4, capacity_mbps=100.0, seed=1)
    execution = PacketExecution(
        problem,
        FlowDynamics(
            sizes=Lognormal(median_bytes=2e4, sigma=1.0), arrivals=Poisson(load=0.7), **vars(FlowSettings())
        ),
        PacketSettings(queue_packets=8),
        senders=PacketFlows(udp_share=0.25, udp_mbps=60.0, control="mixed"),
        failure=LinkFailure(fails=fails, fails_at_s=0.01, repair_s=0.005),
        mode=mode,
        until_s=0.02,
        recorder=no_frames(),
    )
    execution.advance(0.02)
    on_the_way = execution.record()["links"]
    assert (on_the_way["sent"] >= on_the_way["received"] + on_the_way["cut"]).all()
    execution.advance(1.0)
    tables = execution.record()
    links, flows = tables["links"], tables["flows"]
    assert flows["end_s"].notna().all()
    assert {"udp", "reno", "bbr"} <= set(flows["control"])
    assert (links["sent"] == links["received"] + links["cut"]).all()
    assert links["dropped"].sum() > 0
    ends = {*flows["source"], *flows["target"]}
    for switch in sorted(set(links["tail"]) - ends):  # it passes on what it gets, if the flow has not ended
        into, out = links["head"] == switch, links["tail"] == switch
        received = links.loc[into, "received"].sum()
        passed_on = links.loc[out, ["sent", "dropped"]].to_numpy().sum()
        assert 0.97 * received <= passed_on <= received
