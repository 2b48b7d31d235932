"""The integer program of distribution trees with names, for constraints and objectives of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.options import Options, Service
from planner_models.livevideo.designs import optimum
from planner_models.livevideo.designs.integer_program import TreeProgram, build_program, trim_branches
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.adjustments import pin_everything
from planner_models.livevideo.problem.problem import LiveVideo

TIME_LIMIT_S: Final = 10.0
"""Time limit where the user names none."""
GAP: Final = 1e-4
"""Gap where the user names none."""


def open_model(problem: LiveVideo, *, service: Service = "best") -> OpenModel[Trees]:
    """Return the integer program of Fig. 4.8 over candidate links, open to changes.

    Variables, with the columns of their members:

    serves  1 where a link carries an object (channel, bitrate_kbps, tail, head, tier of the head, mbps), the
            number of viewers on a link of a unicast last hop
    takes   1 where a request of several bitrates is served at one of them (group, channel, bitrate_kbps)

    Constraints: capacity, received, once, pinned, takes and one_bitrate. Links that lead to no request for an
    object have no variable for it. The search starts from the plan of the design `optimum`, and ends at a gap
    of 0.01% or after 10 s: practical for up to about 100 channels.
    """
    served = pin_everything(problem) if service == "all" else problem
    trees = build_program(served)
    about = "the service value of what is delivered, less the cost of links"
    program = trees.program.describe(about, metric="service_minus_cost")

    def read(x: Floats) -> Trees:
        return trees.read(problem, x)

    @cache
    def start(options: Options) -> Floats | None:
        plan = optimum.distribute(served, options=options).plan
        return None if plan is None else trees.point(served, trim_branches(served, plan))

    return OpenModel(
        program=program,
        read=read,
        members=_list_members(problem, trees),
        goals=_make_goals(problem, trees),
        follows=frozenset({"takes"}),
        start=start,
        options={"gap": GAP, "time_limit_s": TIME_LIMIT_S},
    )


def _list_members(problem: LiveVideo, trees: TreeProgram) -> Mapping[str, Callable[[], pd.DataFrame]]:
    """Return the tables of members of each block of variables."""
    channel = problem.objects["channel"].astype(str).to_numpy(object)
    bitrate = problem.objects["bitrate_kbps"].to_numpy(float)
    cluster = problem.clusters["cluster"].astype(str).to_numpy(object)
    tier = problem.clusters["tier"].astype(str).to_numpy(object)

    def name(values: Any, names: Any) -> Any:
        return pd.Categorical(values, categories=pd.unique(names))

    def list_links() -> pd.DataFrame:
        tail, head = problem.tail[trees.link], problem.head[trees.link]
        return pd.DataFrame(
            {
                "channel": name(channel[trees.object], channel),
                "bitrate_kbps": bitrate[trees.object],
                "tail": name(cluster[tail], cluster),
                "head": name(cluster[head], cluster),
                "tier": name(tier[head], tier),
                "mbps": problem.bitrate_mbps[trees.object],
            }
        )

    def list_steps() -> pd.DataFrame:
        request, accepted = problem.steps.request[trees.step], problem.steps.object[trees.step]
        return pd.DataFrame(
            {
                "group": name(cluster[problem.group[request]], cluster),
                "channel": name(channel[accepted], channel),
                "bitrate_kbps": bitrate[accepted],
            }
        )

    return {"serves": list_links, "takes": list_steps}


def _make_goals(problem: LiveVideo, trees: TreeProgram) -> dict[str, Goal]:
    """Return the aims by which plans near the optimum may differ."""
    mbps = problem.bitrate_mbps[trees.object]
    cost = problem.cost[trees.link] * mbps
    names = problem.clusters["cluster"].astype(str).tolist()

    def use_fewest(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        links, on_link = np.unique(trees.link, return_inverse=True)
        used = m.variables("used", len(links), upper=1.0, integer=True)
        m.constrain("streams of used", m["serves"] - used[on_link.ravel()] * trees.upper, upper=0.0)
        return used.sum()

    def send_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        traffic: Expression = (m["serves"] * mbps).sum()
        return traffic

    def spend_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        spent: Expression = (m["serves"] * cost).sum()
        return spent

    def pass_least(m: ProgramBuilder, cluster: str, _optimum: Floats) -> Expression:
        if cluster not in names:
            raise InputError(f"least_through: '{cluster}' is no cluster{did_you_mean(cluster, names)}")
        into = np.flatnonzero(problem.head[trees.link] == names.index(cluster))
        traffic: Expression = (m["serves"][into] * mbps[into]).sum()
        return traffic

    return {
        "fewest_links": Goal(about="links that carry streams", build=use_fewest),
        "least_traffic": Goal(about="traffic on all links", unit="Mbit/s", build=send_least),
        "least_cost": Goal(about="cost of links", build=spend_least),
        "least_through": Goal(
            about="traffic that enters a cluster", unit="Mbit/s", build=pass_least, value="cluster"
        ),
    }
