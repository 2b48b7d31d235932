"""Fences and names of a plan: their tables, their check by counting, and their effects on a service."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.plan import Violations
from planner.errors import PlanRejected
from planner_models.membership.plan.epochs import EpochUse, cuts_without_epoch
from planner_models.membership.plan.fencing import BorderPorts, beside_of, granularity_name, rules_of
from planner_models.membership.plan.plan import FENCES, NAMES, MembershipPlan
from planner_models.membership.problem.problem import Membership, Naming
from planner_models.membership.problem.schema import (
    EXCLUDED,
    GRANULARITIES,
    HOST_PORT,
    NAME_BITS,
)


def border_ports(problem: Membership) -> BorderPorts | None:
    """Return the ports of a problem as arrays; None where it has none."""
    frame = problem.ports
    if frame is None or not len(frame):
        return None
    switch = pd.Index(problem.switch_names).get_indexer(pd.Index(frame["switch"].astype(str)))
    first = frame.drop_duplicates("switch")
    return BorderPorts(
        switch=switch.astype(np.int64),
        is_host=(frame["to"] == HOST_PORT).to_numpy(bool),
        rules=frame[["processes", "applications", "epochs"]].to_numpy(float).astype(np.int64),
        processes=frame["processes"].to_numpy(float),
        capacity=first["rule_capacity"].to_numpy(float).astype(np.int64),
        rule_ms=first["rule_ms"].to_numpy(float),
    )


def tabulate_fences(problem: Membership, ports: BorderPorts, by: Ints) -> pd.DataFrame:
    """Return the table of fences."""
    assert problem.ports is not None
    return pd.DataFrame(
        {
            "switch": problem.ports["switch"].to_numpy(object),
            "port": problem.ports["port"].to_numpy(object),
            "by": [granularity_name(choice) for choice in by.tolist()],
            "rules": rules_of(ports, by),
        },
        columns=list(FENCES.columns),
    )


def tabulate_naming(
    naming: Naming, *, bits_of_epoch: int, bits_of_app: int, epochs_per_cut: int
) -> pd.DataFrame:
    """Return the table of names."""
    row = (float(bits_of_epoch), float(bits_of_app), float(naming.bits_of_local), float(epochs_per_cut))
    return pd.DataFrame([row], columns=list(NAMES.columns))


def read_fences(problem: Membership, plan: MembershipPlan) -> tuple[BorderPorts, Ints] | None:
    """Return the ports with the granularity of each, (P,), -1 for excluded; None for a plan without fences.

    raises  PlanRejected where the fences are not those of the ports
    """
    ports, frame = border_ports(problem), plan.fences
    if frame is None:
        return None
    if ports is None or problem.ports is None:
        raise PlanRejected("fences: the problem has no ports")
    keys = list(zip(frame["switch"].astype(str), frame["port"].astype(str), strict=True))
    expected = list(zip(problem.ports["switch"].astype(str), problem.ports["port"].astype(str), strict=True))
    if sorted(keys) != sorted(expected):
        missing = sorted(set(expected) ^ set(keys))[0]
        raise PlanRejected(f"fences: port '{missing[1]}' of switch '{missing[0]}' must be in it once")
    numbers = {name: number for number, name in enumerate(GRANULARITIES)} | {EXCLUDED: -1}
    by_port = {key: numbers[str(by)] for key, by in zip(keys, frame["by"], strict=True)}
    return ports, np.array([by_port[key] for key in expected], dtype=np.int64)


def rules_by_switch(plan: MembershipPlan) -> dict[str, float]:
    """Return the rules of fences at each switch, counted from the plan's table."""
    if plan.fences is None:
        return {}
    counts: dict[str, float] = {}
    for switch, rules in zip(plan.fences["switch"].astype(str), plan.fences["rules"], strict=True):
        counts[switch] = counts.get(switch, 0.0) + float(rules)
    return counts


def check_fences(problem: Membership, plan: MembershipPlan) -> Violations:
    """Return the switches with too many rules; raises PlanRejected for other rules than are needed."""
    if plan.fences is None:
        return Violations()
    read_fences(problem, plan)
    assert problem.ports is not None
    rows = {(str(row["switch"]), str(row["port"])): row for row in problem.ports.to_dict(orient="records")}
    _require_rules(plan.fences, rows)
    capacity = {str(row["switch"]): float(row["rule_capacity"]) for row in rows.values()}
    over = [(name, rules) for name, rules in rules_by_switch(plan).items() if rules > capacity[name]]
    return Violations.of(
        "rules",
        where=[name for name, _ in over],
        amount=np.array([rules for _, rules in over]),
        allowed=np.array([capacity[name] for name, _ in over]),
        unit="rules",
    )


