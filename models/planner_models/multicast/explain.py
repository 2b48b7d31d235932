"""What limits a plan: which switches fill first, what larger tables or fewer copies give, link overhead."""

from __future__ import annotations

from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.system import Decided, Decision, Explanation, Section
from planner_models.multicast import allocation, capacity, dynamics, equations, layout, measure, repair, rules
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import LAYERS, Multicast
from planner_models.multicast.stored import rows_of

SHOWN: Final = 10  # rows of a table
SIZES: Final = (0.5, 1.0, 1.5, 2.0, 4.0)  # of the present table


def explain(
    problem: Multicast,
    decided: Decided,
    *,
    candidates: Annotated[
        int, Field(ge=0, description="most changes of tables and copies that the design is run again for")
    ] = 6,
    larger: Annotated[float, Field(gt=1, description="how much larger the tables that are tried")] = 1.5,
    events: Annotated[
        int, Field(ge=0, description="joins and leaves to try on the groups; needs the table tenants")
    ] = 0,
    batch: Annotated[int, Field(ge=1, description="of these, how many switches are told of at once")] = 1,
    previous: Channels | None = None,
    options: Options = Options(),
) -> Explanation:
    """A capacity report: entries by layer, the switches that fill first, what would make room, link overhead.

    Groups come in the order of their table; how many fit before a switch overflows is exact. Changes of
    tables and copies are verified by running the design again with the same parameters.

    previous  the plan to compare to: rules to add and remove in each switch; default: an empty network
    """
    plan: Channels = decided.decision.plan  # type: ignore[assignment]
    need = capacity.needed(problem)
    sentences, sections = [], []
    for section, sentence in (
        _layers(problem, plan, need),
        _fullest(need),
        _sizes(problem),
        _changes(problem, decided, larger, candidates, options),
        _links(problem, plan),
    ):
        sections.append(section)
        sentences.append(sentence)
    if not problem.is_tree:
        choice = layout.choose(problem)
        sections.append(layout.section(choice))
        sentences += choice.sentences()
    if problem.is_tree or problem.holds is not None:
        held = problem.distribution(problem.aggregation_copies)
        sections.append(allocation.section(problem.wiring, held, most=5 * SHOWN))
    if events:
        section, sentence = dynamics.section(problem, events=events, batch=batch, seed=options.seed or 0)
        sections.append(section)
        sentences.append(sentence)
    if problem.failed is not None and len(plan.partitions):
        section, sentence = repair.section(problem, plan, options=options)
        sections.append(section)
        sentences.append(sentence)
    section, sentence = _rules(problem, plan, previous)
    return Explanation(sentences=(*sentences, sentence), sections=(*sections, section))


def _layers(problem: Multicast, plan: Channels, need: pd.DataFrame) -> tuple[Section, str]:
    rows = []
    planned = plan.entries.set_index("switch")["entries"].reindex(need["switch"]).to_numpy()
    for layer in LAYERS:
        mine = (need["layer"] == layer).to_numpy()
        wanted, free, taken = need["needed"].to_numpy()[mine], need["free"].to_numpy()[mine], planned[mine]
        rows.append(
            {
                "layer": layer,
                "switches": int(mine.sum()),
                "free_min": int(free.min()),
                "needed_mean": float(wanted.mean()),
                "needed_max": int(wanted.max()),
                "overflowing": int((wanted > free).sum()),
                "planned_mean": float(taken.mean()),
                "planned_max": int(taken.max()),
            }
        )
    frame = pd.DataFrame(rows)
    in_entries = ("free_min", "needed_mean", "needed_max", "planned_mean", "planned_max")
    units = dict.fromkeys(in_entries, "entries") | {"switches": "switches", "overflowing": "switches"}
    stored = len(plan.partitions)
    sentence = f"{stored:,} of {len(problem.groups):,} groups have table entries"
    left = len(problem.groups) - stored
    sentence += f"; the other {left:,} go by unicast." if left else ", and none goes by unicast."
    note = "needed: if every group were stored and none shared an entry; planned: by this plan"
    return Section(title="entries by layer", frame=frame, units=units, note=note), sentence


