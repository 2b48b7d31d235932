"""Explanation of a cache: the use of its time, the rules that force bits into masks, and their cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import parameters_of
from planner.contract.studies import Decided, Explanation, Section
from planner.errors import InputError
from planner.formatting import sizes
from planner.options import Options
from planner_models.flowtables.designs.cover import Headers, group_headers
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.cache_sizes import find_size_curve
from planner_models.flowtables.plan.check import follow
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.plan.installed import list_installed
from planner_models.flowtables.plan.metrics import measure
from planner_models.flowtables.plan.offload import choose_offload, list_candidates, read_limits
from planner_models.flowtables.plan.plan import Cache, parse_mask, read_plan
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.goto_merging import Paths, choose_merging, find_mergings
from planner_models.flowtables.problem.problem import FlowTables, match_any

MOST_HEADERS: Final = 500  # whose masks are taken apart
MOST_ROWS: Final = 8
LEAST_SAVED: Final = 0.05  # %, of a change that is said to save time
NOTE: Final = (
    "each rule is left out, or moved behind all others of its table, and the design decides again; "
    "forced: connections with bits that the rule forces; differ: connections that then get another action"
)


def explain(
    problem: FlowTables,
    decided: Decided,
    *,
    rules: Annotated[
        int,
        Field(ge=0, le=100, description="rules that force the most bits, each left out and moved last"),
    ] = 3,
    connections_per_s: Annotated[
        float,
        Field(
            gt=0, le=1e9, description="rate of new connections, which share the time to check entries again"
        ),
    ] = 10_000.0,
    options: Options = Options(),
) -> Explanation:
    """Explain the time of a connection, the masks, the size of the cache, and which rules force bits.

    A rule forces a bit into a header's mask where the bit is the only one that tells the header from packets
    of this rule, which has another action. What a rule costs is found by deciding again without it, and with
    it behind all other rules of its table.
    """
    plan: Cache = decided.decision.plan  # type: ignore[assignment]
    now = measure(problem, plan, None)
    sentences = [_say_time(problem, now)]
    if decided.baseline is not None:
        before = measure(problem, decided.baseline, None)
        sentences.append(
            f"{decided.baseline_name[0].upper()}{decided.baseline_name[1:]}: "
            f"{_us(before)} us, {sizes(_counts(before))}."
        )
    sections = [_tabulate_masks(problem, plan)] if len(plan.masks) else []
    if problem.installed is not None:
        sections.insert(0, _compare_installed(problem, now))
        sections += tabulate_consulted(problem)
    if len(plan.megaflows):
        sentence, section = _tabulate_sizes(problem, plan, connections_per_s)
        sentences.append(sentence)
        sections.append(section)
    if plan.offload is not None:
        sentences.append(_say_offload(problem, plan, now))
    if len(problem.table_numbers) > 1:
        sentences.append(_say_merging(problem))
    if len(problem.table_numbers) > 1 and problem.is_plain:
        sections.append(_tabulate_mergings(problem))
    rules = 0 if problem.is_evaluated else rules  # rules are entries then, which no one writes
    forced = count_forced(problem, sample_headers(problem)) if rules else np.zeros(len(problem.rules))
    frame = _try_changes(problem, decided, forced, rules, float(now["cpu_per_connection_us"] or 0.0), options)
    if len(frame):
        best = frame.iloc[0]
        sentences.append(
            f"None of the {frame['rule'].nunique()} rules that force the most bits saves time where it is "
            f"left out or moved last; rule {best['rule']:.0f} forces bits into the masks of "
            f"{best['forced']:.1f}% of connections."
            if best["saves"] < LEAST_SAVED
            else f"Rule {best['rule']:.0f} ({best['match'] or 'all packets'}) forces bits into the masks of "
            f"{best['forced']:.1f}% of connections; {best['change']}, a connection takes "
            f"{best['time']:.4g} us, and {best['differ']:.1f}% of connections get another action."
        )
        units = {"forced": "%", "differ": "%", "time": "us", "saves": "%"}
        sections.append(Section(title="Rules that force bits", frame=frame, units=units, note=NOTE))
    elif rules:
        sentences.append("No rule alone forces a bit into a mask.")
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def sample_headers(problem: FlowTables) -> Headers:
    """Return the most frequent headers that rules can tell apart, up to 500."""
    headers = group_headers(problem)
    rows = np.sort(np.argsort(-headers.weight, kind="stable")[:MOST_HEADERS])
    return Headers(words=np.ascontiguousarray(headers.words[rows]), weight=headers.weight[rows])


def count_forced(problem: FlowTables, headers: Headers) -> Floats:
    """Return for each rule the connections with a least specific mask that has a bit for it alone, (rules,).

    Such a bit is the only one of the mask in which the header differs from an entry of the rule.
    """
    masks = make_least_masks(problem, by_entropy=False)(headers.words)
    forced = np.zeros(len(problem.rules))
    for header, mask, weight in zip(headers.words, masks, headers.weight.tolist(), strict=True):
        rows = find_forcing(problem, header, mask)
        forced[rows] += weight
    return forced


def find_forcing(problem: FlowTables, header: Words, mask: Words) -> list[int]:
    """Return the rules that force a bit of a mask: without it, entries do not settle the action."""
    entries = problem.entries
    differs = (header ^ entries.value) & entries.mask & mask
    single = np.flatnonzero(np.bitwise_count(differs).sum(axis=1) == 1)
    rules = []
    for entry in single.tolist():
        wider = mask & ~differs[entry]
        if match_any(header & wider, entries.value[entry][None], entries.mask[entry][None] & wider)[0]:
            settled = follow(problem, header & wider, wider)
            if settled is None and entries.rule[entry] >= 0:
                rules.append(int(entries.rule[entry]))
    return sorted(set(rules))


def _us(metrics: dict[str, float | None]) -> str:
    return f"{metrics['cpu_per_connection_us'] or 0.0:.4g}"


def _counts(measured: dict[str, float | None]) -> dict[str, int]:
    return {name: round(measured[name] or 0.0) for name in ("misses", "masks")}


def _say_time(problem: FlowTables, now: dict[str, float | None]) -> str:
    """Return the time of a connection, in lookups and in misses."""
    misses, masks = now["misses"] or 0.0, now["masks"] or 0.0
    per_miss = problem.cost("upcall_us") + problem.probe_us * masks
    lost = misses * per_miss / len(problem.flows)
    punts = problem.cost("upcall_us") * (now["to_controller"] or 0.0) / len(problem.flows)
    lookups = (now["cpu_per_connection_us"] or 0.0) - lost - punts
    to_controller = f"; {punts:.4g} us for packets to the controller" if punts else ""
    return (
        f"A new connection takes {_us(now)} us of CPU time: {lookups:.4g} us for lookups and "
        f"{lost:.4g} us for {sizes(_counts(now)).replace(', ', ' in ')}, each miss {per_miss:.4g} us"
        f"{to_controller}."
    )


def _tabulate_masks(problem: FlowTables, plan: Cache) -> Section:
    """Return the first masks of the search."""
    frame = plan.masks.sort_values("position", kind="stable").head(MOST_ROWS).reset_index(drop=True)
    share = 100 * frame["connections"] / len(problem.flows)
    frame = frame.assign(mask=frame["mask"].replace("", "all packets"), connections=share)
    remaining = len(plan.masks) - len(frame)
    return Section(
        title="Masks in the order of the search",
        frame=frame,
        units={"connections": "%"},
        note=f"and {remaining:,} more" if remaining else "",
    )


def _tabulate_sizes(problem: FlowTables, plan: Cache, connections_per_s: float) -> tuple[str, Section]:
    """Return the size of the cache with the least time, and misses and time by size."""
    curve = find_size_curve(problem, plan, connections_per_s=connections_per_s)
    best, largest = curve.best, len(curve.misses) - 1
    total = curve.connection_us + curve.revalidate_us
    shown = [
        size for size in np.geomspace(1, largest, MOST_ROWS).round().astype(int).tolist() if size != best
    ]
    rows = sorted({*shown[:-1], best, largest})
    frame = pd.DataFrame(
        {
            "entries": np.array(rows, dtype=float),
            "misses": curve.misses[rows].astype(float),
            "lookups_and_misses": curve.connection_us[rows],
            "checks": curve.revalidate_us[rows],
            "total": total[rows],
        }
    )
    sentence = (
        f"A cache of {best:,} of its {largest:,} entries takes the least time with checks of entries, at "
        f"{connections_per_s:,.10g} connections/s: {total[best]:.4g} us"
    )
    sentence += f"; all entries take {total[largest]:.4g} us." if best < largest else "."
    return sentence, Section(
        title="Size of the cache, where a miss replaces the least recently used entry",
        frame=frame,
        units=dict.fromkeys(("lookups_and_misses", "checks", "total"), "us"),
        note="time of a new connection; all sizes in one pass over the connections, by stack distances",
    )


def _say_offload(problem: FlowTables, plan: Cache, now: dict[str, float | None]) -> str:
    """Return the entries that the network card holds, what they save, and the bound on that."""
    assert plan.offload is not None
    content, service = read_plan(problem, plan)
    limits = read_limits(problem)
    assert limits is not None
    candidates = list_candidates(problem, service.entry, service.searched, content.mask_of)
    bound = choose_offload(candidates, limits).bound
    total = max(float((service.searched * problem.packets).sum()), 1.0)
    return (
        f"The network card holds {len(plan.offload):,} of {len(plan.megaflows):,} entries: "
        f"{now['offloaded'] or 0.0:.4g}% of packets, and {now['lookups_saved'] or 0.0:.4g}% of lookups; no "
        f"selection saves more than {100 * bound / total:.4g}% of lookups."
    )


def _compare_installed(problem: FlowTables, now: dict[str, float | None]) -> Section:
    """Return entries, masks, lookups and upcalls of the cache as it is, beside those of the plan."""
    _, mask_of, masks = list_installed(problem)
    counted: dict[Any, Any] = {} if problem.statistics is None else problem.statistics.iloc[0].to_dict()
    hits, missed, lookups = (counted.get(name) for name in ("hits", "missed", "mask_hits"))
    packets = (hits or 0.0) + (missed or 0.0)
    per_packet = lookups / packets if lookups and packets else None
    rows: list[tuple[str, float | None, float | None]] = [
        ("entries", float(len(mask_of)), now["megaflows"]),
        ("masks", counted.get("masks") or float(len(masks)), now["masks"]),
        ("lookups of a packet", per_packet, now["probes_per_packet"]),
        ("packets that found an entry", hits, None),
        ("upcalls", missed, None),
        ("hit rate, %", 100 * hits / packets if hits and packets else None, now["hit_rate"]),
        ("packets lost before userspace", counted.get("lost"), None),
    ]
    shown = [row for row in rows if row[1] is not None]
    return Section(
        title="Cache of the switch now, and of the plan",
        frame=pd.DataFrame(shown, columns=["of the cache", "now", "plan"]).astype({"plan": float}),
        note="now: counted by the datapath since it started; plan: for the table of connections"
        if counted
        else "now: as the tables of the switch make it; plan: for the table of connections",
    )


def tabulate_consulted(problem: FlowTables) -> list[Section]:
    """Return the bits that each table of the switch adds to masks of entries; none where it is unknown."""
    assert problem.installed is not None
    if "consulted" not in problem.installed or not problem.installed["consulted"].notna().any():
        return []
    masks: dict[int, list[int]] = {}
    words: dict[int, dict[str, None]] = {}
    for text in problem.installed["consulted"].fillna(""):
        for item in filter(None, str(text).split("; ")):
            table, _, mask = item.partition(": ")
            masks.setdefault(int(table), []).append(parse_mask(problem, mask).bit_count())
            words.setdefault(int(table), {}).update(dict.fromkeys(w.partition("/")[0] for w in mask.split()))
    rows = [
        (float(table), float(len(counts)), sum(counts) / len(counts), " ".join(words[table]))
        for table, counts in sorted(masks.items())
    ]
    return [
        Section(
            title="Bits that tables of the switch add to entries",
            frame=pd.DataFrame(rows, columns=["table", "entries", "bits", "fields"]),
            note="entries to whose masks a lookup in the table adds bits, and their mean number; other bits "
            "are matched always, or read by actions",
        )
    ]


def _say_merging(problem: FlowTables) -> str:
    """Return the flow tables that the plan merges, and their entries before and after."""
    count, merging = len(problem.table_numbers), choose_merging(problem)
    if not problem.is_plain:
        return (
            f"The {count} flow tables stay as they are, {sum(merging.entries):,} entries: rules write "
            "registers or headers, or packets come back."
        )
    before = sum(len(table) for table in Paths(problem).tables)
    if merging.lookups == count:
        return f"No two of the {count} flow tables can be merged without more than {before:,} entries."
    return (
        f"The {count} flow tables have {before:,} entries, with one in each for packets without a match; "
        f"merged into {merging.lookups}, which is the layout of the plan, they have {sum(merging.entries):,}."
    )


def _tabulate_mergings(problem: FlowTables) -> Section:
    """Return the entries of the switch's own tables, where neighbours are merged into fewer."""
    numbers = problem.table_numbers
    mergings = find_mergings(problem)
    rows = [
        (
            float(merging.lookups),
            float(sum(merging.entries)),
            " ".join(
                f"{numbers[first]}-{numbers[last]}" if last > first else str(numbers[first])
                for first, last in merging.groups
            ),
        )
        for merging in mergings[:MOST_ROWS]
    ]
    return Section(
        title="Flow tables merged into fewer, with the fewest entries",
        frame=pd.DataFrame(rows, columns=["tables", "entries", "groups"]),
        note="tables that a miss is looked up in, and entries of all of them, where neighbours are one table"
        + (f"; and {len(mergings) - MOST_ROWS} more" if len(mergings) > MOST_ROWS else ""),
    )


