"""Table 3.2, overbooking (3.4.2), Fig. 3.10 and formats (3.6.1) of Mukerjee 2018: the decision protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from planner.contract.targets import Study, TargetValues
from planner.options import Options
from planner_models.brokering.designs import several_brokers
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.designs.formulation import formulation
from planner_models.brokering.information import observe, protocol
from planner_models.brokering.plan.metrics import measure
from planner_models.brokering.problem.generators import world
from planner_models.brokering.problem.problem import Brokering


def find_table_3_2(study: Study) -> TargetValues:  # noqa: ARG001 - small as it is
    """Find the observation of each design of clusters, prices and capacities, and whether it overbooks."""
    problem = world(clients=500, places=40, seed=2)
    values: dict[str, float | bool | None] = {}
    observed = {
        "brokered": observe.brokered,
        "multicluster": observe.multicluster,
        "dynamicpricing": observe.dynamic_pricing,
        "dynamicmulticluster": observe.dynamic_multicluster,
        "bestlookup": observe.best_lookup,
        "marketplace": observe.marketplace,
        "transactions": observe.marketplace,
    }
    for name, observation_of in observed.items():
        key, observation = f"brok_t32_{name}", observation_of(problem)
        single_cluster = bool(
            max(np.add.reduceat(observation.offered, _first_clusters(problem), axis=1).max(axis=1)) == 1
        )
        costs = bool((observation.price[observation.offered] == problem.price[observation.offered]).all())
        total = np.array_equal(observation.capacity_mbps, problem.capacity_mbps)
        background_known = np.array_equal(observation.background_mbps, problem.background_mbps)
        expects_several = name not in ("brokered", "dynamicpricing")
        expects_costs = name not in ("brokered", "multicluster")
        values |= {
            f"{key}_matching": single_cluster != expects_several,
            f"{key}_announce": costs == expects_costs
            and total == (name in ("bestlookup", "marketplace", "transactions")),
            f"{key}_share": background_known == (name in ("marketplace", "transactions")),
            f"{key}_co": single_cluster != expects_several,
            f"{key}_dcp": costs == expects_costs,
        }
    small = _overbooked_problem()
    independent = several_brokers.assign_independently(small, brokers=2, deal_seed=4)
    transactions = several_brokers.assign_in_transactions(small, brokers=2, deal_seed=4)
    assert independent.plan is not None
    assert transactions.plan is not None
    congested = measure(small, independent.plan, None)["congested_percent"] or 0.0
    transactions_metrics = measure(small, transactions.plan, None)
    values |= {
        "brok_t32_marketplace_tp": congested > 0,
        "brok_t32_transactions_tp": transactions_metrics["congested_percent"] == 0,
        "brok_t32_transactions_runtime": (transactions_metrics["rounds"] or 0) > 1,
    }
    return TargetValues(
        values=values,
        notes={
            "brok_t32_marketplace_tp": "no cluster is overbooked by one broker, but by two it is",
            "brok_t32_transactions_tp": "no cluster is overbooked, also with other brokers",
        },
    )


def _first_clusters(problem: Brokering) -> Any:
    """Return the first cluster of each CDN: generated clusters are in order of CDN."""
    return np.flatnonzero(np.r_[True, np.diff(problem.cdn) != 0])


def _overbooked_problem() -> Brokering:
    """Return a cluster of 10 Mbit/s that two brokers with 9 clients of 1 Mbit/s each would fill (3.4.2)."""
    return Brokering(
        clients=pd.DataFrame(
            [("here", "any", "any", 1000.0, 18.0)],
            columns=["location", "isp", "content", "bitrate_kbps", "clients"],
        ),
        locations=pd.DataFrame(
            [("here", "US", 40.0, -80.0)], columns=["location", "country", "latitude", "longitude"]
        ),
        clusters=pd.DataFrame(
            [("good", "x", "here", 10.0, 0.1, 0.0), ("poor", "y", "here", 100.0, 0.1, 0.0)],
            columns=["cluster", "cdn", "location", "capacity_mbps", "bandwidth_cost", "colocation_cost"],
        ),
        scores=pd.DataFrame(
            [("here", "good", 1.0), ("here", "poor", 50.0)], columns=["location", "cluster", "score"]
        ),
    )


def find_overbooking(study: Study) -> TargetValues:  # noqa: ARG001 - tiny
    """Find the load of a cluster that two brokers fill independently."""
    problem = _overbooked_problem()
    loads = []
    for count in (9, 9):  # half of the clients each
        plan = assignment.assign(problem.with_client_counts(np.array([count]))).plan
        assert plan is not None
        sent = plan.assignments.set_index("cluster")["clients"]
        loads.append(float(sent.get("good", 0.0)))
    return TargetValues(
        values={
            "brok_overbook_capacity": float(problem.capacity_mbps[0]),
            "brok_overbook_load": float(np.mean(loads)),
        }
    )


def find_figure_3_10(study: Study) -> TargetValues:  # noqa: ARG001 - tiny
    """Find the optimum of the printed program on a small market, and its constraints."""
    from planner.backends import pyomo

    problem = _overbooked_problem().with_client_counts(np.array([5]))
    m = formulation(problem, service="all")
    solution = pyomo.solve_model(m, Options(backend="pyomo:highs"))
    plan = assignment.assign(problem).plan
    assert plan is not None
    objective = measure(problem, plan, None)["objective"]
    assert objective is not None
    return TargetValues(
        values={
            "brok_ilp_objective": solution.objective is not None
            and abs(solution.objective + objective) <= 1e-6 * objective,
            "brok_ilp_binary": all(variable.is_binary() for variable in m.U.values()),
            "brok_ilp_one": len(m.once) == 5
            and all(row.equality and row.upper() == 1 for row in m.once.values()),
            "brok_ilp_capacity": [row.upper() for row in m.capacity.values()] == [10.0, 100.0],
        }
    )


def find_message_formats(study: Study) -> TargetValues:  # noqa: ARG001 - tiny
    """Find the columns of the messages Share, Announce and Accept."""
    problem = _overbooked_problem()
    background_known = protocol.share_messages(problem)
    plan = assignment.assign(problem).plan
    assert plan is not None
    bid = ["cluster_id", "share_id", "performance_estimate", "capacity", "price"]
    share = ["share_id", "location", "isp", "content_id", "data_size", "client_count"]
    return TargetValues(
        values={
            "brok_share_format": list(background_known) == share,
            "brok_bid_format": list(protocol.bid_messages(problem, background_known)) == bid,
            "brok_accept_format": list(protocol.accept_messages(problem, background_known, plan)) == bid,
        }
    )
