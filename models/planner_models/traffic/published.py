"""What the LocalFlow paper (Sen et al. 2013) states of its figures, beside what a fluid model gives.

The paper simulates packets, here rates are those that fair congestion control settles at, so that
figures about reordering and queues have no counterpart.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.published import Curve, Found, Study, Target
from planner.system import Design
from planner_models.traffic import execution, forwarding, generate, localflow
from planner_models.traffic.arrivals import ClosedLoop
from planner_models.traffic.designs import DESIGNS
from planner_models.traffic.execution import Simulation
from planner_models.traffic.flow_sizes import Lognormal
from planner_models.traffic.problem import Traffic

SIZES: Final = Lognormal(median_bytes=5_000, sigma=3.0)
"""86% of flows below 125 KB, as 7.2.2 says of VL2's distribution, which is not printed."""

PACKETS = "needs queues and reordering, so a simulation of packets; rates at rest show no difference"


def _by_name(name: str) -> Design:
    return next(design for design in DESIGNS if design.name == name)


# --- rates at rest: figures 4, 5, 6 and 8 -------------------------------------------------


def _rates(study: Study, scenario: str, seeds: int, **smaller: Any) -> pd.DataFrame:
    """Median over seeds of the mean and the smallest share of line rate, by design."""
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


def _figure_4(study: Study) -> Found:
    rates = _rates(study, "traffic/figure_4", 3, k=8)
    mean, least = rates["mean_rate_share"], rates["min_rate_share"]
    of_best = mean / mean["localflow"]
    below = {n: 100 * (1 - of_best[f"mptcp_{n}_uncoupled"]) for n in (4, 8)}
    apart = (
        "subflows that each take a fair share; perfectly coupled ones lose {:.1f}, the paper's lie between"
    )
    return Found(
        values={
            "traf_f4_ps": 100 * abs(1 - of_best["packet_scatter"]),
            "traf_f4_mptcp8": below[8],
            "traf_f4_mptcp8_slowest": 100 * (1 - least["mptcp_8_uncoupled"] / least["localflow"]),
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
            "traf_f4_mptcp8": apart.format(100 * (1 - of_best["mptcp_8"])),
            "traf_f4_mptcp4": apart.format(100 * (1 - of_best["mptcp_4"])),
            "traf_f4_ecmp": "fluid shares settle on the worst link of each path; packets of colliding flows "
            "win and lose by chance",
            "traf_f4_ns": "the paper calls its run unlucky, and says that the two are usually alike",
        },
        curves=_bars("Random permutation, fat tree of 1,024 hosts", rates),
    )


def _figure_5(study: Study) -> Found:
    stride = _rates(study, "traffic/figure_5", 1, k=8)
    permutation = _rates(study, "traffic/figure_4", 1, k=8)
    mean, least = stride["mean_rate_share"], stride["min_rate_share"]
    return Found(
        values={
            "traf_f5_hedera_slowest": 100 * (1 - least["hedera_gff"] / least["localflow"]),
            "traf_f5_ns": bool(mean["localflow_ns"] >= mean.max() - 1e-9),
            "traf_f5_all": bool((mean >= permutation["mean_rate_share"] - 0.01).all()),
        },
        notes={"traf_f5_all": "within one percent of line rate: what is optimal already cannot gain"},
        curves=_bars("Stride of N/2, fat tree of 1,024 hosts", stride),
    )


def _figure_6(study: Study) -> Found:
    rates = _rates(study, "traffic/figure_6", 3, tors=10, aggregations=4)
    whole = rates["mean_rate_share"]["localflow_ns"]
    return Found(
        values={"traf_f6_ns": bool(whole >= rates["mean_rate_share"].max() - 1e-9)},
        notes={
            "traf_f6_ns": f"{whole:.3f} of line rate: flows spread evenly over the intermediate switches, "
            "but these choose between the two switches above a rack without knowing of each other"
        },
        curves=_bars("Random permutation, VL2 network", rates),
    )


def _figure_8(study: Study) -> Found:
    rates = _rates(study, "traffic/figure_8", 5)
    mean = rates["mean_rate_share"]
    return Found(
        values={
            "traf_f8_ps": 100 * mean["packet_scatter"] / mean["localflow"],
            "traf_f8_others": bool(min(mean["localflow"], mean["mptcp"]) >= 0.9 * mean["optimum"]),
        },
        notes={"traf_f8_ps": "which links fail is not printed; here all pods keep the same core switch"},
        curves=_bars("Random permutation with failed links, fat tree of 128 hosts", rates),
    )


