"""The designs of system `traffic`: observation, algorithm and coordination mechanism of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.traffic import information
from planner_models.traffic.designs import (
    auto_bandwidth,
    backup_paths,
    bgp_exits,
    concurrent_flow_fptas,
    cspf,
    drain,
    ecmp,
    fibbing,
    fixed,
    hedera,
    igp_shortcuts,
    link_weights,
    localflow,
    mptcp,
    ospf_areas,
    segment_routing,
    tunnels,
    unsplit,
    utility_maximization,
    valiant,
    weighted_ecmp,
)
from planner_models.traffic.designs.ecmp import tell_listing_time
from planner_models.traffic.designs.failure_robust import ffc, robust, teavar
from planner_models.traffic.designs.oblivious.oblivious import route as route_obliviously
from planner_models.traffic.designs.optimum.open_model import open_model
from planner_models.traffic.designs.optimum.optimum import model as optimum_model
from planner_models.traffic.designs.optimum.optimum import route as route_optimally
from planner_models.traffic.information import observe_locally, observe_reports
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.reservations import RESERVATION_COLUMNS
from planner_models.traffic.problem.symmetry import describe_asymmetry


def _name_priorities(problem: Traffic, parameters: Mapping[str, Any]) -> str:  # noqa: ARG001
    """Return the priorities of reservations in a problem, of which designs without reservations keep none."""
    is_given = any(name in problem.demands for name in RESERVATION_COLUMNS)
    return "priorities of reservations" if is_given else ""


def _name_limits(problem: Traffic, parameters: Mapping[str, Any]) -> str:
    """Return the limits of a problem, of which designs with routes of their own keep none."""
    has_latency = bool(np.isfinite(problem.max_latency_ms).any())
    limits = {
        "latency limits": has_latency,
        "rules": bool(problem.parsed_rules),
        "priorities of reservations": bool(_name_priorities(problem, parameters)),
    }
    return " and ".join(name for name, is_given in limits.items() if is_given)


def _name_ignored_priorities(problem: Traffic, parameters: Mapping[str, Any]) -> str:
    """Return the priorities of reservations in a problem, where a parameter says to ignore them."""
    is_ignored = parameters.get("priorities", "strict") == "ignored"
    return _name_priorities(problem, parameters) if is_ignored else ""


def _name_limits_off_paths(problem: Traffic, parameters: Mapping[str, Any]) -> str:
    """Return the limits of routes in a problem, unless the design takes given paths that keep them."""
    name = _name_limits if parameters.get("paths", "equal_cost") == "equal_cost" else _name_priorities
    return name(problem, parameters)


def _name_limits_without_tunnel(problem: Traffic, parameters: Mapping[str, Any]) -> str:
    """Return the limits of routes in a problem that demands without a tunnel do not keep."""
    limits = _name_limits(problem, parameters)
    if not limits or parameters.get("without_tunnel", "igp") != "igp":
        return _name_priorities(problem, parameters)
    return f"{limits} of demands without a tunnel"


def _tell_tunnel_time(problem: Traffic, parameters: Mapping[str, Any], limit_s: float) -> str:
    """Return the reason for which a time limit is too short for tunnels; "" if it may suffice."""
    is_igp = parameters.get("without_tunnel", "igp") == "igp"
    return tell_listing_time(problem, parameters, limit_s) if is_igp else ""


def _tell_shares_time(problem: Traffic, parameters: Mapping[str, Any], limit_s: float) -> str:
    """Return the reason for which a time limit is too short for TCP or a given plan; "" if it may suffice."""
    is_ecmp = parameters.get("rates", "given") == "given" and parameters.get("present") is None
    return "" if is_ecmp else tell_listing_time(problem, parameters, limit_s)


def _tell_asymmetry(problem: Traffic, parameters: Mapping[str, Any]) -> str:  # noqa: ARG001
    """Return for which demands the network is not symmetric, where designs are optimal on symmetric ones."""
    return describe_asymmetry(problem)


REPORTS: Final = "every node reports its links and the rates of its demands to a central "
_oblivious = partial(
    Design,
    signalling=no_signalling,
    ignores=_name_limits,
    outgrows=_tell_shares_time,
    messages="nodes flood link weights when the network changes",
)
_areas = partial(
    Design,
    signalling=no_signalling,
    ignores=_name_limits,
    outgrows=tell_listing_time,
)
_local = partial(
    Design,
    signalling=no_signalling,
    observe=observe_locally,
    mechanism=Mechanism.REACTION,
    ignores=_name_limits,
    outgrows=tell_listing_time,
    messages="each switch measures the flows it forwards itself; nodes flood link states when the network "
    "changes",
)
_central: Callable[..., Design[Any, Any]] = partial(
    Design,
    observe=observe_reports,
    mechanism=Mechanism.TRANSPARENCY,
    ignores=_name_priorities,
    signalling=information.signal_splits,
    messages=REPORTS + "controller, which sends every node its split ratios",
)
_hedera = partial(
    _central,
    signalling=information.signal_paths,
    ignores=_name_limits_off_paths,
    outgrows=tell_listing_time,
    messages="edge switches report flow counters to a central controller each period; the controller sends "
    "them the path of each flow that it moves",
)
DESIGNS: Final = (
    _central(
        name="optimum",
        title="Optimal routing",
        decide=route_optimally,
        source="Sen et al. 2013, equation (1)",
        model=optimum_model,
        open_model=open_model,
        keeps_previous=lambda parameters: parameters.get("most_moved") is not None,
    ),
    _oblivious(name="ecmp", title="Equal-cost multipath", decide=ecmp.route, source="RFC 2328, RFC 2992"),
    _oblivious(
        name="shortest_path", title="Single shortest path", decide=ecmp.route_single, source="RFC 2328"
    ),
    _oblivious(
        name="ecmp_hash",
        title="ECMP by hash of flows",
        decide=ecmp.route_hashed,
        outgrows=tell_listing_time,
        source="RFC 2992; Sen et al. 2013, section 7.2",
    ),
    _oblivious(
        name="weighted_ecmp",
        title="Weighted ECMP",
        decide=weighted_ecmp.route,
        outgrows=tell_listing_time,
        messages="nodes flood link weights and bandwidths when the network changes",
        source="RFC 2992",
    ),
    _oblivious(
        name="packet_scatter",
        title="Packet scatter",
        decide=ecmp.route,
        doubts=_tell_asymmetry,
        source="Sen et al. 2013, section 4.1",
    ),
    _areas(
        name="ospf_areas",
        title="Routing by OSPF areas",
        decide=ospf_areas.route,
        doubts=ospf_areas.describe_areas,
        mechanism=Mechanism.REACTION,
        messages="nodes flood link weights in their area, and border routers distances between areas, when "
        "the network changes",
        source="RFC 2328, 12.4.3 and 16.2; Mukerjee 2018, 1.2.2 (OSPF areas)",
    ),
    _areas(
        name="hot_potato",
        title="BGP, nearest exit",
        decide=bgp_exits.route_hot_potato,
        doubts=bgp_exits.describe_networks,
        messages="networks announce the networks on their paths when the network changes",
        source="RFC 4271, 9.1.2.2; Mukerjee 2018, 1.1",
    ),
    _areas(
        name="med",
        title="BGP with ranked entries",
        decide=bgp_exits.route_med,
        doubts=bgp_exits.describe_networks,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="networks announce the networks on their paths, and rank their entries by multi-exit "
        "discriminators, when the network changes",
        source="RFC 4271, 9.1.2.2; RFC 4451; Mukerjee 2018, 1.1",
    ),
    _areas(
        name="exchanged_cost",
        title="BGP with exchanged costs",
        decide=bgp_exits.route_exchanged_cost,
        doubts=bgp_exits.describe_networks,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="networks announce the networks on their paths, and what these cost, when the network "
        "changes",
        source="Mahajan et al. 2007 (Wiser); Mukerjee 2018, 1.2.2",
    ),
    _central(
        name="fibbing",
        title="Fibbing",
        decide=fibbing.route,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        ignores=_name_limits,
        outgrows=tell_listing_time,
        signalling=information.signal_lies,
        messages=REPORTS + "controller, which announces fake nodes to routers; after a failure it withdraws "
        "them, and routers find shortest paths again",
        source="Vissicchio et al. 2015; Mukerjee 2018, 1.2.2",
    ),
    Design(
        name="tunnels",
        title="Weighted tunnel routing",
        decide=tunnels.route,
        ignores=_name_limits_without_tunnel,
        outgrows=_tell_tunnel_time,
        signalling=no_signalling,
        messages="tunnels and their weights are configured; nodes flood link states when the network changes",
        source="RFC 3209, RFC 9256",
    ),
    _oblivious(
        name="valiant",
        title="Valiant routing",
        decide=valiant.route,
        outgrows=tell_listing_time,
        source="Zhang-Shen and McKeown 2004; Greenberg et al. 2009 (VL2)",
    ),
    _local(
        name="localflow",
        title="LocalFlow",
        decide=localflow.route,
        doubts=_tell_asymmetry,
        source="Sen et al. 2013, Algorithm 1 and section 4.3",
    ),
    _local(
        name="localflow_ns",
        title="LocalFlow without splits",
        decide=localflow.route_whole,
        source="Sen et al. 2013, sections 1 and 7.2 (LocalFlow-NS)",
    ),
    Design(
        name="cspf",
        title="Reservation (RSVP-TE)",
        decide=cspf.route,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        signalling=information.signal_reservations,
        messages="nodes flood the bandwidth that links have available at each priority; the source of each "
        "demand computes its path and reserves it hop by hop",
        source="RFC 3209, RFC 3630, RFC 4655",
    ),
    Design(
        name="auto_bandwidth",
        title="Reservation with auto-bandwidth",
        decide=auto_bandwidth.route,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        signalling=information.signal_reservations,
        keeps_previous=lambda _: True,
        messages="as of cspf; the source of each path measures its traffic in a window, and signals the path "
        "again where its bandwidth differs too much",
        source="RFC 3209, 2.4.4 and 4.6.4 (make before break); auto-bandwidth of routers",
    ),
    Design(
        name="igp_shortcuts",
        title="Reservation with IGP shortcuts",
        decide=igp_shortcuts.route,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        signalling=information.signal_reservations,
        messages="as of cspf for demands with a setup priority; others cost no messages",
        source="RFC 3906",
    ),
    Design(
        name="backup_paths",
        title="Reservation with backup path",
        decide=backup_paths.route,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        signalling=information.signal_reservations,
        messages="nodes flood the bandwidth that links have available at each priority; the source of each "
        "demand computes a first path and a backup path and reserves both hop by hop",
        source="RFC 4427, RFC 3209",
    ),
    _central(
        name="unsplit",
        title="Unsplit optimum",
        decide=unsplit.route,
        ignores=_name_ignored_priorities,
        signalling=information.signal_paths,
        messages=REPORTS + "controller, which sends the sources the path of each demand that it admits",
        source="Kolliopoulos 2007; Raghavan and Thompson 1987",
    ),
    _hedera(
        name="hedera_gff",
        title="Hedera, global first fit",
        decide=hedera.route_first_fit,
        source="Al-Fares et al. 2010 (Hedera), 4.2",
    ),
    _hedera(
        name="hedera_annealing",
        title="Hedera, annealing",
        decide=hedera.route_annealing,
        source="Al-Fares et al. 2010 (Hedera), 4.3",
    ),
    Design(
        name="mptcp",
        title="Multipath TCP",
        decide=mptcp.route,
        ignores=_name_limits_off_paths,
        outgrows=tell_listing_time,
        signalling=no_signalling,
        mechanism=Mechanism.REACTION,
        messages="end hosts infer congestion from their own lost packets",
        source="Raiciu et al. 2011; Sen et al. 2013, section 7.2",
    ),
    _central(
        name="weights",
        title="Link weight optimization",
        decide=link_weights.route,
        outgrows=tell_listing_time,
        ignores=_name_limits,
        signalling=information.signal_weights,
        messages=REPORTS + "planner, which configures link weights, which nodes flood",
        source="Fortz and Thorup 2000",
    ),
    _central(
        name="segment_routing",
        title="Segment routing",
        decide=segment_routing.route,
        ignores=_name_limits,
        signalling=information.signal_segments,
        messages=REPORTS + "controller, which sends the source of each demand off its shortest paths its "
        "segment lists",
        source="RFC 8402; Bhatia et al. 2015",
    ),
    _central(
        name="ffc",
        title="Forward fault correction",
        decide=ffc.route,
        outgrows=tell_listing_time,
        messages=REPORTS + "controller, which sends every source its paths and what is reserved on them; "
        "after a failure sources send over the paths that survive",
        source="Liu et al. 2014 (FFC)",
    ),
    Design(
        name="fixed",
        title="Fixed split",
        decide=fixed.route,
        outgrows=_tell_shares_time,
        signalling=no_signalling,
        messages="shares are configured once; nodes flood link states when the network changes",
        source="static routing, RFC 3209",
    ),
    Design(
        name="oblivious",
        title="Oblivious routing",
        decide=route_obliviously,
        signalling=no_signalling,
        messages="shares are configured once; nodes flood link states when the network changes",
        source="Applegate and Cohen 2003; Ben-Ameur and Kerivin 2005",
    ),
    _central(
        name="teavar",
        title="TeaVaR",
        decide=teavar.route,
        outgrows=tell_listing_time,
        messages=REPORTS + "controller, which sends every source its paths and what is reserved on them; "
        "after a failure sources send over the paths that survive",
        source="Bogle et al. 2019 (TEAVAR)",
    ),
    _central(
        name="robust",
        title="Failure-robust routing",
        decide=robust.route,
        outgrows=tell_listing_time,
        messages=REPORTS + "controller, which sends every node its split ratios and every demand its rate, "
        "and new split ratios after a failure",
        source="Kelley 1960; Onaga and Kakusho 1971",
    ),
    _central(
        name="drain",
        title="Drain for maintenance",
        decide=drain.route,
        outgrows=tell_listing_time,
        ignores=_name_limits,
        keeps_previous=lambda parameters: True,  # noqa: ARG005 - the present routes
        messages=REPORTS + "controller, which sends every node the split ratios of the demands that move",
        source="linear program of its own",
    ),
    _central(
        name="utility",
        title="Utility maximization",
        decide=utility_maximization.route,
        signalling=information.signal_splits_and_rates,
        messages="every node reports its links and its demands to a central controller, which sends every "
        "node its split ratios and every demand its rate",
        source="Sen et al. 2013, equation (1); Mo and Walrand 2000",
    ),
    _central(
        name="fptas",
        title="Approximation scheme",
        decide=concurrent_flow_fptas.route,
        source="Garg and Könemann 1998; Fleischer 2000",
    ),
)
