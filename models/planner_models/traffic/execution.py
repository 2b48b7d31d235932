"""Traffic in time: flows come and go at the rates that TCP reaches, and a design reroutes them.

Between two events (a flow comes, a flow ends, a decision takes effect) every flow goes on at its
max-min fair rate over the links that it takes. A new flow starts on a route of its own choice; at
every interval a scheduler measures what each flow has sent and hands these rates to a design, whose
splits the flows that were measured take from then on.

source  Sen et al. 2013 (LocalFlow): the scheduling loop of section 3.2, the flow dynamics of
        sections 7.2.2 and 7.5; fluid, where the paper simulates packets
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from planner import loop
from planner.options import Options
from planner.system import Design
from planner_models.traffic.arrivals import ONE_EACH, Arrivals
from planner_models.traffic.flow_network import FlowNetwork, Start
from planner_models.traffic.flow_sizes import Sizes
from planner_models.traffic.problem import Traffic
from planner_models.traffic.scheduling import scheduler


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """What became of the flows.

    flows     flow, source, target, size_bytes, start_s, end_s (NaN where it goes on), sent_bytes
    rounds    the scheduler's rounds, see `planner.loop.Outcome`
    progress  at_s, sent_mbit: all that was sent until then, at each event; linear in between
    until_s   end of the run
    """

    flows: pd.DataFrame
    rounds: pd.DataFrame
    progress: pd.DataFrame
    until_s: float

    def throughput_mbps(self, since_s: float = 0.0) -> float:
        """What was sent from `since_s` to the end, by time."""
        at, sent = (self.progress[name].to_numpy() for name in ("at_s", "sent_mbit"))
        return float((sent[-1] - np.interp(since_s, at, sent)) / (self.until_s - since_s))

    def completion_s(self, since_s: float = 0.0) -> pd.Series:
        """How long each flow took that started at `since_s` or later and has ended.

        Those that go on at the end are left out, which leaves out large ones more than small ones.
        """
        flows = self.flows[(self.flows["start_s"] >= since_s) & self.flows["end_s"].notna()]
        return flows["end_s"] - flows["start_s"]


def simulate(
    problem: Traffic,
    *,
    sizes: Sizes,
    arrivals: Arrivals = ONE_EACH,
    until_s: float,
    design: Design | None = None,
    parameters: Mapping[str, Any] | None = None,
    sees: Mapping[str, Any] | None = None,
    interval_s: float = 0.05,
    computing_s: float = 0.0,
    link_s: float = 0.0,
    start: Start = "hashed",
    flow_cap_mbps: float = math.inf,
    settle_s: float = 0.0,
    seed: int = 0,
    options: Options = Options(),
) -> Simulation:
    """Flows over a network for `until_s` seconds, scheduled by a design at every interval.

    problem        its demands say between whom flows run, and how many of them (see `arrivals`)
    design         routes the flows as measured, see `scheduler`; None: they stay as they start
    parameters     of the design; sees: of what it sees
    computing_s    time that a decision takes; link_s: delay of measurements, and of decisions
    start          how a new flow goes until it is scheduled: "hashed" on one random equal-cost
                   path, "scattered" evenly over all of them
    flow_cap_mbps  most that one flow sends; links limit it too
    settle_s       rates are found again at once after every event (0), or only at multiples of
                   this: much faster where flows are many; a new flow then waits for its first rate
    seed           of flows and their first routes; same seed, same flows

    raises  InputError for times that are none, or a problem without demands
    source  Sen et al. 2013, sections 3.2, 7.2.2 and 7.5
    """
    network = FlowNetwork(
        problem,
        sizes=sizes,
        arrivals=arrivals,
        start=start,
        flow_cap_mbps=flow_cap_mbps,
        settle_s=settle_s,
        seed=seed,
    )
    controllers = []
    if design is not None:
        controllers.append(
            scheduler(
                problem,
                design,
                interval_s=interval_s,
                computing_s=computing_s,
                link_s=link_s,
                parameters=parameters,
                sees=sees,
                options=options,
            )
        )
    outcome = loop.run(network, controllers, until_s=until_s)
    return Simulation(
        flows=outcome.tables["flows"],
        rounds=outcome.rounds,
        progress=outcome.tables["progress"],
        until_s=until_s,
    )
