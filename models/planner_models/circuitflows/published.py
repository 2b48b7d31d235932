"""Reproduction of tables and figures of Mukerjee 2018, chapter 2.

The thesis measured an emulator with real TCP stacks; here packets are followed one by one through the same
network, between hosts with the rules of the TCP that it ran (Linux 4.4), and nothing else of a host: no
processor and no interrupts. Table 2.2 and Figs. 2.13 and 2.14 need runs of full length: flows live two
seconds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from planner.contract.drawing import Curve
from planner.contract.targets import Study, TargetValues, read_targets

COLUMNS: Final = {  # as table_2_2.toml and the published ids call them
    "voq": "voq",
    "voq_resize": "voq_resize",
    "voq_retcp": "voq_retcp",
    "adu": "adu",
    "adu_resize": "adu_resize",
    "adu_retcp": "adu_retcp",
    "fixed": "fixed",
    "packet_10": "pkt10",
    "packet_20": "pkt20",
    "packet_40": "pkt40",
    "packet_80": "pkt80",
}
ROWS: Final = {
    "median_small": "small_median_ms",
    "p99_small": "small_p99_ms",
    "median_big": "big_median_ms",
    "p99_big": "big_p99_ms",
}
TIMEOUTS: Final = (
    "the tail of small flows are those, one in a hundred, that wait for timeouts: fewer here behind a packet "
    "switch alone, more with enlarged queues"
)
ORDER: Final = (
    "within 15% under another order of the events of one instant, which the thesis does not name; here what "
    "was caused first comes first"
)
KILLED: Final = "more than half of the big flows are killed after 2 s here, and a little less than half there"
BACKOFF: Final = (
    "the slowest big flows with reports of applications and enlarged queues, 36 of 1,083, spend 86% of their "
    "time in timeouts that double"
)
SLOWER: Final = (
    "no cause is known; nearer rules of Linux 4.4 for packets that are overtaken (how far, and when a "
    "recovery is taken back) make it 4 to 7% longer"
)
NEARLY: Final = "no cause is known; 16% above, and 15% would agree"
FROM_MEDIAN: Final = "follows from the median of the design, which is not reproduced"
FROM_TAIL: Final = f"follows from the tail of ADU + reTCP: {BACKOFF}"
WRITES: Final = (
    "here a block is one TCP flow that no host limits, so a few writes take all and others wait for "
    "timeouts; a file system's own pieces and replies would have to be run to even them out"
)
NO_SHUFFLE: Final = (
    "only the writes are simulated: results of map tasks, requests to the name node and heartbeats, the rest "
    "in the thesis, are not"
)
WRITTEN_GB: Final = 25.0  # written to HDFS in both cases of Fig. 2.23
CLUSTER_GBPS: Final = 8 * 80.0  # circuits of all racks
TEXT_NOTES: Final = {
    "circ_s254_modest_min": "the smallest of the four designs",
    "circ_s254_modest_max": "the largest of the four designs",
    "circ_s254_big_min": "the smaller of both designs; medians, as Table 2.2 has it for these alone",
    "circ_s254_big_max": "the larger of both designs, ADU + reTCP; medians",
    "circ_s254_pkt_median": "the packet switch of 40 Gbit/s",
    "circ_s254_pkt_tail": "the packet switch of 80 Gbit/s, for which Table 2.2 has this figure",
    "circ_s254_cap_jump": "the smallest of 10, 20, 40 and 80 Gbit/s whose median is shorter, over 10",
    "circ_f217_limit": "the longest big flow; one that is killed after 2 s has not sent all its bytes",
}
"""Readings of section 2.5.4's text on big flows, by row."""
STATIC: Final = (4, 8, 16, 32, 64, 128)
EARLY: Final = tuple(range(0, 1_401, 200))


def _ratio(first: float | None, other: float | None) -> float | None:
    return None if not first or not other else first / other