def _fullest(need: pd.DataFrame) -> tuple[Section, str]:
    over = need[need["needed"] > need["free"]].sort_values("groups", kind="stable")
    shown = (
        over.head(SHOWN)
        if len(over)
        else need.assign(spare=need["free"] - need["needed"]).sort_values("spare", kind="stable").head(SHOWN)
    )
    frame = shown[["switch", "layer", "needed", "free", "groups"]].reset_index(drop=True)
    if len(over):
        first = over.iloc[0]
        sentence = (
            f"Without shared entries {first['switch']} fills first: {first['groups']:,.0f} groups fit, in "
            f"their order; it would need {first['needed']:,.0f} entries and has {first['free']:,.0f}."
        )
    else:
        first = frame.iloc[0]
        sentence = (
            f"Every table holds every group, even unshared; {first['switch']} has least to spare, "
            f"{first['free'] - first['needed']:,.0f} of {first['free']:,.0f} entries."
        )
    units = {"needed": "entries", "free": "entries", "groups": "groups"}
    note = "groups: how many come, in the order of their table, before the switch overflows"
    return Section(title="switches that fill first", frame=frame, units=units, note=note), sentence


def _sizes(problem: Multicast) -> tuple[Section, str]:
    """Groups that fit for table sizes around the present one, the same in every switch."""
    present = min(problem.table_size(layer) for layer in LAYERS)
    sizes = sorted({max(1, round(present * factor)) for factor in SIZES})
    found = capacity.of_problem(problem, largest=max(sizes))
    columns = {
        "none_shared": capacity.supported(found),
        "edges_share": capacity.supported(found, shared=["edge"]),
        "aggregations_share": capacity.supported(found, shared=["aggregation"]),
        "both_share": capacity.supported(found, shared=["edge", "aggregation"]),
        "unicast_entries": capacity.supported(found, shared=["aggregation"], unicast=True),
    }
    every = float(len(problem.groups))
    frame = pd.DataFrame(columns).loc[sizes].fillna(every).reset_index()
    here = frame[frame["table_entries"] == max(1, present)].iloc[0]
    sentence = (
        f"With tables of {present:,} entries everywhere, {here['none_shared']:,.0f} groups fit without "
        f"shared entries and {here['edges_share']:,.0f} where edge switches share them"
    )
    sentence += " (all of them)." if here["edges_share"] >= every else "."
    note = (
        "groups that fit before the first overflow, exact; unicast_entries: aggregation switches share, and "
        "edge switches give groups with one port there a unicast entry"
    )
    units = {"table_entries": "entries", **dict.fromkeys(columns, "groups")}
    return Section(title="groups that fit, by table size", frame=frame, units=units, note=note), sentence


def _changes(
    problem: Multicast, decided: Decided, larger: float, candidates: int, options: Options
) -> tuple[Section, str]:
    """Larger tables of one layer, and fewer or more copies, each by running the design again."""
    tries = [("as it is", problem)]
    need = capacity.needed(problem)
    crowding = (need["needed"] / need["free"].clip(lower=1)).groupby(need["layer"]).max()
    tries += [
        (f"{layer} tables x {larger:g}", _enlarged(problem, (layer,), larger))
        for layer in sorted(LAYERS, key=lambda name: -crowding[name])
    ]
    tries.append((f"all tables x {larger:g}", _enlarged(problem, LAYERS, larger)))
    if not problem.is_tree and problem.holds is None:
        tries += [
            (
                f"ra = {cut.aggregation_copies}, rc = {cut.core_copies}, n = {cut.partitions}",
                _recut(problem, cut),
            )
            for cut in equations.layouts(problem.k)
            if cut.aggregation_copies != problem.aggregation_copies
        ]
    rows: list[dict[str, Any]] = []
    for name, other in tries[: candidates + 1]:
        try:
            decision: Decision[Channels] = (
                decided.decision
                if other is problem
                else decided.design.decide(other, options=options, **decided.parameters)
            )
        except InputError:
            continue  # such as an exact method that the larger problem is too much for
        if decision.plan is None:
            continue
        worth = measure.measure(other, decision.plan, None)
        rows.append(
            {
                "change": name,
                "host_traffic_mbps": worth["host_traffic_mbps"],
                "hardware_groups": worth["hardware_groups"],
                "overhead_mbps": worth["overhead_mbps"],
            }
        )
    frame = pd.DataFrame(rows)
    frame["saves_mbps"] = frame["host_traffic_mbps"].iloc[0] - frame["host_traffic_mbps"]
    in_mbps = ("host_traffic_mbps", "overhead_mbps", "saves_mbps")
    units = {"hardware_groups": "groups", **dict.fromkeys(in_mbps, "Mbit/s")}
    best = frame.iloc[int(frame["saves_mbps"].argmax())]
    if best["saves_mbps"] > 1e-6 * frame["host_traffic_mbps"].iloc[0]:
        sentence = (
            f"Of the changes tried, {best['change']} saves the most: {best['saves_mbps']:,.0f} of "
            f"{frame['host_traffic_mbps'].iloc[0]:,.0f} Mbit/s, with {best['hardware_groups']:,.0f} groups "
            "in tables."
        )
    else:
        sentence = "None of the changes tried saves traffic."
    note = "each by running the design again with the same parameters"
    return Section(title="what would make room", frame=frame, units=units, note=note), sentence