def leave_out(problem: FlowTables, rule: int) -> FlowTables | None:
    """Return the problem without a rule; None where a rule goes to its table, which would be empty."""
    try:
        return replace(problem, rules=problem.rules.drop(problem.rules.index[rule]), changes=None)
    except InputError:
        return None


def move_last(problem: FlowTables, rule: int) -> FlowTables | None:
    """Return the problem with a rule after all others of its table but those that match all packets.

    None where it is there already. The priorities of its table are numbered again.
    """
    rules = problem.rules.reset_index(drop=True)
    table_rules = np.flatnonzero(rules["table"].to_numpy() == rules["table"].iloc[rule])
    order = table_rules[np.argsort(-rules["priority"].to_numpy(float)[table_rules], kind="stable")].tolist()
    others = [row for row in order if row != rule]
    specific = [index for index, row in enumerate(others) if problem.matches[row]]
    position = specific[-1] + 1 if specific else 0
    moved = [*others[:position], rule, *others[position:]]
    if position <= order.index(rule) or not problem.matches[rule]:
        return None
    priority = rules["priority"].to_numpy(float).copy()
    priority[moved] = np.arange(len(moved), 0, -1)
    return replace(problem, rules=rules.assign(priority=priority), changes=None)


CHANGES: Final = {"left out": leave_out, "moved last": move_last}