def _metric(frame: pd.DataFrame, design: str, metric: str) -> float | None:
    value: Any = frame.loc[design, metric]
    return None if value is None or value != value else float(value)  # a number that is none


def _draw_times(frame: pd.DataFrame) -> Curve:
    ours = frame.rename_axis("design").reset_index()
    columns = ["design", "big_median_ms", "big_p99_ms"]
    units = dict.fromkeys(columns[1:], "ms")
    return Curve(title="completion of big flows", frame=ours[columns], units=units, bars=True, log_y=True)


# --- 2.5 ----------------------------------------------------------------------------------


def find_table_2_2(study: Study) -> TargetValues:
    changes = {"problem.horizon_us": 100_000.0} if study.quick else None
    frame = study.compare("circuitflows/table_2_2", changes=changes)
    judged = judge_table_2_2(frame)
    return replace(judged, shortened=frozenset(judged.values)) if study.quick else judged


def judge_table_2_2(frame: pd.DataFrame) -> TargetValues:
    """Return the values of Table 2.2 and of the text on it from the metrics of its designs."""
    values: dict[str, float | bool | None] = {
        f"circ_t22_{row}_{theirs}": _metric(frame, design, metric)
        for (row, metric), (design, theirs) in itertools.product(ROWS.items(), COLUMNS.items())
    }
    compared = [theirs for design, theirs in COLUMNS.items() if design != "voq"]
    for row, theirs in itertools.product(("median_big", "p99_big"), compared):
        gain = _ratio(values[f"circ_t22_{row}_voq"], values[f"circ_t22_{row}_{theirs}"])
        values[f"circ_t22_gain_{row}_{theirs}"] = gain
    values |= _judge_text_on_big_flows(values)
    small = {design: _metric(frame, design, "small_p99_ms") or 0.0 for design in COLUMNS}
    medians = {design: _metric(frame, design, "small_median_ms") or 0.0 for design in COLUMNS}
    other_designs = ("voq_resize", "voq_retcp", "adu", "adu_resize", "adu_retcp", "fixed")
    values["circ_s254_small_tail"] = all(small[design] > small["voq"] for design in other_designs)
    values["circ_s254_pkt10_median"] = medians["packet_10"] == max(medians.values())
    values["circ_s254_pkt10_tail"] = small["packet_10"] < small["voq"]
    by_circuit = {design: _metric(frame, design, "circuit_gb") or 0.0 for design in COLUMNS}
    values["circ_f217_trend"] = all(
        by_circuit[f"{observed}_{how}"] > 1.05 * by_circuit[observed]
        for observed, how in itertools.product(("voq", "adu"), ("resize", "retcp"))
    )
    notes = {
        "circ_t22_p99_small_adu_resize": TIMEOUTS,
        "circ_t22_p99_small_fixed": ORDER,
        "circ_t22_median_big_pkt10": KILLED,
        "circ_t22_median_big_adu": SLOWER,
        "circ_t22_median_big_adu_resize": BACKOFF,
        "circ_t22_median_big_fixed": NEARLY,
        "circ_t22_gain_median_big_adu": FROM_MEDIAN,
        "circ_t22_gain_p99_big_pkt40_vs_best": FROM_TAIL,
        "circ_t22_gain_p99_big_pkt80_vs_best": FROM_TAIL,
        **TEXT_NOTES,
    }
    return TargetValues(values=values, notes=notes, curves=(_draw_times(frame), _draw_switches(frame)))


