"""The designs of system `cdnrouting`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.cdnrouting import information
from planner_models.cdnrouting.designs import (
    bargain,
    cdn_options,
    hierarchical,
    isp_ranks,
    joint,
    reaction,
    separate,
)

DESIGNS: Final = (
    Design(
        name="joint",
        title="Joint planning",
        decide=joint.plan,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Jiang et al. 2009 (joint traffic engineering and server selection)",
        messages="all that CDN and ISP know",
        signalling=information.signal_all,
    ),
    Design(
        name="cdn_options",
        title="Choice among CDN options",
        decide=cdn_options.plan,
        observe=information.observe,
        mechanism=Mechanism.PRIORITY_RANKING,
        source="Mukerjee 2018, chapter 3 (VDX), applied to 1.1",
        messages="the CDN's first clusters for each location; the ISP's selection",
        signalling=information.signal_offers,
    ),
    Design(
        name="isp_ranks",
        title="Ranking by the ISP",
        decide=isp_ranks.plan,
        observe=information.observe,
        mechanism=Mechanism.PRIORITY_RANKING,
        source="Xie et al. 2008 (P4P); RFC 7285 (ALTO)",
        messages="the ISP's ranks or prices of clusters for each location",
        signalling=information.signal_ranks,
    ),
    Design(
        name="react_informed",
        title="Informed reaction",
        decide=reaction.plan_informed,
        observe=information.observe,
        mechanism=Mechanism.REACTION,
        source="Jiang et al. 2009 (partial cooperation)",
        messages="links, routes and background traffic, to the CDN",
        signalling=information.signal_network,
    ),
    Design(
        name="react_blind",
        title="Blind reaction",
        decide=reaction.plan_blind,
        observe=information.observe,
        mechanism=Mechanism.REACTION,
        source="Mukerjee 2018, 1.1 (reaction)",
        signalling=no_signalling,
    ),
    Design(
        name="hierarchical",
        title="Hierarchical partitioning",
        decide=hierarchical.plan,
        observe=information.observe,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        source="Mukerjee 2018, 1.1 (hierarchical partitioning)",
        messages="totals of clusters and the traffic of clients; the ISP's selection",
        signalling=information.signal_totals,
    ),
    Design(
        name="bargain",
        title="Nash bargaining",
        decide=bargain.plan,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Jiang et al. 2009 (Nash bargaining)",
        messages="all that CDN and ISP know",
        signalling=information.signal_all,
    ),
    Design(
        name="separate",
        title="Separate planning",
        decide=separate.plan,
        source="Mukerjee 2018, 1.1",
        signalling=no_signalling,
    ),
)
