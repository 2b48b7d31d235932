"""The designs of system `traffic`: what each control plane sees, and how it decides."""

from __future__ import annotations

from typing import Final

from planner.exchange import nothing
from planner.system import Design, Mechanism
from planner_models.traffic import (
    ecmp,
    exchange,
    fptas,
    hedera,
    localflow,
    mptcp,
    optimum,
    utility,
    valiant,
    weights,
)
from planner_models.traffic.sees import observed, told

DESIGNS: Final = (
    Design(
        name="optimum",
        decide=optimum.route,
        exchange=exchange.central,
        sees=told,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node tells a central controller its links and the rates of its demands; "
        "the controller tells every node its splits",
        source="Sen et al. 2013, equation (1)",
        model=optimum.model,
    ),
    Design(
        name="ecmp",
        decide=ecmp.route,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2328, RFC 2992",
    ),
    Design(
        name="shortest_path",
        decide=ecmp.route_single,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2328",
    ),
    Design(
        name="ecmp_hash",
        decide=ecmp.route_hashed,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2992; Sen et al. 2013, section 7.2",
    ),
    Design(
        name="packet_scatter",
        decide=ecmp.route,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="Sen et al. 2013, section 4.1",
    ),
    Design(
        name="valiant",
        decide=valiant.route,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="Zhang-Shen and McKeown 2004; Greenberg et al. 2009 (VL2)",
    ),
    Design(
        name="localflow",
        decide=localflow.route,
        exchange=nothing,
        sees=observed,
        mechanism=Mechanism.REACTION,
        messages="each switch measures the flows it forwards itself; nodes flood link states when the "
        "network changes",
        source="Sen et al. 2013, Algorithm 1 and section 4.3",
    ),
    Design(
        name="localflow_ns",
        decide=localflow.route_whole,
        exchange=nothing,
        sees=observed,
        mechanism=Mechanism.REACTION,
        messages="each switch measures the flows it forwards itself; nodes flood link states when the "
        "network changes",
        source="Sen et al. 2013, sections 1 and 7.2 (LocalFlow-NS)",
    ),
    Design(
        name="hedera_gff",
        decide=hedera.route_first_fit,
        exchange=exchange.paths,
        sees=told,
        mechanism=Mechanism.TRANSPARENCY,
        messages="edge switches report flow counters to a central controller each period; the controller "
        "sends them the path of each flow that it moves",
        source="Al-Fares et al. 2010 (Hedera), 4.2",
    ),
    Design(
        name="hedera_annealing",
        decide=hedera.route_annealing,
        exchange=exchange.paths,
        sees=told,
        mechanism=Mechanism.TRANSPARENCY,
        messages="edge switches report flow counters to a central controller each period; the controller "
        "sends them the path of each flow that it moves",
        source="Al-Fares et al. 2010 (Hedera), 4.3",
    ),
    Design(
        name="mptcp",
        decide=mptcp.route,
        exchange=nothing,
        mechanism=Mechanism.REACTION,
        messages="end hosts infer congestion from their own lost packets",
        source="Raiciu et al. 2011; Sen et al. 2013, section 7.2",
    ),
    Design(
        name="weights",
        decide=weights.route,
        exchange=exchange.weights,
        sees=told,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node tells a central planner its links and the rates of its demands; the planner "
        "configures link weights, which nodes flood",
        source="Fortz and Thorup 2000",
    ),
    Design(
        name="utility",
        decide=utility.route,
        exchange=exchange.with_rates,
        sees=told,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node tells a central controller its links and what its demands want; the "
        "controller tells every node its splits and every demand its rate",
        source="Sen et al. 2013, equation (1); Mo and Walrand 2000",
    ),
    Design(
        name="fptas",
        decide=fptas.route,
        exchange=exchange.central,
        sees=told,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node tells a central controller its links and the rates of its demands; "
        "the controller tells every node its splits",
        source="Garg and Könemann 1998; Fleischer 2000",
    ),
)