def _judge_text_on_big_flows(values: Mapping[str, float | bool | None]) -> dict[str, float | bool | None]:
    """Return the values of section 2.5.4's text on big flows from those of Table 2.2."""

    def time_of(row: str, theirs: str) -> float | None:
        time_ms = values[f"circ_t22_{row}_{theirs}"]
        return None if time_ms is None else float(time_ms)

    def gain_of(row: str, theirs: str, base: str = "voq") -> float:
        return _ratio(time_of(row, base), time_of(row, theirs)) or 0.0

    modest = [gain_of("median_big", theirs) for theirs in ("voq_resize", "voq_retcp", "adu", "fixed")]
    large = [gain_of("median_big", theirs) for theirs in ("adu_resize", "adu_retcp")]
    faster = {
        f"circ_t22_gain_{row}_{theirs}_vs_best": gain_of(row, theirs, "adu_retcp")
        for row, theirs in itertools.product(("median_big", "p99_big"), ("pkt40", "pkt80"))
    }
    enough = [rate for rate in (10, 20, 40, 80) if gain_of("median_big", f"pkt{rate}", "adu_retcp") > 1]
    longest_ms = time_of("p99_big", "pkt10")
    return {
        **faster,
        "circ_s254_modest_min": min(modest),
        "circ_s254_modest_max": max(modest),
        "circ_s254_big_min": min(large),
        "circ_s254_big_max": max(large),
        "circ_s254_pkt_median": faster["circ_t22_gain_median_big_pkt40_vs_best"],
        "circ_s254_pkt_tail": faster["circ_t22_gain_p99_big_pkt80_vs_best"],
        "circ_s254_cap_jump": min(enough) / 10 if enough else None,
        "circ_f217_limit": None if longest_ms is None else longest_ms / 1_000,
    }


def _draw_switches(frame: pd.DataFrame) -> Curve:
    ours = frame.rename_axis("design").reset_index()[["design", "packet_gb", "circuit_gb"]]
    units = {"packet_gb": "GB", "circuit_gb": "GB"}
    return Curve(title="sent over each switch", frame=ours, units=units, bars=True)


def find_one_ring(study: Study) -> TargetValues:
    changes = {"problem.horizon_us": 100_000.0} if study.quick else None
    frame = study.compare("circuitflows/one_ring", changes=changes)

    def cut(metric: str) -> float | None:
        return _ratio(_metric(frame, "voq", metric), _metric(frame, "adu", metric))

    adu, fixed = (_metric(frame, design, "big_median_ms") for design in ("adu", "fixed"))
    hugs = adu is not None and fixed is not None and abs(adu - fixed) <= 0.15 * fixed
    target_values = TargetValues(
        values={
            "circ_f213_small_tail_cut": cut("small_p99_ms"),
            "circ_f214_big_median_cut": cut("big_median_ms"),
            "circ_f214_big_tail_cut": cut("big_p99_ms"),
            "circ_f214_fixed": hugs,
        },
        notes={
            "circ_f213_small_tail_cut": TIMEOUTS,
            "circ_f214_fixed": "nearly the same is read as within 15% of its median for big flows",
        },
        curves=(_draw_times(frame),),
    )
    return replace(target_values, shortened=frozenset(target_values.values)) if study.quick else target_values


# --- 2.4 ----------------------------------------------------------------------------------


def _run_strobe(study: Study, **changes: Any) -> dict[str, float]:
    """Return the metrics of one setting of queues and senders under the fixed week of seven days."""
    horizon = 20_000.0 if study.quick else 200_000.0
    parameters = {f"designs.static_16.{name}": value for name, value in changes.items() if "." not in name}
    parameters |= {name: value for name, value in changes.items() if "." in name}
    parameters["problem.horizon_us"] = horizon
    frame = study.compare("circuitflows/strobe", designs=["static_16"], changes=parameters)
    row: Any = frame.loc["static_16"]
    names = ("circuit_utilization", "latency_median_us", "latency_p99_us", "packet_latency_median_us")
    return {name: float(row[name]) for name in names}


def _run_resized(study: Study, early_us: float, **more: Any) -> dict[str, float]:
    return _run_strobe(study, queue_packets=16, large_packets=128, early_us=float(early_us), **more)