def _try_changes(
    problem: FlowTables, decided: Decided, forced: Floats, count: int, now_us: float, options: Options
) -> pd.DataFrame:
    """Return the rules that force the most bits, with the time of a connection where each is changed."""
    rows = []
    total = len(problem.flows)
    before = _name_actions(problem, problem)
    parameters = dict(decided.parameters)
    if "prove" in parameters_of(decided.design.decide):
        parameters["prove"] = False  # only the time is asked for
    for rule in np.argsort(-forced, kind="stable")[:count].tolist():
        if forced[rule] <= 0:
            break
        for change, make in CHANGES.items():
            changed = make(problem, rule)
            again = changed and decided.design.run(changed, options=options, parameters=parameters)
            if not changed or not again or again.plan is None:
                continue
            time_us = float(measure(changed, again.plan, None)["cpu_per_connection_us"] or 0.0)
            saves = 100 * (now_us - time_us) / max(now_us, 1e-9)
            other = 100 * float((_name_actions(changed, problem) != before).mean())
            forces = 100 * forced[rule] / total
            rows.append((rule + 1.0, problem.matches[rule], forces, change, time_us, saves, other))
    columns = ["rule", "match", "forced", "change", "time", "saves", "differ"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("saves", ascending=False, kind="stable").reset_index(drop=True)


def _name_actions(problem: FlowTables, traffic: FlowTables) -> np.ndarray:
    """Return the name of the action that rules give each connection, (F,)."""
    names = np.array(problem.actions, dtype=object)
    return np.asarray(names[classify(traffic.headers, problem.entries)])
