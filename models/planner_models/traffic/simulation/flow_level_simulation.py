"""Flow-level discrete-event simulation with max-min fair rates, under the control of a design.

Between two events (a flow starts, a flow ends, a decision takes effect) every flow sends at its
max-min fair rate over the links of its route. A new flow starts on a hashed or scattered route; at
every interval a scheduler measures the rates of the active flows and gives them to a design, and
these flows take its split ratios from then on.

source  Sen et al. 2013 (LocalFlow): the scheduling loop of section 3.2, the flow dynamics of
        sections 7.2.2 and 7.5; fluid, where the paper simulates packets
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from planner.contract import control_loop
from planner.contract.parameters import spread
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.flow_network import FlowDynamics, FlowNetwork, LinkFrames
from planner_models.traffic.simulation.flow_scheduler import (
    ControlTiming,
    Scheduler,
    flow_controller,
    hashes_flows,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowRecord:
    """The record of a simulation.

    flows     table `flow_network.FLOWS`; end_s is NaN for flows that are still active
    rounds    the scheduler's rounds, see `planner.contract.control_loop.Outcome`
    progress  table `flow_network.PROGRESS`
    until_s   end of the run
    """

    flows: pd.DataFrame
    rounds: pd.DataFrame
    progress: pd.DataFrame
    until_s: float

    def throughput_mbps(self, since_s: float = 0.0) -> float:
        """Return the mean throughput from `since_s` to the end, Mbit/s."""
        time_s, sent = (self.progress[name].to_numpy() for name in ("at_s", "sent_mbit"))
        return float((sent[-1] - np.interp(since_s, time_s, sent)) / (self.until_s - since_s))

    def completion_s(self, since_s: float = 0.0) -> pd.Series:
        """Return the completion times of flows that started at `since_s` or later and have ended.

        Flows that are active at the end are left out: large ones more often than small ones.
        """
        flows = self.flows[(self.flows["start_s"] >= since_s) & self.flows["end_s"].notna()]
        return flows["end_s"] - flows["start_s"]


@spread(flows=FlowDynamics, scheduler=Scheduler(), timing=ControlTiming())
def simulate(
    problem: Traffic,
    *,
    flows: FlowDynamics,
    until_s: float,
    scheduler: Scheduler,
    timing: ControlTiming,
    frames: LinkFrames | None = None,
) -> FlowRecord:
    """Simulate flows over a network for `until_s` seconds, scheduled by a design at every interval.

    problem        its demands determine the ends of flows, and their number (see `arrivals`)
    design         reroutes the measured flows, see `flow_controller`; None: routes stay as at the start
    frames         draw what links carry; None: nothing is drawn

    raises  InputError for invalid times, or a problem without demands
    source  Sen et al. 2013, sections 3.2, 7.2.2 and 7.5
    """
    if scheduler.design is not None and hashes_flows(scheduler.design):
        flows = replace(flows, start="hashed")
    network = FlowNetwork(problem, flows, frames)
    controllers = []
    if scheduler.design is not None:
        controllers.append(flow_controller(problem, **vars(scheduler), **vars(timing)))
    outcome = control_loop.run(network, controllers, until_s=until_s)
    if frames is not None:
        frames.finish()
    return FlowRecord(
        flows=outcome.tables["flows"],
        rounds=outcome.rounds,
        progress=outcome.tables["progress"],
        until_s=until_s,
    )
