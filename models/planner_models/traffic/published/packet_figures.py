"""Figures 4, 7, 10 and 11 of the LocalFlow paper (Sen et al. 2013) by packets: means over seeds.

A seed draws the demands and the flows; all designs of a figure run on the same flows, and a value compares
them. Nothing is fitted: what the paper does not print, such as windows and timeouts, is the default of
`PacketSettings`, but for the window of Figure 7, and senders wait for 30 repeated replies where packets of a
flow take several paths. Each value has the standard error of its mean over seeds in its note.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.design import Design
from planner.contract.simulation import SimulationResult
from planner.contract.targets import Curve, Study, TargetValues
from planner.options import Options
from planner_models.traffic.designs import DESIGNS
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.run import run

SPLIT: Final = {"duplicate_acks": 30}
LONG: Final = {"median_bytes": 1e10, "sigma": 0.0}
SHORT: Final = {"median_bytes": 5e3, "sigma": 3.0}
"""Sizes that make 86% of flows smaller than 125 kB, as 7.2.2 states of a distribution that is not printed."""
RANDOM_LINKS: Final = {"scatter": "scatter_random", "localflow": "split_random"}
"""Forwarding that splits in time: a random link for each packet, or for each few."""
FLOWLET_PACKETS: Final = 4
"""Of the larger flowlets of 7.6."""
INTERVALS_S: Final = (1.0, 0.1, 0.01, 0.001)
"""Scheduling intervals of Figure 10."""
WARM_UP_SHARE: Final = 1 / 3

Runs = Mapping[str, SimulationResult]
Ratio = Callable[[Runs], float]
Values = Mapping[str, float]

ECMP: Final[Mapping[str, Any]] = {"design": "ecmp_hash"}
MPTCP_8: Final[Mapping[str, Any]] = {"design": "ecmp_hash", "subflows": 8, "coupling": "lia"}
LOCALFLOW: Final[Mapping[str, Any]] = {"design": "localflow", "decision": {"delta": 0.0}, **SPLIT}
SCATTER: Final[Mapping[str, Any]] = {"design": "packet_scatter", **SPLIT}


def _by_name(name: str) -> Design:
    return next(design for design in DESIGNS if design.name == name)


def simulate(problem: Traffic, parameters: Mapping[str, Any]) -> SimulationResult:
    """Return the run by packets of a design; `decision` among its parameters are those of the design."""
    settings = dict(parameters)
    return run(
        problem,
        design=_by_name(settings.pop("design")),
        information={},
        decision_parameters=settings.pop("decision", {}),
        options=Options(),
        model="packets",
        **settings,
    )


# --- comparisons of the runs of a seed ----------------------------------------------------


def throughput(result: SimulationResult) -> float:
    """Return the throughput of a run after the warm-up, Mbit/s."""
    value = result.metrics["throughput_mbps"]
    assert value is not None
    return value


def slowest(result: SimulationResult) -> float:
    """Return the traffic of the flow that has sent least in a run of endless flows, bytes."""
    return float(result.tables["flows"]["sent_bytes"].min())


def below(name: str, base: str, of: Callable[[SimulationResult], float] = throughput) -> Ratio:
    """Return the loss of a run against another, percent, as a function of the runs."""
    return lambda runs: 100 * (1 - of(runs[name]) / of(runs[base]))


def above(name: str, base: str) -> Ratio:
    """Return the gain of throughput of a run over another, percent, as a function of the runs."""
    return lambda runs: -below(name, base)(runs)


def completion_s(result: SimulationResult) -> pd.Series[float]:
    """Return the completion times of ended flows, s, by source and number: the same flows in each run."""
    flows = result.tables["flows"].sort_values("flow")
    number = flows.groupby("source").cumcount()
    times = flows["end_s"] - flows["start_s"]
    return times.set_axis(pd.MultiIndex.from_arrays([flows["source"], number])).dropna()


def completion_above(name: str, base: str) -> Ratio:
    """Return the gain of mean completion time over another run, percent, of flows that ended in both."""

    def compare(runs: Runs) -> float:
        took = [completion_s(runs[label]) for label in (name, base)]
        both = took[0].index.intersection(took[1].index)
        return 100 * (float(took[0].loc[both].mean()) / float(took[1].loc[both].mean()) - 1)

    return compare


def at_interval(design: str, interval_s: float) -> str:
    """Return the name of the run of a design at a scheduling interval."""
    return f"{design} at {interval_s:g} s"


def growth(design: str) -> Ratio:
    """Return the gain of the shortest interval over the longest, in percent of the throughput of ECMP."""
    first, last = at_interval(design, INTERVALS_S[0]), at_interval(design, INTERVALS_S[-1])
    return lambda runs: 100 * (throughput(runs[last]) - throughput(runs[first])) / throughput(runs["ECMP"])


def find_crossing(runs: Runs, base: str) -> float:
    """Return the interval, ms, at which LocalFlow passes another run as it gets shorter; NaN for none.

    Between two intervals throughput is linear in the logarithm of the interval.
    """
    excess = [throughput(runs[at_interval("LocalFlow", s)]) - throughput(runs[base]) for s in INTERVALS_S]
    for index, (before, after) in enumerate(itertools.pairwise(excess)):
        if before < 0 <= after:
            share = before / (before - after)
            longer, shorter = np.log(INTERVALS_S[index]), np.log(INTERVALS_S[index + 1])
            return 1000 * float(np.exp(longer + share * (shorter - longer)))
    return math.nan


# --- figures ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Size:
    """Size of the runs of a figure.

    k        ports of a switch of the fat tree
    seconds  simulated, of which a third is warm-up
    seeds    1, 2, and so on
    """

    k: int
    seconds: float
    seeds: int


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketFigure:
    """A figure whose values compare runs by packets.

    problem     of k and a seed
    settings    of all runs
    runs        the design of each, with its parameters
    values      rows that are numbers, of the runs of a seed
    statements  rows that are in words, whether the means over seeds agree
    missing     rows for which there is no value, and why
    reasons     why a row differs, or how it is read
    """

    title: str
    problem: Callable[[int, int], Traffic]
    settings: Mapping[str, Any]
    runs: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Ratio]
    statements: Mapping[str, Callable[[Values], bool]]
    full: Size
    quick: Size
    reasons: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def permutation(k: int, seed: int) -> Traffic:
    """Return a fat tree of k-port switches whose hosts send to each other by a random permutation."""
    return generators.fat_tree(k=k, workload="permutation", seed=seed)


def oversubscribed(k: int, seed: int) -> Traffic:
    """Return a fat tree with four times the hosts."""
    return generators.oversubscribed_fat_tree(k=k, seed=seed)


FIGURE_7_RUNS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "lf1": ("LocalFlow", LOCALFLOW),
    "lf1_001": ("LocalFlow, slack 0.01", {**LOCALFLOW, "decision": {"delta": 0.01}}),
    "lf1_005": ("LocalFlow, slack 0.05", {**LOCALFLOW, "decision": {"delta": 0.05}}),
    "lfns": ("LocalFlow-NS", {"design": "localflow_ns"}),
    "hedera": ("Hedera", {"design": "hedera_gff"}),
    "ps": ("PacketScatter", SCATTER),
    "mptcp": ("MPTCP 8", MPTCP_8),
}
"""Runs of Figure 7 beside ECMP, by the middle of the ids of its rows."""

FIGURES: Final[Mapping[str, PacketFigure]] = {
    "figure_4": PacketFigure(
        title="Random permutation of long flows over a fat tree",
        problem=permutation,
        settings={**LONG, "interval_s": 0.05},
        runs={
            "LocalFlow": LOCALFLOW,
            "PacketScatter": SCATTER,
            "MPTCP 8": MPTCP_8,
            "MPTCP 4": {**MPTCP_8, "subflows": 4},
            "Hedera": {"design": "hedera_gff", "decides": "once", "decision": {"rates": "max-min"}},
            "LocalFlow-NS": {"design": "localflow_ns"},
            "ECMP": ECMP,
        },
        values={
            "traf_f4_ps": lambda runs: abs(below("PacketScatter", "LocalFlow")(runs)),
            "traf_f4_mptcp8": below("MPTCP 8", "LocalFlow"),
            "traf_f4_mptcp8_slowest": below("MPTCP 8", "LocalFlow", slowest),
            "traf_f4_mptcp4": below("MPTCP 4", "LocalFlow"),
            "traf_f4_ecmp": below("ECMP", "LocalFlow"),
            "traf_f4_ecmp_gain": above("LocalFlow", "ECMP"),
            "traf_f4_mptcp_gain": above("LocalFlow", "MPTCP 8"),
        },
        statements={
            "traf_f4_hedera_pos": lambda means: means["MPTCP 4"] <= means["Hedera"] <= means["MPTCP 8"],
            "traf_f4_ns": lambda means: means["LocalFlow-NS"] < means["ECMP"],
        },
        reasons={"traf_f4_ns": "the paper calls its run unlucky, and says that the two are usually alike"},
        full=Size(k=16, seconds=1.0, seeds=2),
        quick=Size(k=4, seconds=0.06, seeds=1),
    ),
    "figure_7": PacketFigure(
        title="Closed loop over a 4:1 oversubscribed fat tree",
        problem=oversubscribed,
        settings={**SHORT, "interval_s": 0.01, "flows_per_source": 24, "largest_window": 120},
        runs={"ECMP": ECMP, **dict(FIGURE_7_RUNS.values())},
        values={
            "traf_f7_ecmp_tput": above("ECMP", "ECMP"),
            "traf_f7_ecmp_fct": completion_above("ECMP", "ECMP"),
            **{f"traf_f7_{row}_tput": above(name, "ECMP") for row, (name, _) in FIGURE_7_RUNS.items()},
            **{
                f"traf_f7_{row}_fct": completion_above(name, "ECMP")
                for row, (name, _) in FIGURE_7_RUNS.items()
            },
            "traf_f7_gain_fct_ps": lambda runs: (
                -completion_above("LocalFlow, slack 0.01", "PacketScatter")(runs)
            ),
            "traf_s722_hedera_loss": below("Hedera", "ECMP"),
            "traf_s77_ps_fct": completion_above("PacketScatter", "ECMP"),
        },
        statements={
            "traf_f7_ns_ecmp": lambda means: means["traf_f7_lfns_tput"] > 0,
            "traf_f7_lf_fct": lambda means: all(
                means[f"traf_f7_{row}_tput"] > 0 > means[f"traf_f7_{row}_fct"]
                for row in ("lf1", "lf1_001", "lf1_005", "lfns")
            ),
        },
        reasons={
            **dict.fromkeys(
                [
                    *(f"traf_f7_{row}_tput" for row in ("lf1", "lf1_001", "lf1_005", "ps")),
                    *(f"traf_f7_{row}_fct" for row in ("lf1", "lf1_001", "lf1_005")),
                    "traf_f7_lf_fct",
                ],
                "windows are a few packets here, so that senders which wait for 30 repeated replies resend "
                "after timeouts; with 3, packet scatter gains 4% over ECMP",
            ),
            **dict.fromkeys(
                ("traf_f7_ps_fct", "traf_s77_ps_fct", "traf_f7_gain_fct_ps"),
                "scattered packets are seldom overtaken here: small flows lose little by it",
            ),
            **dict.fromkeys(
                ("traf_f7_lfns_tput", "traf_f7_lfns_fct", "traf_f7_ns_ecmp"),
                "whole flows packed by the rates of the last 10 ms are balanced worse than by a hash",
            ),
            **dict.fromkeys(
                ("traf_f7_mptcp_tput", "traf_f7_mptcp_fct"),
                "windows and timeouts of subflows are not printed",
            ),
            **dict.fromkeys(
                ("traf_f7_hedera_tput", "traf_f7_hedera_fct", "traf_s722_hedera_loss"),
                "first fit on measured rates, which reserves less than the paper's",
            ),
        },
        full=Size(k=8, seconds=0.3, seeds=2),
        quick=Size(k=4, seconds=0.03, seeds=1),
    ),
    "figure_10": PacketFigure(
        title="Closed loop over a fat tree, by scheduling interval",
        problem=permutation,
        settings=SHORT,
        runs={
            "ECMP": ECMP,
            "PacketScatter": SCATTER,
            "MPTCP 8": MPTCP_8,
            **{at_interval("LocalFlow", s): {**LOCALFLOW, "interval_s": s} for s in INTERVALS_S},
            **{
                at_interval("Hedera", s): {"design": "hedera_gff", "interval_s": s}
                for s in (INTERVALS_S[0], INTERVALS_S[-1])
            },
        },
        values={
            "traf_f10_hedera": growth("Hedera"),
            "traf_f10_lf": growth("LocalFlow"),
            "traf_f10_mptcp": lambda runs: find_crossing(runs, "MPTCP 8"),
            "traf_f10_ps_at": lambda runs: find_crossing(runs, "PacketScatter"),
            "traf_f10_ps": above(at_interval("LocalFlow", INTERVALS_S[-1]), "PacketScatter"),
        },
        statements={
            "traf_f10_hedera_mptcp": lambda means: (
                max(means[at_interval("Hedera", s)] for s in (INTERVALS_S[0], INTERVALS_S[-1]))
                <= means["MPTCP 8"]
            ),
        },
        reasons={
            "traf_f10_hedera": "first fit on measured rates reserves too little, and loses against ECMP",
            "traf_f10_lf": "the sign of the paper; sizes of flows, windows and timeouts are not printed",
            "traf_f10_mptcp": "the order of magnitude; intervals between 100 and 10 ms are interpolated",
            "traf_f10_ps_at": "LocalFlow comes within 1% of it, and does not pass it",
            "traf_f10_ps": "packet scatter loses nothing by reordering here",
        },
        full=Size(k=8, seconds=2.0, seeds=3),
        quick=Size(k=4, seconds=0.03, seeds=1),
    ),
    "figure_11": PacketFigure(
        title="Random permutation of long flows, split evenly or in time",
        problem=permutation,
        settings={**LONG, "interval_s": 0.05},
        runs={
            "LocalFlow": LOCALFLOW,
            "LocalFlow in time": {**LOCALFLOW, "forwarding": RANDOM_LINKS["localflow"]},
            "LocalFlow, flowlets": {**LOCALFLOW, "flowlet_packets": FLOWLET_PACKETS},
            "LocalFlow in time, flowlets": {
                **LOCALFLOW,
                "forwarding": RANDOM_LINKS["localflow"],
                "flowlet_packets": FLOWLET_PACKETS,
            },
            "PacketScatter": SCATTER,
            "PacketScatter in time": {**SCATTER, "forwarding": RANDOM_LINKS["scatter"]},
        },
        values={
            "traf_f11_lf": below("LocalFlow in time", "LocalFlow"),
            "traf_f11_ps": below("PacketScatter in time", "PacketScatter"),
            "traf_f11_lf4": below("LocalFlow in time, flowlets", "LocalFlow, flowlets"),
        },
        statements={},
        reasons=dict.fromkeys(
            ("traf_f11_lf", "traf_f11_ps", "traf_f11_lf4"),
            "the sign of the paper, at a smaller size; windows, timeouts and hosts' queues are not printed",
        ),
        full=Size(k=8, seconds=0.5, seeds=2),
        quick=Size(k=4, seconds=0.06, seeds=1),
    ),
}


def run_design(name: str, size: Size, seed: int, label: str) -> SimulationResult:
    """Return one run of a figure, by its label among the figure's runs, on the flows of one seed."""
    figure = FIGURES[name]
    timing = {"until_s": size.seconds, "warm_up_s": WARM_UP_SHARE * size.seconds, "seed": seed}
    return simulate(figure.problem(size.k, seed), {**figure.settings, **timing, **figure.runs[label]})