# --- flows that come and go: figures 7 and 10 ---------------------------------------------


def _later(
    problem: Traffic,
    seconds: float,
    *,
    flows: int = 1,
    settle_s: float = 0.0,
    base: Simulation | None = None,
    **given: Any,
) -> Simulation | tuple[float, float]:
    """The run, or its throughput and mean completion time over those of `base`, in percent."""
    done = execution.simulate(
        problem,
        sizes=SIZES,
        arrivals=ClosedLoop(flows_per_source=flows),
        until_s=seconds,
        settle_s=settle_s,
        seed=1,
        **given,
    )
    if base is None:
        return done
    since = seconds / 4
    throughput = done.throughput_mbps(since) / base.throughput_mbps(since) - 1
    return 100 * throughput, 100 * (_completion(done, base) - 1)


def _completion(done: Simulation, base: Simulation) -> float:
    """Mean completion time over that of `base`, of the flows that ended in both.

    The n-th flow of a source is the same flow in both, so a design that serves more is not held
    liable for the large flows that it alone brought to an end.
    """
    taken = []
    for one in (done, base):
        turn = one.flows.groupby("source").cumcount()
        time_s = one.flows["end_s"] - one.flows["start_s"]
        taken.append(time_s.set_axis(pd.MultiIndex.from_arrays([one.flows["source"], turn])).dropna())
    mine, its = taken
    both = mine.index.intersection(its.index)
    return float(np.mean(mine.loc[both]) / np.mean(its.loc[both]))


FIGURE_7: Final[dict[str, dict[str, Any]]] = {
    "lf1": {"design": _by_name("localflow"), "parameters": {"delta": 0.0}},
    "lf1_001": {"design": _by_name("localflow"), "parameters": {"delta": 0.01}},
    "lf1_005": {"design": _by_name("localflow"), "parameters": {"delta": 0.05}},
    "lfns": {"design": _by_name("localflow_ns")},
    "hedera": {"design": _by_name("hedera_gff")},
    "ps": {"start": "scattered"},
}


def _figure_7(study: Study) -> Found:
    problem = generate.oversubscribed_fat_tree(k=4 if study.quick else 8, seed=1)
    run: dict[str, Any] = {"flows": 24, "settle_s": 1e-3}  # over 12,000 flows at once
    seconds = 0.1 if study.quick else 0.2
    base = _later(problem, seconds, **run)
    assert isinstance(base, Simulation)
    found: dict[str, tuple[float, float]] = {"ecmp": (0.0, 0.0)}
    for name, given in FIGURE_7.items():
        pair = _later(problem, seconds, base=base, interval_s=0.01, **run, **given)
        assert isinstance(pair, tuple)
        found[name] = pair
    values: dict[str, float | bool | None] = {}
    for name, (throughput, completion) in found.items():
        values |= {f"traf_f7_{name}_tput": throughput, f"traf_f7_{name}_fct": completion}
    frame = pd.DataFrame(found, index=["throughput", "completion time"]).T.rename_axis("design").reset_index()
    local = ("lf1", "lf1_001", "lf1_005", "lfns")
    values |= {
        "traf_f7_gain_fct_ps": 100 * (1 - (100 + found["lf1_001"][1]) / (100 + found["ps"][1])),
        "traf_s722_hedera_loss": -found["hedera"][0],
        "traf_f7_ns_ecmp": found["lfns"][0] > 0,
        "traf_f7_lf_fct": all(found[name][0] > 0 > found[name][1] for name in local),
        "traf_s77_ps_fct": found["ps"][1],
    }
    even = "two dozen flows of every host fill the four uplinks evenly already, so rates at rest gain nothing"
    return Found(
        values=values,
        notes={
            "traf_f7_lf1_tput": even,
            "traf_f7_ps_tput": even,
            "traf_f7_ps_fct": "a packet scattered waits for the longest queue; rates at rest have no queues",
            "traf_f7_mptcp_tput": "subflows share what their flow has to send, which the model of flows in "
            "time does not hold",
        },
        curves=(
            Curve(
                title="Relative to ECMP, oversubscribed fat tree of 512 hosts",
                frame=frame,
                units={"throughput": "percent", "completion time": "percent"},
                bars=True,
            ),
        ),
    )


