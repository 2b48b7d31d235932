"""Presentation of schedules: drawings, and elements with their actions and use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import Distribution, Drawing, Timeline
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.plan.service import MBIT, ROUNDING, UNITS, Service
from planner_models.circuits.problem.drawing import PAIR, RACK, Ints, draw_ring, offered_load
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.racks import Racks

MOST_LANES: Final = 40
MOST_BARS: Final = 4_000
SEVERAL: Final = "several racks"
PAIR_ACTIONS: Final = (
    Action(name="Double its demand", state="at double demand", parameter="demand_factors", value=2.0),
    Action(name="Leave it out", state="left out", parameter="demand_factors", value=0.0),
)
RACK_ACTIONS: Final = (
    Action(name="Fail", state="failed", parameter="fail_racks", role="failure"),
    Action(
        name="Double its circuit rate",
        state="at double circuit rate",
        parameter="circuit_factors",
        value=2.0,
        role="upgrade",
    ),
    Action(
        name="Double its packet rate",
        state="at double packet rate",
        parameter="packet_factors",
        value=2.0,
        role="upgrade",
    ),
    Action(
        name="Fail its packet link",
        state="without its packet link",
        parameter="packet_factors",
        value=0.0,
        role="failure",
    ),
)


def draw(problem: Circuits, plan: Schedule) -> Sequence[Drawing]:
    """Draw the circuits of racks over time, then the unserved demand of each pair of racks."""
    service = Service.of(problem, plan)
    demand = problem.offered_bits
    ring = draw_ring(
        problem,
        demand,
        title="Demand left over",
        note=service.describe_pair,
        load=offered_load(problem),
        left_bits=service.left_bits,
    )
    shares = 100 * np.minimum(1.0, service.served_bits[demand > 0] / demand[demand > 0])
    served = Distribution(
        title="Demand served of each pair of racks",
        values={"pairs": pd.Series(shares)},
        what="served",
        unit="%",
    )
    if not len(plan.configurations):
        return (ring, served)
    timeline = draw_timeline(
        problem, plan.configurations, demand=demand, remaining=service.left_bits, note=service.describe_pair
    )
    return (timeline, ring, served)


def draw_timeline(
    racks: Racks,
    days: pd.DataFrame,
    *,
    demand: NDArray[np.float64],
    remaining: NDArray[np.float64],
    note: Callable[[int, int], str],
    elements: Callable[[Ints, Ints], Sequence[str]] | None = None,
    title: str = "Circuits by sending rack",
) -> Timeline:
    """Return the circuits of a table `configurations` by sending rack.

    Racks are in the order of `racks`; of many, those with the most left over. Where there are too many
    circuits, short ones that follow each other are one bar.

    wanted, left  (n, n) demand, and what is left over
    note          (source, target) -> words for a pair of rows of `racks`
    elements      (sources, targets) -> names of the elements that circuits are; default: the pairs
    """
    n = len(racks.racks)
    lanes = np.arange(n)
    if n > MOST_LANES:
        lanes = np.lexsort((lanes, -demand.sum(axis=1), -remaining.sum(axis=1)))[:MOST_LANES]
        criterion = "left over" if remaining.any() else "demand"
        title += f", the {MOST_LANES} of {n:,} racks with the most {criterion}"
    lane = np.full(n, -1)
    lane[lanes] = np.arange(len(lanes))
    source, target = racks.rows_of(days)
    shown = np.flatnonzero(lane[source] >= 0)
    order = shown[np.lexsort((days["start_us"].to_numpy(float)[shown], lane[source[shown]]))]
    source, target = source[order], target[order]
    start = days["start_us"].to_numpy(float)[order]
    frame = pd.DataFrame(
        {
            "lane": racks.names[source].astype(str),
            "start": start,
            "end": start + days["duration_us"].to_numpy(float)[order],
            "what": racks.names[target].astype(str),
            "element": np.where(
                demand[source, target] > 0, (elements or racks.name_ends)(source, target), ""
            ),
        }
    )
    pair = source * n + target
    pairs, pair_of = np.unique(pair, return_inverse=True)
    notes = np.array([note(*divmod(int(number), n)) for number in pairs], dtype=object)
    frame["note"] = notes[pair_of]
    if len(frame) > MOST_BARS:
        frame = _merge_short(frame, lanes=len(lanes))
        title += "; short circuits together"
    return Timeline(title=title, frame=frame, unit="us", lanes="rack", what="circuit to", kind=PAIR)


def _merge_short(frame: pd.DataFrame, *, lanes: int) -> pd.DataFrame:
    """Return the bars, those that are too short to see as one bar for each stretch of a lane."""
    begin, end = float(frame["start"].min()), float(frame["end"].max())
    stretch = (end - begin) * lanes / MOST_BARS
    length = frame["end"] - frame["start"]
    is_short = (length < stretch).to_numpy()
    short = frame[is_short].assign(up=length)
    number = np.floor((short["start"] - begin) / stretch)
    groups = short.groupby(["lane", number], sort=False)
    merged = groups.agg(
        start=("start", "min"), end=("end", "max"), up=("up", "sum"), what=("what", "unique")
    ).reset_index(level=0)
    count = merged["what"].map(len).to_numpy()
    first = groups[["element", "note"]].first().to_numpy()
    several = [
        f"{up:.4g} us of circuits to {', '.join(racks[:8])}{' and others' if len(racks) > 8 else ''}"
        for up, racks in zip(merged["up"], merged["what"], strict=True)
    ]
    merged = merged.assign(
        what=np.where(count == 1, merged["what"].str[0], SEVERAL),
        element=np.where(count == 1, first[:, 0], ""),
        note=np.where(count == 1, first[:, 1], several),
    )
    joined = pd.concat([frame[~is_short], merged[list(frame.columns)]], ignore_index=True)
    rank = {name: index for index, name in enumerate(frame["lane"].unique())}
    order = np.lexsort((joined["start"], joined["lane"].map(rank)))
    return joined.iloc[order].reset_index(drop=True)


def list_pairs(problem: Circuits) -> list[str]:
    """Return the names of all pairs of racks in the table of demands."""
    return problem.name_ends(*problem.rows_of(problem.demands))


def list_racks(problem: Racks) -> list[str]:
    """Return the names of all racks."""
    return [str(name) for name in problem.names]


def require_rack(racks: Racks, name: str) -> int:
    """Return the row of a rack; raise InputError with the nearest name where there is none."""
    row = int(racks.places.get_indexer(pd.Index([name]))[0])
    if row < 0:
        raise InputError(f"{name}: no such {RACK}" + did_you_mean(name, racks.places))
    return row


def require_pair(racks: Racks, table: pd.DataFrame, name: str) -> tuple[int, int]:
    """Return the rows of a pair of racks of a table; raise InputError with the nearest name for another."""
    pair, (source, target) = racks.find_pair(name), racks.rows_of(table)
    if pair is None or not ((source == pair[0]) & (target == pair[1])).any():
        names = racks.name_ends(source, target)
        raise InputError(f"{name}: no such {PAIR}" + did_you_mean(name, names))
    return pair


def _derive_service(problem: Circuits, decided: Decided) -> Service:
    """Return the service of a decision; raise InputError if it has no plan."""
    return Service.of(problem, decided.plan)


def describe_pair(problem: Circuits, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the demand of a pair of racks, and the days and the switch that carry it."""
    i, j = require_pair(problem, problem.demands, name)
    service = _derive_service(problem, decided)
    demand, remaining = problem.offered_bits[i, j], service.left_bits[i, j]
    circuits = service.carried.circuit_bits[i, j]
    packets = max(0.0, service.served_bits[i, j] - circuits)
    facts = [
        Fact(label="Demand", value=demand / MBIT, unit="Mbit"),
        Fact(label="Left over", value=remaining / MBIT, unit="Mbit"),
        Fact(label="Circuits carry", value=circuits / MBIT, unit="Mbit"),
        Fact(label="Packet switch carries", value=packets / MBIT, unit="Mbit"),
        Fact(label="Time with a circuit", value=float(service.up_us[i, j]), unit="us"),
        Fact(label="Rate of its circuit", value=float(problem.circuit_mbps[i, j]), unit="Mbit/s"),
    ]
    if why := service.explain(i, j):
        facts.insert(2, Fact(label="Why", value=why))
    carriers = _report_carriers(service, i, j)
    sections = [carriers] if len(carriers.frame) else []
    if problem.coflows is not None:
        sections.append(_report_coflows(problem, i, j))
    return ElementReport(facts=tuple(facts), sections=tuple(sections))