def _draw_lines(x: str, rows: dict[float, dict[str, float]], title: str) -> Curve:
    frame = pd.DataFrame([{x: x_value, **row} for x_value, row in rows.items()])
    units = {"latency_median_us": "us", "latency_p99_us": "us", "packet_latency_median_us": "us"}
    return Curve(title=title, frame=frame, units=units)


def _static_at(static: Mapping[float, Mapping[str, float]], used: float, metric: str) -> float:
    """Return the metric of a static queue of that circuit utilization, between those that were run."""
    line = sorted((row["circuit_utilization"], row[metric]) for row in static.values())
    below = [pair for pair in line if pair[0] <= used] or line[:1]
    above = [pair for pair in line if pair[0] >= used] or line[-1:]
    (x0, y0), (x1, y1) = below[-1], above[0]
    return y0 if x1 <= x0 else y0 + (y1 - y0) * (used - x0) / (x1 - x0)


def find_figures_2_6_to_2_8(study: Study) -> TargetValues:
    static = {float(size): _run_strobe(study, queue_packets=size) for size in STATIC}
    early = {float(early_us): _run_resized(study, early_us) for early_us in EARLY}
    utilization, latency = "circuit_utilization", "latency_median_us"
    full = [size for size, row in static.items() if row[utilization] >= 0.9]
    flat = [
        early_us
        for early_us in early
        if all(early[a][latency] <= 1.2 * early[0.0][latency] for a in early if a <= early_us)
    ]
    gain = early[1_000.0][utilization] / static[16.0][utilization]
    cut = 100 * (1 - early[1_000.0][latency] / static[64.0][latency])
    small, large = (static[size]["packet_latency_median_us"] for size in (4.0, 128.0))
    return TargetValues(
        values={
            "circ_f27a_full_util_buf": min(full) if full else None,
            "circ_f26b_linerate_tau": next(
                (early_us for early_us in early if early[early_us][utilization] >= 0.98), None
            ),
            "circ_f27b_full_util": early[1_400.0][utilization] >= 0.95,
            "circ_f28a_trend": large > 5 * small,
            "circ_f28b_flat_tau": max(flat),
            "circ_f28b_share": max(flat) / 1_400,
            "circ_s244_tau_ok": max(flat),
            "circ_f28b_util_gain": gain,
            "circ_s243_util_gain": gain,
            "circ_s243_latency_cut": cut,
        },
        notes={
            "circ_f27a_full_util_buf": "the smallest of 4, 8, ..., 128 packets that uses 90% of circuits",
            "circ_f26b_linerate_tau": "the least of 0, 200, ..., 1400 us that uses 98% of circuits",
            "circ_f28b_flat_tau": "the latest up to which the median stays within a fifth of that at 0 us",
            "circ_f28b_share": "that lead as a share of the week of 1400 us",
            "circ_s244_tau_ok": "the same lead",
            "circ_f28b_util_gain": "gain over a static queue of 16 packets",
            "circ_s243_latency_cut": "all packets' median, against a static queue of 64 packets",
        },
        curves=(
            _draw_lines("packets", static, "static queues"),
            _draw_lines("early_us", early, "resized early"),
        ),
    )