def _require_rules(fences: pd.DataFrame, rows: Mapping[tuple[str, str], Mapping[Hashable, Any]]) -> None:
    """Raise PlanRejected where a port has other rules than its granularity needs.

    rows  of the problem's ports, by switch and port
    """
    columns = {"process": "processes", "application": "applications", "epoch": "epochs"}
    for row in fences.to_dict(orient="records"):
        port = rows[str(row["switch"]), str(row["port"])]
        needed = 0.0 if row["by"] == EXCLUDED else float(port[columns[str(row["by"])]])
        if float(row["rules"]) != needed:
            raise PlanRejected(
                f"fences: port '{row['port']}' of switch '{row['switch']}' has {row['rules']:g} rules, by "
                f"{row['by']} it needs {needed:g}"
            )


def check_naming(problem: Membership, plan: MembershipPlan) -> Violations:
    """Return the bits of names beyond their limit, and the applications without a name."""
    if plan.naming is None or not len(plan.naming):
        return Violations()
    row = plan.naming.iloc[0]
    bits = float(row["bits_of_epoch"] + row["bits_of_app"] + row["bits_of_local"])
    allowed = float(NAME_BITS)
    naming = problem.name_bits
    if naming is not None:
        allowed = float(naming.bits_of_epoch + naming.bits_of_app + naming.bits_of_local)
    violations = Violations()
    if bits > allowed:
        violations += Violations.of("names", where=["names"], amount=[bits], allowed=allowed, unit="bits")
    applications = 0.0 if problem.ports is None else float(problem.ports["applications"].max())
    if applications > 2 ** row["bits_of_app"]:
        violations += Violations.of(
            "names",
            where=["applications"],
            amount=[applications],
            allowed=float(2 ** row["bits_of_app"]),
            unit="applications",
        )
    return violations


def epoch_use(naming: Naming, epochs_per_cut: int) -> EpochUse:
    """Return the use of epochs by names."""
    return EpochUse(
        processes=naming.processes,
        life_days=naming.life_days,
        cuts_per_month=naming.partitions_per_month,
        epochs_per_cut=epochs_per_cut,
    )


def unmade_cuts(problem: Membership, plan: MembershipPlan) -> float | None:
    """Return the share of cuts that find no free epoch; None for a plan without names."""
    naming = problem.name_bits
    if plan.naming is None or not len(plan.naming) or naming is None:
        return None
    row = plan.naming.iloc[0]
    return cuts_without_epoch(int(row["bits_of_epoch"]), epoch_use(naming, int(row["epochs_per_cut"])))


def fence_effects(problem: Membership, plan: MembershipPlan) -> tuple[float, float]:
    """Return the time until the slowest fence stands, s, and the share of cuts without a free epoch."""
    return fence_ms(problem, plan) / 1e3, unmade_cuts(problem, plan) or 0.0


def fence_ms(problem: Membership, plan: MembershipPlan) -> float:
    """Return the time until the fence of the slowest port stands, ms: its rules one after the other."""
    fences = read_fences(problem, plan)
    if fences is None:
        return 0.0
    ports, by = fences
    return float((rules_of(ports, by) * ports.rule_ms[ports.switch]).max(initial=0.0))


def fence_metrics(problem: Membership, plan: MembershipPlan) -> dict[str, float | None]:
    """Return the metrics of fences and names; None each for a plan without them."""
    fences = read_fences(problem, plan)
    values: dict[str, float | None] = {
        "rules_most": None,
        "cut_beside": None,
        "fence_ms": None,
        "excluded_switches": None,
        "no_epoch_share": unmade_cuts(problem, plan),
    }
    if fences is None:
        return values
    ports, by = fences
    return values | {
        "rules_most": max(rules_by_switch(plan).values(), default=0.0),
        "cut_beside": float(beside_of(ports, by).mean()),
        "fence_ms": fence_ms(problem, plan),
        "excluded_switches": float(len(set(ports.switch[by < 0].tolist()))),
    }