def _enlarged(problem: Multicast, layers: tuple[str, ...], factor: float) -> Multicast:
    columns = {f"{layer}_entries": np.floor(problem.fabric[f"{layer}_entries"] * factor) for layer in layers}
    switches = problem.switches
    if switches is not None and "entries" in switches:
        at = pd.Series(problem.wiring.layers, index=problem.wiring.switches).reindex(switches["switch"])
        grown = np.where(np.isin(at, layers), np.floor(switches["entries"] * factor), switches["entries"])
        switches = switches.assign(entries=grown)
    return problem.with_entries(problem.fabric.assign(**columns), switches)


def _recut(problem: Multicast, cut: equations.Layout) -> Multicast:
    numbers = {
        "partitions": float(cut.partitions),
        "core_copies": float(cut.core_copies),
        "aggregation_copies": float(cut.aggregation_copies),
    }
    return problem.with_entries(problem.fabric.assign(**numbers), problem.switches)


def _links(problem: Multicast, plan: Channels) -> tuple[Section, str]:
    """Links to hosts with the most traffic that nobody there asked for, and the pods' links to edges."""
    kept = np.zeros(len(problem.groups), dtype=bool)
    kept[rows_of(problem.group_names, plan.partitions["group"])] = True
    wanted, extra = measure.host_links_mbps(problem, plan, kept)
    most = np.argsort(-extra.ravel(), kind="stable")[:SHOWN]
    edge, port = np.divmod(most, extra.shape[1])
    frame = pd.DataFrame(
        {
            "switch": problem.wiring.edges.to_numpy()[edge],
            "port": port,
            "wanted_mbps": wanted[edge, port],
            "overhead_mbps": extra[edge, port],
        }
    )
    frame = frame[frame["overhead_mbps"] > 0].reset_index(drop=True)
    if len(frame):
        sentence = (
            f"Shared entries bring {extra.sum():,.0f} Mbit/s that nobody asked for, "
            f"{100 * extra.sum() / max(wanted.sum(), 1e-9):.2g}% of what was; most at port "
            f"{frame['port'].iloc[0]} of {frame['switch'].iloc[0]}, "
            f"{frame['overhead_mbps'].iloc[0]:,.0f} Mbit/s."
        )
    else:
        sentence = "No host gets traffic that it did not ask for."
    return (
        Section(
            title="links to hosts with the most overhead",
            frame=frame,
            units={"wanted_mbps": "Mbit/s", "overhead_mbps": "Mbit/s"},
        ),
        sentence,
    )


def _rules(problem: Multicast, plan: Channels, previous: Channels | None) -> tuple[Section, str]:
    """Entries to add and remove in each switch since the previous plan."""
    if previous is None:
        entries = plan.entries[plan.entries["entries"] > 0]
        table = entries.assign(add=entries["entries"].astype(int), remove=0)[
            ["switch", "layer", "add", "remove"]
        ]
        name = "in an empty network"
    else:
        table, name = rules.changed(problem, plan, previous), "since the previous plan"
    total = table[["add", "remove"]].sum()
    count = f"{total['add']:,} entries to add and {total['remove']:,} to remove"
    sentence = f"{count} {name}, in {len(table):,} switches."
    order = table.assign(both=table["add"] + table["remove"]).sort_values(
        "both", ascending=False, kind="stable"
    )
    shown = order.head(SHOWN)[["switch", "layer", "add", "remove"]].reset_index(drop=True)
    note = f"the {len(shown)} switches with the most of {len(table):,}"
    units = {"add": "entries", "remove": "entries"}
    return Section(title=f"rules to add and remove {name}", frame=shown, units=units, note=note), sentence
