"""The designs of system `consolidation`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design, Mechanism
from planner_models.consolidation import information
from planner_models.consolidation.designs import fit_rules, one_host, patterns

DESIGNS: Final = (
    Design(
        name="patterns",
        title="Patterns of hosts",
        decide=patterns.plan,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Gilmore and Gomory 1961 (column generation)",
        messages="all machines, and all hosts with their nodes",
        signalling=information.signal_all,
    ),
    Design(
        name="best_fit",
        title="Best fit",
        decide=fit_rules.plan_best_fit,
        observe=information.observe,
        source="Johnson 1973",
        messages="each machine as it comes; free capacity of all hosts",
        signalling=information.signal_hosts,
    ),
    Design(
        name="first_fit",
        title="First fit",
        decide=fit_rules.plan_first_fit,
        observe=information.observe,
        source="Johnson 1973",
        messages="each machine as it comes; free capacity of all hosts",
        signalling=information.signal_hosts,
    ),
    Design(
        name="spread",
        title="Spreading",
        decide=fit_rules.plan_spread,
        observe=information.observe,
        source="Deehr et al. 2014, Table 3",
        messages="each machine as it comes; free capacity of all hosts",
        signalling=information.signal_hosts,
    ),
    Design(
        name="percentage",
        title="Percentage kept free",
        decide=fit_rules.plan_percentage,
        observe=information.observe,
        source="VMware, vSphere Availability (admission control)",
        messages="each machine as it comes; free capacity of all hosts",
        signalling=information.signal_hosts,
    ),
    Design(
        name="max_min",
        title="Largest lowest throughput",
        decide=one_host.plan_max_min,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Deehr et al. 2014, 1.1",
        messages="all machines, and all hosts with their nodes",
        signalling=information.signal_all,
    ),
    Design(
        name="max_sum",
        title="Largest sum of throughputs",
        decide=one_host.plan_max_sum,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Deehr et al. 2014, 2.1.3",
        messages="all machines, and all hosts with their nodes",
        signalling=information.signal_all,
    ),
)