def _report_carriers(service: Service, i: int, j: int) -> Section:
    """Report the traffic of each day's circuit and of the packet switch for a pair; in sum its service."""
    problem = service.problem
    days = service.plan.configurations
    source, target = problem.rows_of(days)
    circuit_days = days[(source == i) & (target == j)].sort_values("start_us", kind="stable")
    up = circuit_days["duration_us"].to_numpy(float)
    total = float(service.carried.circuit_bits[i, j])
    bits = np.diff(np.minimum(np.cumsum(up) * problem.circuit_mbps[i, j], total), prepend=0.0)
    rows: list[dict[str, Any]] = [
        {"carrier": f"circuit of day {day:g}", "start": start, "time_up": lasts, "carried": carried / MBIT}
        for day, start, lasts, carried in zip(
            circuit_days["day"], circuit_days["start_us"], up, bits, strict=True
        )
    ]
    remainder = total - float(bits.sum())
    packets = float(service.served_bits[i, j]) - total
    for carrier, carried in (("circuits kept at night", remainder), ("packet switch", packets)):
        if carried > ROUNDING * max(1.0, total):
            rows.append({"carrier": carrier, "start": np.nan, "time_up": np.nan, "carried": carried / MBIT})
    frame = pd.DataFrame(rows, columns=["carrier", "start", "time_up", "carried"])
    units = {"start": "us", "time_up": "us", "carried": "Mbit"}
    return Section(title="What carries it", frame=frame, units=units)