def _figure_10(study: Study) -> Found:
    problem = generate.fat_tree(k=4 if study.quick else 8, seed=1)
    seconds = 1.5 if study.quick else 4.0
    intervals = [1.0, 0.001] if study.quick else [1.0, 0.1, 0.01, 0.001]
    base = _later(problem, seconds)
    assert isinstance(base, Simulation)
    rows = []
    for interval in intervals:
        row = {"interval_s": interval}
        for name in ("localflow", "hedera_gff"):
            pair = _later(problem, seconds, base=base, interval_s=interval, design=_by_name(name))
            assert isinstance(pair, tuple)
            row[name] = pair[0]
        rows.append(row)
    frame = pd.DataFrame(rows)
    growth = frame.iloc[-1] - frame.iloc[0]
    scattered = _later(problem, seconds, base=base, start="scattered")
    assert isinstance(scattered, tuple)
    return Found(
        values={
            "traf_f10_hedera": float(growth["hedera_gff"]),
            "traf_f10_lf": float(growth["localflow"]),
            "traf_f10_ps": float(100 * ((100 + frame["localflow"].iloc[-1]) / (100 + scattered[0]) - 1)),
        },
        notes={
            "traf_f10_lf": "in points of ECMP's throughput",
            "traf_f10_hedera": "in points of ECMP's throughput",
            "traf_f10_ps": "splitting everything at once is optimal where nothing is reordered",
        },
        curves=(
            Curve(
                title="Throughput above ECMP by scheduling interval",
                frame=frame,
                units={"interval_s": "s", "localflow": "percent", "hedera_gff": "percent"},
                log_x=True,
            ),
        ),
    )


# --- one switch: figure 9 -----------------------------------------------------------------