def find_figures_2_9_to_2_10(study: Study) -> TargetValues:
    retcp = {"alpha": 2.0, "beta": 0.5}
    static = {float(size): _run_strobe(study, queue_packets=size) for size in STATIC}
    early = {float(early_us): _run_resized(study, early_us) for early_us in EARLY}
    both = {float(early_us): _run_resized(study, early_us, **retcp) for early_us in EARLY}
    alone = _run_strobe(study, queue_packets=16, **retcp)
    utilization, median, tail = "circuit_utilization", "latency_median_us", "latency_p99_us"

    middle = [row for early_us, row in early.items() if 200 <= early_us <= 1_200]
    better = [row[median] <= _static_at(static, row[utilization], median) for row in middle]
    tails = [row[tail] <= 1.05 * _static_at(static, row[utilization], tail) for row in middle]
    gains = [
        both[early_us][utilization] - early[early_us][utilization]
        for early_us in early
        if 200 <= early_us <= 1_000
    ]
    worse = [both[early_us][tail] >= early[early_us][tail] for early_us in early if 200 <= early_us <= 1_200]
    above = alone[median] > _static_at(static, alone[utilization], median)
    return TargetValues(
        values={
            "circ_f29_dyn": all(better),
            "circ_f29_retcp": above or alone[utilization] < 1.1 * static[16.0][utilization],
            "circ_f29_both": all(gain >= -0.02 for gain in gains) and sum(gains) > 0,
            "circ_f210_dyn": all(tails),
            "circ_f210_both": sum(worse) > len(worse) / 2,
        },
        notes={
            "circ_f29_dyn": "a median of at most that of a static queue of the same utilization, at every "
            "lead from 200 to 1200 us",
            "circ_f29_retcp": "no help is at most a tenth more use than a static queue of 16 packets, or a "
            "higher median than one of the same use; here a small window, doubled, fills circuits sooner",
            "circ_f29_both": "no less use at any lead from 200 to 1000 us, and more on the whole",
            "circ_f210_dyn": "within 5% of a static queue of the same use, at every lead from 200 to 1200 "
            "us; here what a grown queue holds goes over the packet switch first, and waits longest",
            "circ_f210_both": "a higher 99th percentile at most leads from 200 to 1200 us",
        },
        curves=(
            _draw_lines("early_us", both, "resized early with reTCP"),
            _draw_lines("packets", static, "static queues"),
        ),
    )


def find_figure_2_11(study: Study) -> TargetValues:
    cuts: dict[float, dict[str, float]] = {}
    for trips in (0.5, 1.0, 2.0, 3.0, 6.0, 18.0):
        delay = {"problem.circuit_delay_us": 180 / (2 * trips)}
        resized = _run_resized(study, 1_000, **delay)
        static = {float(size): _run_strobe(study, queue_packets=size, **delay) for size in STATIC}
        same = _static_at(static, resized["circuit_utilization"], "latency_median_us")
        cuts[trips] = {"improvement_percent": 100 * (1 - resized["latency_median_us"] / same)}
    gain = {trips: row["improvement_percent"] for trips, row in cuts.items()}
    return TargetValues(
        values={
            "circ_f211_trend": gain[18.0] < gain[6.0] < gain[2.0],
            "circ_f211_short": abs(gain[0.5]) < gain[2.0] / 2,
        },
        notes={
            "circ_f211_trend": "less at 18 than at 6 round trips a day, and at 6 than at 2",
            "circ_f211_short": "at half a round trip a day, less than half of what it is at 2; here a queue "
            "that was filled early is drained in the day however long the round trip",
        },
        curves=(_draw_lines("round_trips_a_day", cuts, "improvement of the median at equal use"),),
    )


# --- 2.6 ----------------------------------------------------------------------------------


