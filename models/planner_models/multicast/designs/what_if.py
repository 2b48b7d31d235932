"""Capacity report of a plan: switches that fill first, effect of larger tables or fewer copies, overhead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import counted, counted_of, number
from planner.options import Options
from planner_models.multicast.plan import forwarding, group_capacity, metrics, switch_groups
from planner_models.multicast.plan.overflow import Overflow
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.rerouting import repair_trees, reroute_groups, rerouting_cost
from planner_models.multicast.problem import address_allocation, equations
from planner_models.multicast.problem.failures import working_links
from planner_models.multicast.problem.problem import LAYERS, Multicast

SHOWN_ROWS: Final = 10
SIZE_FACTORS: Final = (0.5, 1.0, 1.5, 2.0, 4.0)  # of the present table


def explain(
    problem: Multicast,
    decided: Decided,
    *,
    candidates: Annotated[
        int, Field(ge=0, description="most changes of tables and copies that the design solves again for")
    ] = 6,
    larger: Annotated[float, Field(gt=1, description="factor of the larger tables that are tried")] = 1.5,
    events: Annotated[
        int, Field(ge=0, description="joins and leaves to try on the groups; needs the table tenants")
    ] = 0,
    batch: Annotated[int, Field(ge=1, description="of these, events announced to switches at once")] = 1,
    options: Options = Options(),
) -> Explanation:
    """Return a capacity report: entries by layer, switches that fill first, changes, and link metrics.

    Groups come in the order of their table; the number that fits before a switch overflows is exact. Changes
    of tables and copies are verified by solving again with the same parameters. Rules to add and remove are
    compared to the plan's baseline, or to an empty network.
    """
    plan = decided.decision.plan
    assert isinstance(plan, Channels)
    need = group_capacity.required_entries(problem)
    parts = [
        _describe_layers(problem, plan, need),
        _describe_fullest(need),
        _describe_sizes(problem),
        _describe_changes(problem, decided, need, larger, candidates, options),
        _describe_links(problem, plan),
    ]
    if not problem.is_tree:
        choice = group_capacity.choose_layout(problem)
        parts.append((group_capacity.describe_choice(choice), " ".join(choice.sentences())))
    if problem.is_tree or problem.holds is not None:
        held = problem.distribution(problem.aggregation_copies)
        parts.append((address_allocation.describe_allocation(problem.wiring, held, rows=5 * SHOWN_ROWS), ""))
    if events:
        seed = options.seed or 0
        parts.append(switch_groups.describe_updates(problem, events=events, batch=batch, seed=seed))
    if problem.has_failures and len(plan.partitions):
        parts.append(describe_failures(problem, plan, options=options))
    if (pairs := plan.overflow_pairs(problem)) is not None:
        parts.append(_describe_overflow(problem, pairs))
    parts.append(_describe_rules(problem, plan, decided))
    sentences = tuple(sentence for _, sentence in parts if sentence)
    return Explanation(sentences=sentences, sections=tuple(section for section, _ in parts))


def _describe_layers(problem: Multicast, plan: Channels, need: pd.DataFrame) -> tuple[Section, str]:
    """Return the entries by layer, needed and planned."""
    rows = []
    planned = plan.entries.set_index("switch")["entries"].reindex(need["switch"]).to_numpy()
    for layer in problem.wiring.layer_names:
        of_layer = (need["layer"] == layer).to_numpy()
        needed, free, taken = (
            need["needed"].to_numpy()[of_layer],
            need["free"].to_numpy()[of_layer],
            planned[of_layer],
        )
        rows.append(
            {
                "layer": layer,
                "switches": int(of_layer.sum()),
                "free_min": int(free.min()),
                "needed_mean": float(needed.mean()),
                "needed_max": int(needed.max()),
                "overflowing": int((needed > free).sum()),
                "planned_mean": float(taken.mean()),
                "planned_max": int(taken.max()),
            }
        )
    frame = pd.DataFrame(rows)
    in_entries = ("free_min", "needed_mean", "needed_max", "planned_mean", "planned_max")
    units = dict.fromkeys(in_entries, "entries") | {"switches": "switches", "overflowing": "switches"}
    pairs = plan.overflow_pairs(problem)
    without = 0 if pairs is None else len(np.unique(pairs.group))
    stored, groups = len(plan.partitions) - without, len(problem.groups)
    sentence = f"{counted_of(stored, groups, 'groups', 'have')} table entries"
    remaining = groups - len(plan.partitions)
    if without:
        sentence += f" at all of their switches; {without:,} lack one at some."
    else:
        sentence += (
            f"; the other {remaining:,} go by unicast." if remaining else ", and none goes by unicast."
        )
    note = "needed: if every group is stored and none shares an entry; planned: by this plan"
    return Section(title="entries by layer", frame=frame, units=units, note=note), sentence


def _describe_fullest(need: pd.DataFrame) -> tuple[Section, str]:
    """Return the switches that overflow first, or have the fewest free entries."""
    over = need[need["needed"] > need["free"]].sort_values("groups", kind="stable")
    shown = (
        over.head(SHOWN_ROWS)
        if len(over)
        else need.assign(spare=need["free"] - need["needed"])
        .sort_values("spare", kind="stable")
        .head(SHOWN_ROWS)
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
            f"Every table holds every group, even unshared; {first['switch']} has the fewest free, "
            f"{first['free'] - first['needed']:,.0f} of {first['free']:,.0f} entries."
        )
    units = {"needed": "entries", "free": "entries", "groups": "groups"}
    note = "groups: number that fit, in the order of their table, before the switch overflows"
    return Section(title="switches that fill first", frame=frame, units=units, note=note), sentence


def _describe_sizes(problem: Multicast) -> tuple[Section, str]:
    """Return the groups that fit for table sizes around the present one, the same in every switch."""
    present = min(problem.table_size(layer) for layer in problem.wiring.layer_names)
    sizes = sorted({present, *(max(1, round(present * factor)) for factor in SIZE_FACTORS)})
    capacity = group_capacity.problem_capacity(problem, largest=max(sizes))
    columns = {
        "none_shared": group_capacity.supported_groups(capacity),
        "edges_share": group_capacity.supported_groups(capacity, shared=["edge"]),
        "aggregations_share": group_capacity.supported_groups(capacity, shared=["aggregation"]),
        "both_share": group_capacity.supported_groups(capacity, shared=["edge", "aggregation"]),
        "unicast_entries": group_capacity.supported_groups(capacity, shared=["aggregation"], unicast=True),
    }
    every = float(len(problem.groups))
    frame = pd.DataFrame(columns).loc[sizes].fillna(every).reset_index()
    here = frame[frame["table_entries"] == present].iloc[0]
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


def _describe_changes(
    problem: Multicast, decided: Decided, need: pd.DataFrame, larger: float, candidates: int, options: Options
) -> tuple[Section, str]:
    """Return the changes of tables and copies that gain most."""
    by_name = {metric.name: metric for metric in metrics.METRICS}
    again = Reoptimization[Multicast](
        decided, metric=by_name["host_traffic_mbps"], measure=metrics.measure, options=options
    )
    trials = again.solve_all(_list_changes(problem, need, larger), candidates)
    others = (by_name["groups_with_entries"], by_name["overhead_mbps"])
    section = again.section(trials, title="changes of tables and copies", others=others)
    return section, again.sentence(trials)


def _list_changes(problem: Multicast, need: pd.DataFrame, larger: float) -> Iterator[Change[Multicast]]:
    """Yield larger tables of one layer, the fullest first, of all layers, and other numbers of copies."""
    utilization = (need["needed"] / need["free"].clip(lower=1)).groupby(need["layer"]).max()
    for layer in sorted(problem.wiring.layer_names, key=lambda name: -utilization[name]):
        yield Change(name=f"{layer} tables x {larger:g}", problem=_enlarge(problem, (layer,), larger))
    yield Change(name=f"all tables x {larger:g}", problem=_enlarge(problem, LAYERS, larger))
    if problem.is_tree or problem.holds is not None:
        return
    for layout in equations.list_layouts(problem.k):
        if layout.aggregation_copies != problem.aggregation_copies:
            name = f"ra = {layout.aggregation_copies}, rc = {layout.core_copies}, n = {layout.partitions}"
            yield Change(name=name, problem=problem.with_layout(layout))


def _enlarge(problem: Multicast, layers: tuple[str, ...], factor: float) -> Multicast:
    """Return the problem with tables of these layers enlarged by the factor."""
    columns = {f"{layer}_entries": np.floor(problem.fabric[f"{layer}_entries"] * factor) for layer in layers}
    switches = problem.switches
    if switches is not None and "entries" in switches:
        layer_of = pd.Series(problem.wiring.layers, index=problem.wiring.switches).reindex(switches["switch"])
        enlarged = np.where(
            np.isin(layer_of, layers), np.floor(switches["entries"] * factor), switches["entries"]
        )
        switches = switches.assign(entries=enlarged)
    return problem.with_entries(problem.fabric.assign(**columns), switches)


def _describe_links(problem: Multicast, plan: Channels) -> tuple[Section, str]:
    """Return the links to hosts with the most metrics."""
    useful, extra = metrics.host_links_mbps(problem, plan)
    largest = np.argsort(-extra.ravel(), kind="stable")[:SHOWN_ROWS]
    edge, port = np.divmod(largest, extra.shape[1])
    frame = pd.DataFrame(
        {
            "switch": problem.wiring.edges.to_numpy()[edge],
            "port": port,
            "wanted_mbps": useful[edge, port],
            "overhead_mbps": extra[edge, port],
        }
    )
    frame = frame[frame["overhead_mbps"] > 0].reset_index(drop=True)
    if len(frame):
        cause = "Flooding brings" if plan.overflow is not None else "Shared entries bring"
        sentence = (
            f"{cause} {extra.sum():,.0f} Mbit/s to hosts that are no members, "
            f"{number(100 * extra.sum() / max(useful.sum(), 1e-9))}% of the wanted traffic; most at port "
            f"{frame['port'].iloc[0]} of {frame['switch'].iloc[0]}, "
            f"{frame['overhead_mbps'].iloc[0]:,.0f} Mbit/s."
        )
    else:
        sentence = "No host gets traffic of groups that it is no member of."
    return (
        Section(
            title="links to hosts with the most overhead",
            frame=frame,
            units={"wanted_mbps": "Mbit/s", "overhead_mbps": "Mbit/s"},
        ),
        sentence,
    )


def _describe_overflow(problem: Multicast, pairs: Overflow) -> tuple[Section, str]:
    """Return the switches that flood most traffic of groups without an entry, or forward it by processor."""
    wires = problem.wiring
    count = len(wires.switches)
    rate = problem.rate_mbps[pairs.group] * pairs.share
    groups = np.bincount(pairs.switch, minlength=count)
    traffic = np.bincount(pairs.switch, rate, minlength=count)
    dropped = pairs.dropped * pairs.processor_mbps
    order = np.argsort(-traffic, kind="stable")[:SHOWN_ROWS]
    order = order[groups[order] > 0]
    frame = pd.DataFrame(
        {
            "switch": wires.switches[order].astype(str),
            "layer": wires.layers[order].astype(str),
            "groups": groups[order],
            "traffic_mbps": traffic[order],
            "by_processor_mbps": pairs.processor_mbps[order],
            "dropped_mbps": dropped[order],
        }
    )
    first = frame.iloc[0]
    full = counted(int((groups > 0).sum()), "switches")
    if pairs.floods.all():
        flooding = pairs.flood()
        extra = float(flooding.rate_mbps @ np.bitwise_count(flooding.ports))
        sentence = (
            f"{full} flood {counted(len(np.unique(pairs.group)), 'groups')} that they have no entry for: "
            f"{number(extra)} Mbit/s reach hosts that are no members. Most is flooded by {first['switch']}, "
            f"{number(first['traffic_mbps'])} Mbit/s of {counted(int(first['groups']), 'groups')}."
        )
    else:
        over = int((pairs.dropped > 0).sum())
        sentence = (
            f"The processors of {full} forward groups without an entry; the busiest is that of "
            f"{first['switch']}, with {number(first['by_processor_mbps'])} of "
            f"{number(problem.processor_mbps)} Mbit/s. "
            + (f"{counted(over, 'processors')} drop a part." if over else "None drops any.")
        )
    units = {"groups": "groups"} | dict.fromkeys(
        ("traffic_mbps", "by_processor_mbps", "dropped_mbps"), "Mbit/s"
    )
    note = "traffic: what arrives of groups without an entry, where several switches hold a group its part"
    return Section(title="groups without an entry", frame=frame, units=units, note=note), sentence


def _describe_rules(problem: Multicast, plan: Channels, decided: Decided) -> tuple[Section, str]:
    """Return the entries to add and remove in each switch since the baseline, or in an empty network."""
    if decided.baseline is None:
        entries = plan.entries[plan.entries["entries"] > 0]
        table = entries.assign(add=entries["entries"].astype(int), remove=0)
        name = "in an empty network"
    else:
        table = forwarding.compare_plans(problem, plan, decided.baseline)
        name = f"since {decided.baseline_name}"
    total = table[["add", "remove"]].sum()
    count = f"{total['add']:,} entries to add and {total['remove']:,} to remove"
    sentence = f"{count} {name}, in {counted(len(table), 'switches')}."
    order = table.assign(both=table["add"] + table["remove"]).sort_values(
        "both", ascending=False, kind="stable"
    )
    shown = order.head(SHOWN_ROWS)[["switch", "layer", "add", "remove"]].reset_index(drop=True)
    note = f"the {len(shown)} switches with the most of {len(table):,}"
    units = {"add": "entries", "remove": "entries"}
    return Section(title=f"rules to add and remove {name}", frame=shown, units=units, note=note), sentence


def describe_failures(
    problem: Multicast, plan: Channels, *, options: Options = Options()
) -> tuple[Section, str]:
    """Return the effect of the problem's failed switches and links on a plan, as a section and a sentence.

    Local rerouting at once, with its cost in headers and tables, then trees rebuilt by set cover.
    """
    names, links = problem.failed_names, problem.failed_pairs
    state = working_links(problem)
    reached = reroute_groups(problem, plan, state)
    greedy = repair_trees(problem, plan, state, exact=False)
    exact = repair_trees(problem, plan, state, options=options)
    got = reached.stretch[np.isfinite(reached.stretch)]
    rows: list[tuple[str, float, str]] = [
        ("failed switches", len(names), "switches"),
        ("failed links", len(links), "links"),
        ("rerouted: groups with members that packets miss", (reached.unreachable > 0).sum(), "groups"),
        ("rerouted: members that packets miss, mean of groups", 100 * reached.unreachable.mean(), "%"),
        ("rerouted: route stretch, mean of groups", got.mean() if len(got) else np.nan, ""),
        ("rerouted: route stretch, most", got.max() if len(got) else np.nan, ""),
    ]
    if not problem.is_tree:
        needs = rerouting_cost(problem.k)
        rows += [
            ("rerouting needs: marks in headers", needs.identifiers, "identifiers"),
            ("rerouting needs: header bits for them", needs.identifier_bits, "bits"),
            ("rerouting needs: unicast entries of an edge switch", needs.edge_rules, "entries"),
            ("rerouting needs: unicast entries of an aggregation switch", needs.aggregation_rules, "entries"),
        ]
    rows += [
        ("rebuilt: trees with several roots", (exact.table["roots"] > 1).sum(), "trees"),
        ("rebuilt: trees with pods that no core reaches", (exact.table["missing"] > 0).sum(), "trees"),
        ("rebuilt: entries to add", exact.table["entries"].sum(), "entries"),
        ("rebuilt: gap of the greedy trees", 100 * greedy.gap, "%"),
        ("rebuilt: gap of these trees", 100 * exact.gap, "%"),
    ]
    frame = pd.DataFrame(rows, columns=["what", "value", "unit"]).astype({"value": float})
    sentence = (
        f"With {_count_failures(len(names), len(links))}, local rerouting reaches "
        f"{100 * (1 - reached.unreachable.mean()):.4g}% of the members on ways "
        f"{got.mean() if len(got) else np.nan:.3f} times as long; rebuilt trees need "
        f"{exact.table['entries'].sum():,.0f} more entries."
    )
    return Section(title="failures", frame=frame), sentence


def _count_failures(switches: int, links: int) -> str:
    """Return the numbers of failed switches and links, in words."""
    parts = [counted(switches, "failed switches")] if switches or not links else []
    parts += [counted(links, "failed links")] if links else []
    return " and ".join(parts)
