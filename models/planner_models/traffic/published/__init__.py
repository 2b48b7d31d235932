"""Reproduction of the figures of the LocalFlow paper (Sen et al. 2013).

The paper simulates packets, and so do Figures 7 and 11 here (`packet_figures`, which has 4 and 10 too). The
others have equilibrium rates of fair congestion control, without queues and reordering.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.targets import Curve, Study, TargetValues, read_targets
from planner_models.traffic.designs import localflow
from planner_models.traffic.plan import multiresolution_splitting
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.published.packet_figures import find_figure

# --- equilibrium rates: figures 4, 5, 6 and 8 -------------------------------------------------


def _rates(study: Study, scenario: str, seeds: int, **smaller: Any) -> pd.DataFrame:
    """Return the median over seeds of the mean and the smallest share of line rate, by design."""
    changes = {f"problem.{key}": value for key, value in smaller.items()} if study.quick else {}
    runs = [
        study.compare(scenario, changes={**changes, "problem.seed": seed})
        for seed in range(1, 2 if study.quick else 1 + seeds)
    ]
    columns = ["mean_rate_share", "min_rate_share"]
    return pd.concat([run[columns] for run in runs]).groupby(level=0, sort=False).median()


def _bars(title: str, rates: pd.DataFrame) -> tuple[Curve, ...]:
    frame = rates.rename(columns={"mean_rate_share": "mean", "min_rate_share": "slowest"})
    return (Curve(title=title, frame=frame.reset_index(), units={"mean": "of line rate"}, bars=True),)


def find_figure_4(study: Study) -> TargetValues:
    rates = _rates(study, "traffic/figure_4", 3, k=8)
    mean, lowest = rates["mean_rate_share"], rates["min_rate_share"]
    of_best = mean / mean["localflow"]
    below = {n: 100 * (1 - of_best[f"mptcp_{n}_uncoupled"]) for n in (4, 8)}
    coupling = (
        "subflows that each take a fair share; perfectly coupled ones lose {:.1f}, the paper's lie between"
    )
    fluid = (
        "fluid shares settle on the worst link of each path; packets of colliding flows win and lose "
        "by chance"
    )
    return TargetValues(
        values={
            "traf_f4_ps": 100 * abs(1 - of_best["packet_scatter"]),
            "traf_f4_mptcp8": below[8],
            "traf_f4_mptcp8_slowest": 100 * (1 - lowest["mptcp_8_uncoupled"] / lowest["localflow"]),
            "traf_f4_mptcp4": below[4],
            "traf_f4_ecmp": 100 * (1 - mean["ecmp_hash"]),
            "traf_f4_ecmp_gain": 100 * (1 / of_best["ecmp_hash"] - 1),
            "traf_f4_mptcp_gain": 100 * (1 / of_best["mptcp_8_uncoupled"] - 1),
            "traf_f4_hedera_pos": bool(
                of_best["mptcp_4_uncoupled"] <= of_best["hedera_gff"] <= of_best["mptcp_8"]
            ),
            "traf_f4_ns": bool(mean["localflow_ns"] < mean["ecmp_hash"]),
        },
        notes={
            "traf_f4_mptcp8": coupling.format(100 * (1 - of_best["mptcp_8"])),
            "traf_f4_mptcp4": coupling.format(100 * (1 - of_best["mptcp_4"])),
            **dict.fromkeys(("traf_f4_ecmp", "traf_f4_ecmp_gain"), fluid),
            "traf_f4_mptcp_gain": coupling.format(100 * (1 - of_best["mptcp_8"])),
            "traf_f4_ns": "the paper calls its run unlucky, and says that the two are usually alike",
        },
        curves=_bars("Random permutation, fat tree of 1,024 hosts", rates),
    )


def find_figure_5(study: Study) -> TargetValues:
    stride = _rates(study, "traffic/figure_5", 1, k=8)
    permutation = _rates(study, "traffic/figure_4", 1, k=8)
    mean, lowest = stride["mean_rate_share"], stride["min_rate_share"]
    return TargetValues(
        values={
            "traf_f5_hedera_slowest": 100 * (1 - lowest["hedera_gff"] / lowest["localflow"]),
            "traf_f5_ns": bool(mean["localflow_ns"] >= mean.max() - 1e-9),
            "traf_f5_all": bool((mean >= permutation["mean_rate_share"] - 0.01).all()),
        },
        notes={
            "traf_f5_hedera_slowest": "first fit finds a path of its own for each flow of a stride here",
            "traf_f5_all": "within one percent of line rate: what is optimal already cannot gain",
        },
        curves=_bars("Stride of N/2, fat tree of 1,024 hosts", stride),
    )


def find_figure_6(study: Study) -> TargetValues:
    rates = _rates(study, "traffic/figure_6", 3, tors=10, aggregations=4)
    share = rates["mean_rate_share"]["localflow_ns"]
    return TargetValues(
        values={"traf_f6_ns": bool(share >= rates["mean_rate_share"].max() - 1e-9)},
        notes={
            "traf_f6_ns": f"{share:.3f} of line rate: flows spread evenly over the intermediate switches, "
            "but these choose between the two switches above a rack without knowing of each other"
        },
        curves=_bars("Random permutation, VL2 network", rates),
    )


def find_figure_8(study: Study) -> TargetValues:
    rates = _rates(study, "traffic/figure_8", 5)
    mean = rates["mean_rate_share"]
    return TargetValues(
        values={
            "traf_f8_ps": 100 * mean["packet_scatter"] / mean["localflow"],
            "traf_f8_others": bool(min(mean["localflow"], mean["mptcp"]) >= 0.9 * mean["optimum"]),
        },
        notes={"traf_f8_ps": "which links fail is not printed; here all pods keep the same core switch"},
        curves=_bars("Random permutation with failed links, fat tree of 128 hosts", rates),
    )


# --- one switch: figure 9 -----------------------------------------------------------------


def one_switch(*, links: int, flows: int, targets: int, seed: int, sigma: float = 2.0) -> Traffic:
    """Return flows of lognormal rates through one switch, with `links` next hops to every target.

    The capacity of these links together equals the rate of all flows. A flow is a demand: there are as
    many sources as flows to one target.
    """
    rate = np.random.default_rng(seed).lognormal(0.0, sigma, flows)
    source = [f"s{i // targets}" for i in range(flows)]
    target = [f"t{i % targets}" for i in range(flows)]
    ends = [(name, "switch") for name in dict.fromkeys(source)]
    ways = [("switch", f"link-{i}") for i in range(links)]
    on = [(f"link-{i}", name) for i in range(links) for name in dict.fromkeys(target)]
    wide = 10 * float(rate.sum())
    capacity = [wide] * len(ends) + [float(rate.sum()) / links] * links + [wide] * len(on)
    frame = pd.DataFrame([*ends, *ways, *on], columns=["tail", "head"]).assign(capacity_mbps=capacity)
    demands = pd.DataFrame({"source": source, "target": target, "rate_mbps": rate})
    return Traffic.from_tables({"links": frame, "demands": demands})


def split_statistics(*, links: int, flows: int, targets: int, draws: int, delta: float) -> pd.Series:
    """Return the share of split flows, and subflows and rules per flow, at one switch: means over draws."""
    statistics = []
    for seed in range(draws):
        problem = one_switch(links=links, flows=flows, targets=targets, seed=seed)
        plan = localflow.route(problem, delta=delta).plan
        assert plan is not None
        entries = (
            multiresolution_splitting.compile_rules(problem, plan).entries.set_index("node").loc["switch"]
        )
        statistics.append(entries)
    mean = pd.DataFrame(statistics).astype(float).mean()
    return pd.Series(
        {
            "split": mean["split_flows"] / mean["flows"],
            "subflows": mean["subflows"] / mean["flows"],
            "rules": (mean["sram"] + mean["tcam"]) / mean["flows"],
        }
    )


def find_figure_9(study: Study) -> TargetValues:
    slacks = [0.0, 0.01, 0.02, 0.05, 0.1]
    size = (
        {"flows": 200, "targets": 40, "draws": 2}
        if study.quick
        else {"flows": 500, "targets": 100, "draws": 5}
    )

    @cache
    def statistics(links: int, delta: float) -> pd.Series:
        return split_statistics(links=links, delta=delta, **size)

    counts = [8] if study.quick else [4, 8, 12]
    frame = pd.DataFrame(
        {
            "slack": slacks,
            **{f"{links} links": [100 * statistics(links, d)["split"] for d in slacks] for links in counts},
        }
    )
    fine = statistics(8, 0.05)
    synthetic = "the trace is not public: flows of lognormal rates (sigma 2) here"
    return TargetValues(
        values={
            "traf_f9_split_0": 100 * statistics(8, 0.0)["split"],
            "traf_f9_split_001": 100 * statistics(8, 0.01)["split"],
            "traf_f9_split_005": 100 * fine["split"],
            "traf_f9_unsplit": 100 * (1 - fine["split"]),
            "traf_f9_sub_0": statistics(8, 0.0)["subflows"],
            "traf_f9_sub_005": fine["subflows"],
            "traf_f9_space": 100 * (fine["subflows"] - 1),
            "traf_f9_ps": 8 / fine["subflows"],
        },
        notes=dict.fromkeys(
            ("traf_f9_split_0", "traf_f9_split_001", "traf_f9_sub_0", "traf_f9_space", "traf_f9_ps"),
            synthetic,
        ),
        curves=(
            Curve(
                title="Flows split at one switch, by slack",
                frame=frame,
                units={"slack": "of link rate", **{f"{links} links": "percent" for links in counts}},
            ),
        ),
    )


def find_figure_1(study: Study) -> TargetValues:
    del study
    flow, _, _ = localflow.schedule_switch([0, 0, 0, 0], [1.0, 1.0, 1.0, 1.05], links=2, delta=0.1)
    ratio = failure_split_ratio()
    return TargetValues(
        values={"traf_f1_split": float((np.bincount(flow) > 1).sum()), "traf_alg_fail_ratio": ratio},
        notes={"traf_f1_split": "rates of our own: the drawing prints none"},
    )


def failure_split_ratio() -> float:
    """Return the traffic over an intact switch relative to one that lost half its uplinks (4.3)."""
    problem = generators.fat_tree(k=4, seed=0)
    lost = problem.links[
        ~(
            problem.links[["tail", "head"]].isin(["aggregation-0-0"]).any(axis=1)
            & problem.links[["tail", "head"]].isin(["core-0-1"]).any(axis=1)
        )
    ]
    away = {"source": ["host-0-0-0"], "target": ["host-1-0-0"], "rate_mbps": [30.0]}
    hurt = Traffic(nodes=problem.nodes, links=lost, demands=pd.DataFrame(away))
    plan = localflow.route(hurt, delta=0.0).plan
    assert plan is not None
    sent = plan.flows[plan.flows["tail"] == "edge-0-0"].set_index("head")["rate_mbps"]
    return float(sent["aggregation-0-1"] / sent["aggregation-0-0"])


TARGETS: Final = read_targets(
    "traffic",
    {
        "figure_1": find_figure_1,
        "figure_4": find_figure_4,
        "figure_5": find_figure_5,
        "figure_6": find_figure_6,
        "figure_7": partial(find_figure, "figure_7"),
        "figure_8": find_figure_8,
        "figure_9": find_figure_9,
        "figure_10": partial(find_figure, "figure_10"),
        "figure_11": partial(find_figure, "figure_11"),
    },
)