def compare_runs(name: str, runs: Runs) -> dict[str, float]:
    """Return the values of a figure from all its runs of one seed, and the throughput of each, Mbit/s."""
    values = {row: float(of(runs)) for row, of in FIGURES[name].values.items()}
    return {**values, **{label: throughput(result) for label, result in runs.items()}}


def run_seed(name: str, size: Size, seed: int) -> dict[str, float]:
    """Return the values of a figure on the flows of one seed, and the throughput of each run, Mbit/s."""
    return compare_runs(name, {label: run_design(name, size, seed, label) for label in FIGURES[name].runs})


def summarize(name: str, size: Size, seeds: Sequence[Values], *, is_short: bool = False) -> TargetValues:
    """Return the means over seeds with their standard errors in notes; `is_short` for no verdicts."""
    figure, frame = FIGURES[name], pd.DataFrame(list(seeds))
    means = {str(label): _mean(column) for label, column in frame.items()}
    values: dict[str, float | bool | None] = {
        row: None if math.isnan(means[row]) else means[row] for row in figure.values
    }
    values |= {row: bool(of(means)) for row, of in figure.statements.items()}
    notes = {
        row: _note(frame.get(row), size, "" if is_short else figure.reasons.get(row, "")) for row in values
    }
    values |= dict.fromkeys(figure.missing)
    notes |= figure.missing
    bars = pd.DataFrame({"design": list(figure.runs), "throughput": [means[label] for label in figure.runs]})
    curve = Curve(
        title=f"{figure.title}, k = {size.k}", frame=bars, units={"throughput": "Mbit/s"}, bars=True
    )
    shortened = frozenset(values) if is_short else frozenset()
    return TargetValues(values=values, notes=notes, shortened=shortened, curves=(curve,))


def _note(column: pd.Series[float] | None, size: Size, reason: str) -> str:
    """Return the standard error of a row over seeds and the size of the runs in words, and a reason."""
    runs = f"by packets, k = {size.k}, {size.seconds:g} s"
    error = math.nan if column is None else _standard_error(column)
    if column is not None and not math.isnan(error):
        runs = f"standard error {error:.2g} over {len(column)} seeds {runs}"
    return f"{runs}; {reason}" if reason else runs


def _mean(column: pd.Series[float]) -> float:
    """Return the mean over seeds; NaN where a seed has no value."""
    return float(np.mean(column.to_numpy(float)))


def _standard_error(column: pd.Series[float]) -> float:
    """Return the standard error of the mean over seeds; NaN for one seed."""
    values = column.to_numpy(float)
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def find_figure(name: str, study: Study) -> TargetValues:
    """Return our values of a figure: of its seeds in full, or of a short run at k = 4."""
    size = FIGURES[name].quick if study.quick else FIGURES[name].full
    seeds = [run_seed(name, size, seed) for seed in range(1, 1 + size.seeds)]
    return summarize(name, size, seeds, is_short=study.quick)
