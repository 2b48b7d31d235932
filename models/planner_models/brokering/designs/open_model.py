"""The broker's integer program with names, for constraints and objectives of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.completion import complete
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.options import Options, Service
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.metrics import count_by_group
from planner_models.brokering.plan.plan import Assignment, from_groups
from planner_models.brokering.plan.transportation import transportation_problem
from planner_models.brokering.problem.problem import Brokering

TIME_LIMIT_S: Final = 10.0
"""Time limit where the user names none."""
GAP: Final = 1e-6
"""Gap where the user names none: a client that is shed costs more than all others together."""


def open_model(problem: Brokering, *, service: Service = "best") -> OpenModel[Assignment]:
    """Return the broker's integer program of Fig. 3.10 with clients counted by group, open to changes.

    Variables, with the columns of their members:

    clients  clients of a group in a cluster (location, country, bitrate_kbps, cluster, cdn, score, price)
    shed     clients of a group without a cluster, where that is allowed (location, country, bitrate_kbps)

    A group is the clients of one location and bitrate with the same rules. The objective is the weighted
    cost, and for each client that is shed more than all others cost. Constraints: served and capacity. It is
    the program of what the design observes: bids of the marketplace, or all clusters of `omniscient`. The
    search starts from the plan of the design, and ends at a gap of 1e-6 or after 10 s: practical for up to
    about 20,000 pairs of a group and a cluster.
    """
    program = assignment.build_model(problem, service=service)
    cost = transportation_problem(problem).cost
    group, cluster = np.nonzero(np.isfinite(cost))
    sheds = service == "best"

    def read(x: Floats) -> Assignment:
        assigned = np.zeros((len(cost), cost.shape[1] + sheds), dtype=np.int64)
        assigned[group, cluster] = np.rint(program.values("clients", x))
        if sheds:
            assigned[:, -1] = np.rint(program.values("shed", x))
        return from_groups(problem, sp.csr_array(assigned))

    @cache
    def start(options: Options) -> Floats | None:
        plan = assignment.assign(problem, options=options).plan
        if plan is None:
            return None
        assigned = count_by_group(problem, read_assignment(problem, plan))
        return complete(program, {"clients": assigned[group, cluster].astype(float)}, options)

    return OpenModel(
        program=program,
        read=read,
        members=_list_members(problem, program, group, cluster),
        goals=_make_goals(problem, group, cluster),
        is_of_plan=False,  # the metric counts shed clients as served where a cluster has space for them
        start=start,
        options={"gap": GAP, "time_limit_s": TIME_LIMIT_S},
    )


def _list_members(
    problem: Brokering, program: LinearProgram, group: Ints, cluster: Ints
) -> Mapping[str, Callable[[], pd.DataFrame]]:
    """Return the tables of members of each block of variables."""
    groups, clusters = problem.groups, problem.clusters

    def list_groups(rows: Ints) -> dict[str, object]:
        location = groups.location[rows]
        names = problem.locations["location"].astype(str).to_numpy(object)
        countries = problem.locations["country"].astype(str).to_numpy(object)
        return {
            "location": pd.Categorical(names[location], categories=pd.unique(names)),
            "country": pd.Categorical(countries[location], categories=pd.unique(countries)),
            "bitrate_kbps": groups.bitrate_mbps[rows] * 1000,
        }

    def list_pairs() -> pd.DataFrame:
        names = {name: clusters[name].astype(str).to_numpy(object) for name in ("cluster", "cdn")}
        location = groups.location[group]
        return pd.DataFrame(
            {
                **list_groups(group),
                **{
                    name: pd.Categorical(values[cluster], categories=pd.unique(values))
                    for name, values in names.items()
                },
                "score": problem.score[location, cluster],
                "price": problem.price[location, cluster],
            }
        )

    members: dict[str, Callable[[], pd.DataFrame]] = {"clients": list_pairs}
    if any(block.name == "shed" for block in program.columns):
        members["shed"] = lambda: pd.DataFrame(list_groups(np.arange(len(groups.count))))
    return members


def _make_goals(problem: Brokering, group: Ints, cluster: Ints) -> dict[str, Goal]:
    """Return the aims by which plans near the least cost may differ."""
    groups = problem.groups
    bitrate = groups.bitrate_mbps[group]
    demand = float(groups.bitrate_mbps @ groups.count)
    capacity = np.maximum(problem.residual_mbps, 0.0)
    clusters = len(problem.clusters)

    def use_fewest(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        names = problem.clusters["cluster"].astype(str).tolist()
        used = m.variables("used", clusters, upper=1.0, integer=True, labels=lambda: names)
        load = (m["clients"] * bitrate).sum_by(cluster, clusters)
        m.constrain("load of used", load - used * np.minimum(capacity, demand), upper=0.0)
        return used.sum()

    def use_least(m: ProgramBuilder, cdn: str, _optimum: Floats) -> Expression:
        names = problem.clusters["cdn"].astype(str).to_numpy(object)
        if cdn not in names:
            raise InputError(f"least_with: '{cdn}' is no CDN{did_you_mean(cdn, list(dict.fromkeys(names)))}")
        pairs = np.flatnonzero(names[cluster] == cdn)
        traffic: Expression = (m["clients"][pairs] * bitrate[pairs]).sum()
        return traffic

    def fill_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        largest = m.variables("busiest", ())
        load = (m["clients"] * bitrate).sum_by(cluster, clusters)
        m.constrain("busiest cluster", load - largest * capacity, upper=0.0)
        return largest.sum()

    def score_best(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        score = problem.score[groups.location[group], cluster]
        total: Expression = (m["clients"] * (score / max(int(groups.count.sum()), 1))).sum()
        return total

    return {
        "fewest_clusters": Goal(about="clusters that serve clients", build=use_fewest),
        "best_score": Goal(about="mean score of clients, smaller is better", build=score_best),
        "least_busiest": Goal(about="largest utilization of a cluster's residual capacity", build=fill_least),
        "least_with": Goal(about="traffic that a CDN serves", unit="Mbit/s", build=use_least, value="CDN"),
    }