def _report_coflows(problem: Circuits, i: int, j: int) -> Section:
    """Report the coflows that a pair's demand consists of, the largest first."""
    frame = problem.coflows
    assert frame is not None
    source, target = problem.rows_of(frame)
    parts = frame[(source == i) & (target == j)].groupby("coflow", sort=False)["bits"].sum()
    shown = parts.sort_values(ascending=False, kind="stable").rename("demand").reset_index()
    shown["demand"] /= MBIT
    return Section(title="Coflows that use it", frame=shown, units={"demand": "Mbit"})


def describe_rack(problem: Circuits, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the demand of a rack, its links, and the pairs that use it."""
    rack = require_rack(problem, name)
    service = _derive_service(problem, decided)
    racks = service.tabulate_racks()
    out, into = (racks[(racks["rack"] == name) & (racks["way"] == way)] for way in ("sends", "receives"))
    facts = [
        Fact(label="Sends", value=float(out["wanted"].iloc[0]), unit="Mbit"),
        Fact(label="Receives", value=float(into["wanted"].iloc[0]), unit="Mbit"),
        Fact(label="Left over, sent", value=float(out["left_over"].iloc[0]), unit="Mbit"),
        Fact(label="Left over, received", value=float(into["left_over"].iloc[0]), unit="Mbit"),
        Fact(label="Circuit rate", value=float(problem.racks["circuit_mbps"].iloc[rack]), unit="Mbit/s"),
        Fact(label="Packet rate", value=float(problem.packet_mbps[rack]), unit="Mbit/s"),
    ]
    if problem.is_failed[rack]:
        facts.insert(0, Fact(label="State", value="failed"))
    if problem.window_us is not None:
        week = problem.window_us * problem.switches
        up = float(service.up_us[rack].sum())
        facts.append(Fact(label="Circuits up", value=100 * up / week, unit="%"))
    if service.packet_link_share is not None:
        for label, shares in zip(("sent", "received"), service.packet_link_share, strict=True):
            facts.append(Fact(label=f"Packet link used, {label}", value=100 * float(shares[rack]), unit="%"))
    return ElementReport(facts=tuple(facts), sections=(_report_users(service, rack),))


def _report_users(service: Service, rack: int) -> Section:
    """Report the pairs from and to a rack, the most demand first."""
    offered = service.problem.offered_bits
    out, into = np.flatnonzero(offered[rack]), np.flatnonzero(offered[:, rack])
    source = np.concatenate([np.full(len(out), rack), into])
    target = np.concatenate([out, np.full(len(into), rack)])
    order = np.argsort(-offered[source, target], kind="stable")
    return Section(
        title="Pairs that use it", frame=service.tabulate_pairs(source[order], target[order]), units=UNITS
    )


def rank_racks(
    problem: Circuits,
    decided: Decided,
    action: Action,
    options: Options,  # noqa: ARG001
) -> Mapping[str, float | None]:
    """Return the racks that may gain by faster links, those with the most left over first.

    No upgrade gains more than all that is left over. A faster rack has faster circuits only to racks that
    are faster than it is now, and one without a link to the packet switch gains nothing by a factor of it.
    """
    service = _derive_service(problem, decided)
    remaining = service.left_bits - problem.unreachable_bits
    total = float(np.maximum(remaining, 0.0).sum())
    if total <= ROUNDING * max(1.0, float(problem.bits.sum())) and problem.window_us is not None:
        return {}
    if action.parameter == "circuit_factors":
        may_gain = has_faster_peers(problem, problem.bits > 0)
    else:
        may_gain = ~problem.is_failed & (problem.packet_mbps > 0)
    of_rack = remaining.sum(axis=1) + remaining.sum(axis=0)
    bound = None if problem.window_us is None else total / problem.window_us
    order = np.argsort(-of_rack, kind="stable")
    return {str(problem.names[rack]): bound for rack in order if may_gain[rack]}


def has_faster_peers(racks: Racks, pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (n,) whether each rack works and has, in one of the pairs (n, n), a rack faster than itself."""
    rate = racks.racks["circuit_mbps"].to_numpy(float)
    works = ~racks.is_failed
    has_faster: NDArray[np.bool_] = works & ((pairs | pairs.T) & works & (rate > rate[:, None])).any(axis=1)
    return has_faster


ELEMENTS: Final = (
    ElementKind(name=PAIR, names=list_pairs, actions=PAIR_ACTIONS, describe=describe_pair),
    ElementKind(
        name=RACK, names=list_racks, actions=RACK_ACTIONS, describe=describe_rack, ranking=rank_racks
    ),
)