def find_figures_2_20_to_2_23(study: Study) -> TargetValues:
    changes = {"problem.file_mb": 20.0, "problem.block_mb": 6.4} if study.quick else None
    frame = study.compare("circuitflows/dfsio", changes=changes)

    def of(design: str, metric: str) -> float | None:
        return _metric(frame, design, metric)

    def gain(metric: str, better: str = "rehdfs", worse: str = "hdfs_random") -> float | None:
        return _ratio(of(worse, metric), of(better, metric))

    def percent(metric: str, better: str, worse: str = "hdfs_random") -> float | None:
        factor = gain(metric, better, worse)
        return None if not factor else 100 * (1 - 1 / factor)

    tail = "big_p99_ms"
    more = percent(tail, "rehdfs_resize"), percent(tail, "rehdfs")
    sent = {design: of(design, "packet_gb") or 0.0 for design in ("hdfs_random", "rehdfs")}
    share = sent["rehdfs"] / (sent["rehdfs"] + (of("rehdfs", "circuit_gb") or 1.0))
    factor = gain(tail)
    sent_gb = {
        design: WRITTEN_GB
        * (sent[design] + (of(design, "circuit_gb") or 0.0))
        / (of(design, "delivered_gb") or math.inf)
        for design in sent
    }
    done_ms, delivered_gb = of("rehdfs_retcp", "done_ms"), of("rehdfs_retcp", "delivered_gb")
    gbps = 0.0 if not done_ms or not delivered_gb else 8 * delivered_gb / (done_ms / 1_000)
    return TargetValues(
        values={
            "circ_f220_median": gain("big_median_ms"),
            "circ_f220_p99": factor,
            "circ_f220_max": gain("longest_ms"),
            "circ_f221_resize": percent(tail, "hdfs_resize"),
            "circ_f221_rehdfs": percent(tail, "rehdfs"),
            "circ_f221_rehdfs_vs_resize": percent(tail, "rehdfs", "hdfs_resize"),
            "circ_f221_rehdfs_resize": None if None in more else more[0] - more[1],  # type: ignore[operator]
            "circ_f221_factor": factor,
            "circ_f222_rehdfs": gain("done_ms"),
            "circ_f222_others": gain("done_ms", "hdfs_resize"),
            "circ_f222_retcp": gbps >= 0.8 * CLUSTER_GBPS,
            "circ_s262_jct": percent("done_ms", "rehdfs"),
            "circ_f223_hdfs_bytes": sent_gb["hdfs_random"],
            "circ_f223_rehdfs_bytes": sent_gb["rehdfs"],
            "circ_f223_rest_cut": None,
            "circ_rehdfs_confs": of("rehdfs", "pairs_per_rack"),
            "circ_f223_trend": share < 0.1,
        },
        notes={
            "circ_f220_median": "a write is a block of a file; " + WRITES,
            **dict.fromkeys(("circ_f221_resize", "circ_f221_factor"), WRITES),
            "circ_f221_rehdfs_resize": "the slowest writes of reHDFS take as long with resized queues here",
            "circ_f222_rehdfs": "all bytes over the time until the last block is there",
            "circ_f222_others": "resizing alone",
            "circ_f222_retcp": "close is read as at least 80% of the circuits of all racks, 640 Gbit/s",
            "circ_s262_jct": "until the last block is there; a job also starts tasks and computes, which "
            "takes as long with either placement and is not modelled",
            "circ_f223_hdfs_bytes": "per 25 GB written; " + NO_SHUFFLE,
            "circ_f223_rest_cut": NO_SHUFFLE,
            "circ_f223_trend": "little is read as less than a tenth of what is sent",
        },
    )


# --- formulas -----------------------------------------------------------------------------


def find_packets(study: Study) -> TargetValues:  # noqa: ARG001
    bits, circuit, packet = 9_000 * 8.0, 80_000.0, 10_000.0
    return TargetValues(
        values={
            "circ_s241_packets_per_day": circuit * 180 / bits,
            "circ_s241_week": 7 * (180 + 20.0),
            "circ_s241_bdp_circuit_calc": circuit * 60 / bits,
            "circ_s241_bdp_packet_calc": packet * 20 / bits,
            "circ_s251_voq_needed_calc": circuit * 2_000 / bits,
            "circ_model_day_over_night": 0.9 / (1 - 0.9),
        }
    )


TARGETS: Final = read_targets(
    "circuitflows",
    {
        "packets": find_packets,
        "figures_2_6_to_2_8": find_figures_2_6_to_2_8,
        "figures_2_9_to_2_10": find_figures_2_9_to_2_10,
        "figure_2_11": find_figure_2_11,
        "one_ring": find_one_ring,
        "table_2_2": find_table_2_2,
        "figures_2_20_to_2_23": find_figures_2_20_to_2_23,
    },
)