def one_switch(*, links: int, flows: int, targets: int, seed: int, sigma: float = 2.0) -> Traffic:
    """Flows of lognormal rates that meet at one switch, with `links` ways on to every target.

    The links together carry just what the flows want. A flow is a demand: sources are as many as
    it takes to tell flows to the same target apart.
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


def splits(*, links: int, flows: int, targets: int, draws: int, delta: float) -> pd.Series:
    """Share of flows split, subflows of a flow, and rules of a flow at one switch; means over draws."""
    found = []
    for seed in range(draws):
        problem = one_switch(links=links, flows=flows, targets=targets, seed=seed)
        plan = localflow.route(problem, delta=delta).plan
        assert plan is not None
        entries = forwarding.rules(problem, plan).entries.set_index("node").loc["switch"]
        found.append(entries)
    mean = pd.DataFrame(found).astype(float).mean()
    return pd.Series(
        {
            "split": mean["split_flows"] / mean["flows"],
            "subflows": mean["subflows"] / mean["flows"],
            "rules": (mean["sram"] + mean["tcam"]) / mean["flows"],
        }
    )


def _figure_9(study: Study) -> Found:
    slacks = [0.0, 0.01, 0.02, 0.05, 0.1]
    size = (
        {"flows": 200, "targets": 40, "draws": 2}
        if study.quick
        else {"flows": 500, "targets": 100, "draws": 5}
    )

    @cache
    def at(links: int, delta: float) -> pd.Series:
        return splits(links=links, delta=delta, **size)

    counts = [8] if study.quick else [4, 8, 12]
    frame = pd.DataFrame(
        {
            "slack": slacks,
            **{f"{links} links": [100 * at(links, d)["split"] for d in slacks] for links in counts},
        }
    )
    fine = at(8, 0.05)
    synthetic = "the trace is not public: flows of lognormal rates (sigma 2) here"
    return Found(
        values={
            "traf_f9_split_0": 100 * at(8, 0.0)["split"],
            "traf_f9_split_001": 100 * at(8, 0.01)["split"],
            "traf_f9_split_005": 100 * fine["split"],
            "traf_f9_unsplit": 100 * (1 - fine["split"]),
            "traf_f9_sub_0": at(8, 0.0)["subflows"],
            "traf_f9_sub_005": fine["subflows"],
            "traf_f9_space": 100 * (fine["subflows"] - 1),
            "traf_f9_ps": 8 / fine["subflows"],
        },
        notes={"traf_f9_split_0": synthetic, "traf_f9_split_001": synthetic},
        curves=(
            Curve(
                title="Flows split at one switch, by slack",
                frame=frame,
                units={"slack": "of link rate", **{f"{links} links": "percent" for links in counts}},
            ),
        ),
    )


def _figure_1(study: Study) -> Found:
    del study
    flow, _, _ = localflow.at_switch([0, 0, 0, 0], [1.0, 1.0, 1.0, 1.05], links=2, delta=0.1)
    ratio = failed_ratio()
    return Found(
        values={"traf_f1_split": float((np.bincount(flow) > 1).sum()), "traf_alg_fail_ratio": ratio},
        notes={"traf_f1_split": "rates of our own: the drawing prints none"},
    )


def failed_ratio() -> float:
    """Traffic over the healthy aggregation switch for each unit over one that lost half its uplinks (4.3)."""
    problem = generate.fat_tree(k=4, seed=0)
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


_F7: Final = ("ecmp", "lf1", "hedera", "lf1_001", "mptcp", "lf1_005", "ps", "lfns")

TARGETS: Final = (
    Target(
        name="figure_1",
        place="Fig. 1, §4.3",
        about="slack absorbs small differences; a switch that lost half its uplinks gets half as much",
        rows=("traf_f1_split", "traf_alg_fail_ratio"),
        find=_figure_1,
        tolerance=1e-6,
    ),
    Target(
        name="figure_4",
        place="Fig. 4",
        about="throughput of each flow, random permutation over a fat tree of 1,024 hosts",
        rows=(
            "traf_f4_ps",
            "traf_f4_mptcp8",
            "traf_f4_mptcp8_slowest",
            "traf_f4_mptcp4",
            "traf_f4_ecmp",
            "traf_f4_ecmp_gain",
            "traf_f4_mptcp_gain",
            "traf_f4_hedera_pos",
            "traf_f4_ns",
        ),
        find=_figure_4,
        bounds={"traf_f4_ps": "at most"},
        orders=(("traf_f4_ps", "traf_f4_mptcp8", "traf_f4_mptcp4", "traf_f4_ecmp"),),
        lost=("throughput of each flow in Mbit/s",),
    ),
    Target(
        name="figure_5",
        place="Fig. 5",
        about="throughput of each flow, stride permutation over a fat tree of 1,024 hosts",
        rows=("traf_f5_hedera_slowest", "traf_f5_ns", "traf_f5_all"),
        find=_figure_5,
        lost=("throughput of each flow in Mbit/s",),
    ),
    Target(
        name="figure_6",
        place="Fig. 6",
        about="throughput of each flow, random permutation over a VL2 network of 1,000 hosts",
        rows=("traf_f6_ns",),
        find=_figure_6,
        lost=("throughput of each flow in Mbit/s",),
    ),
    Target(
        name="figure_7",
        place="Fig. 7",
        about="total throughput and mean completion time over ECMP, 4:1 oversubscribed fat tree",
        rows=(
            *(f"traf_f7_{name}_{what}" for what in ("tput", "fct") for name in _F7),
            "traf_f7_gain_fct_ps",
            "traf_s722_hedera_loss",
            "traf_f7_ns_ecmp",
            "traf_f7_lf_fct",
            "traf_s77_ps_fct",
        ),
        find=_figure_7,
        orders=tuple(tuple(f"traf_f7_{name}_{what}" for name in _F7) for what in ("tput", "fct")),
    ),
    Target(
        name="figure_8",
        place="Fig. 8",
        about="throughput with failed links, random permutation over a fat tree of 128 hosts",
        rows=("traf_f8_ps", "traf_f8_others"),
        find=_figure_8,
        lost=("throughput of each flow in Mbit/s",),
    ),
    Target(
        name="figure_9",
        place="Fig. 9",
        about="flows that a switch of 8 links splits, and what that takes, by slack",
        rows=(
            "traf_f9_split_0",
            "traf_f9_split_001",
            "traf_f9_split_005",
            "traf_f9_unsplit",
            "traf_f9_sub_0",
            "traf_f9_sub_005",
            "traf_f9_space",
            "traf_f9_ps",
        ),
        find=_figure_9,
        orders=(
            ("traf_f9_split_0", "traf_f9_split_001", "traf_f9_split_005"),
            ("traf_f9_sub_0", "traf_f9_sub_005"),
        ),
        lost=("counts of links other than 8",),
    ),
    Target(
        name="figure_10",
        place="Fig. 10",
        about="throughput by scheduling interval, closed loop over a fat tree of 128 hosts",
        rows=("traf_f10_hedera", "traf_f10_lf", "traf_f10_ps"),
        find=_figure_10,
        orders=(("traf_f10_hedera", "traf_f10_lf"),),
        lost=("throughput relative to ECMP at each interval",),
    ),
    Target(
        name="figure_11",
        place="Fig. 11",
        about="throughput lost to splitting in time",
        rows=("traf_f11_lf", "traf_f11_ps", "traf_f11_lf4"),
        find=lambda _study: Found(values={}, notes={"traf_f11_lf": PACKETS}),
    ),
)
