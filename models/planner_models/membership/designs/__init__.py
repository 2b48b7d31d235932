"""The designs of system `membership`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.membership import information
from planner_models.membership.designs import fenced, omniscient, planned, raft, reported

DESIGNS: Final = (
    Design(
        name="planned",
        title="Planned placement",
        decide=planned.plan,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Ongaro and Ousterhout 2014 (Raft), with places and timeouts by search",
        messages="failures and delays of all sites, to one planner",
        signalling=information.signal_plan,
    ),
    Design(
        name="raft",
        title="Raft as usual",
        decide=raft.plan,
        mechanism=Mechanism.TRANSPARENCY,
        source="Ongaro and Ousterhout 2014; etcd: Tuning (100 and 1,000 ms)",
        messages="requests for votes, and votes",
        signalling=information.signal_votes,
    ),
    Design(
        name="phi_accrual",
        title="Phi-accrual detection",
        decide=raft.plan_phi,
        mechanism=Mechanism.REACTION,
        source="Hayashibara et al. 2004; Akka: defaults (1 s, phi 8, pauses of 3 s)",
        messages="heartbeats, requests for votes, and votes",
        signalling=information.signal_votes,
    ),
    Design(
        name="leases",
        title="Leasing by managers",
        decide=reported.plan_leases,
        mechanism=Mechanism.REACTION,
        source="Hunt et al. 2010 (ZooKeeper); Burrows 2006 (Chubby)",
        messages="pings of sessions, and reports of managers",
        signalling=information.signal_reports,
    ),
    Design(
        name="kill_host",
        title="Host stopping",
        decide=reported.plan_kill_host,
        mechanism=Mechanism.REACTION,
        source="Leners et al. 2011 (Falcon); Fetzer 2003 (STONITH)",
        messages="heartbeats, and reports of managers",
        signalling=information.signal_reports,
    ),
    Design(
        name="fenced",
        title="Fenced by switches",
        decide=fenced.plan_fenced,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        source="Leners et al. 2015 (Albatross), 5.3",
        messages="failures of links and hosts, rules of fences, and reports of managers",
        signalling=information.signal_reports,
    ),
    Design(
        name="fenced_planned",
        title="Fenced, planned",
        decide=fenced.plan_fenced_planned,
        observe=information.observe,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        source="Leners et al. 2015, with places, granularities and bits by search",
        messages="failures of all sites and ports to one planner, and reports of managers",
        signalling=information.signal_reports,
    ),
    Design(
        name="short_timeouts",
        title="Short timeout",
        decide=reported.plan_short_timeouts,
        mechanism=Mechanism.REACTION,
        source="Leners et al. 2015, 7.1 (RAMCloud before Albatross)",
        signalling=no_signalling,
    ),
    Design(
        name="omniscient",
        title="All failures known",
        decide=omniscient.bound_all,
        mechanism=Mechanism.TRANSPARENCY,
        source="a relaxation: no detection, no quorum",
        messages="every failure as it happens; no members are placed",
        is_bound=True,
    ),
)
