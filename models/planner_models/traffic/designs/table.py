"""The designs of system `traffic`: observation, algorithm and coordination mechanism of each."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.traffic.designs import (
    concurrent_flow_fptas,
    ecmp,
    hedera,
    link_weights,
    localflow,
    mptcp,
    optimum,
    utility_maximization,
    valiant,
)
from planner_models.traffic.information import signalling
from planner_models.traffic.information.observe import observe_locally, observe_reports

DESIGNS: Final = (
    Design(
        name="optimum",
        decide=optimum.route,
        signalling=signalling.signal_splits,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node reports its links and the rates of its demands to a central controller, "
        "which sends every node its split ratios",
        source="Sen et al. 2013, equation (1)",
        model=optimum.model,
    ),
    Design(
        name="ecmp",
        decide=ecmp.route,
        signalling=no_signalling,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2328, RFC 2992",
    ),
    Design(
        name="shortest_path",
        decide=ecmp.route_single,
        signalling=no_signalling,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2328",
    ),
    Design(
        name="ecmp_hash",
        decide=ecmp.route_hashed,
        signalling=no_signalling,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2992; Sen et al. 2013, section 7.2",
    ),
    Design(
        name="packet_scatter",
        decide=ecmp.route,
        signalling=no_signalling,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="Sen et al. 2013, section 4.1",
    ),
    Design(
        name="valiant",
        decide=valiant.route,
        signalling=no_signalling,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="Zhang-Shen and McKeown 2004; Greenberg et al. 2009 (VL2)",
    ),
    Design(
        name="localflow",
        decide=localflow.route,
        signalling=no_signalling,
        observe=observe_locally,
        mechanism=Mechanism.REACTION,
        messages="each switch measures the flows it forwards itself; nodes flood link states when the "
        "network changes",
        source="Sen et al. 2013, Algorithm 1 and section 4.3",
    ),
    Design(
        name="localflow_ns",
        decide=localflow.route_whole,
        signalling=no_signalling,
        observe=observe_locally,
        mechanism=Mechanism.REACTION,
        messages="each switch measures the flows it forwards itself; nodes flood link states when the "
        "network changes",
        source="Sen et al. 2013, sections 1 and 7.2 (LocalFlow-NS)",
    ),
    Design(
        name="hedera_gff",
        decide=hedera.route_first_fit,
        signalling=signalling.signal_paths,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="edge switches report flow counters to a central controller each period; the controller "
        "sends them the path of each flow that it moves",
        source="Al-Fares et al. 2010 (Hedera), 4.2",
    ),
    Design(
        name="hedera_annealing",
        decide=hedera.route_annealing,
        signalling=signalling.signal_paths,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="edge switches report flow counters to a central controller each period; the controller "
        "sends them the path of each flow that it moves",
        source="Al-Fares et al. 2010 (Hedera), 4.3",
    ),
    Design(
        name="mptcp",
        decide=mptcp.route,
        signalling=no_signalling,
        mechanism=Mechanism.REACTION,
        messages="end hosts infer congestion from their own lost packets",
        source="Raiciu et al. 2011; Sen et al. 2013, section 7.2",
    ),
    Design(
        name="weights",
        decide=link_weights.route,
        signalling=signalling.signal_weights,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node reports its links and the rates of its demands to a central planner, which "
        "configures link weights, which nodes flood",
        source="Fortz and Thorup 2000",
    ),
    Design(
        name="utility",
        decide=utility_maximization.route,
        signalling=signalling.signal_splits_and_rates,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node reports its links and its demands to a central controller, which sends "
        "every node its split ratios and every demand its rate",
        source="Sen et al. 2013, equation (1); Mo and Walrand 2000",
    ),
    Design(
        name="fptas",
        decide=concurrent_flow_fptas.route,
        signalling=signalling.signal_splits,
        observe=observe_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node reports its links and the rates of its demands to a central controller, "
        "which sends every node its split ratios",
        source="Garg and Könemann 1998; Fleischer 2000",
    ),
)
