"""Corrupted plans: rejected, reported with an amount, or another legal plan that keeps every claim."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner.io.table_files import find_tables, read_tables
from planner.scenarios.catalogue import system_names
from tests.commands import planner
from tests.fuzzing.bases import Base, bases

PER_TABLE = 6
SEED = 18
FACTORS = (0.0, 0.5, 2.0, 3.0, -1.0)

DECISIONS = {
    "analytics": {"levels", "prices", "backfill"},
    "brokering": {"assignments", "rounds", "offers"},
    "capacity": {"purchases", "flows", "tunnel_flows"},
    "cdnrouting": {"assignments", "routes", "rounds", "outcome", "front"},
    "circuitflows": {"configurations", "queues", "settings", "placement"},
    "circuits": {"configurations", "packet"},
    "coflows": {"circuits", "priorities", "settings"},
    "consolidation": {"fleet", "placement", "slots", "helpers", "moves"},
    "flowtables": {"megaflows", "masks"},
    "geostore": {"replicas", "routes", "propagation", "classes", "servers", "shards"},
    "livevideo": {"trees", "waits", "viewers"},
    "membership": {"members", "protocol", "watch", "cheaper", "shed", "fences", "naming", "seeds", "gossip"},
    "multicast": {"partitions", "meta_groups", "headers", "header_rules"},
    "queries": {"answers", "methods", "rules", "uses"},
    "rotors": {"period", "circuits", "routes", "expander"},
    "contracts": {"loads"},
    "fairshare": {"placement", "serving", "shares", "service"},
    "topology": {"topology", "routes", "steps"},
    "traffic": {"flows", "weights", "lies", "moved", "windows", "worst_matrices"},
    "updates": {"steps", "operations", "shares"},
}
"""Tables in which a change may be another legal plan; all others follow from them and are refused."""

Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class Corruption:
    """A plan's tables with one of them changed, and the change in words."""

    base: Base
    table: str
    change: str
    tables: Tables

    def __str__(self) -> str:
        return f"{self.base.system.name}: {self.table}: {self.change}"


def corruptions(base: Base, draw: random.Random, per_table: int) -> Iterator[Corruption]:
    """Yield changes of every table that some plan of the system has rows in."""
    plans = [tables for design in base.system.designs if (tables := base.plan(design))]
    for table in [item.name for item in base.system.plan.tables]:
        filled = [tables for tables in plans if table in tables and len(tables[table])]
        made = 0
        for _ in range(20 * per_table if filled else 0):
            tables = draw.choice(filled)
            change, frame = corrupt(draw, tables[table])
            if frame is not None:
                made += 1
                yield Corruption(base=base, table=table, change=change, tables={**tables, table: frame})
            if made == per_table:
                break


def corrupt(draw: random.Random, frame: pd.DataFrame) -> tuple[str, pd.DataFrame | None]:
    """Return a change in words and the changed table; None where it would change nothing."""
    row = draw.randrange(len(frame))
    made = frame.reset_index(drop=True)
    match draw.randrange(8):
        case 0:
            return f"row {row} is missing", made.drop(index=row)
        case 1:
            return f"row {row} is there twice", pd.concat([made, made.iloc[[row]]], ignore_index=True)
    name = draw.choice(list(made.columns))
    column = made[name]
    old = column.iloc[row]
    new: Any
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        new = float(old) * draw.choice(FACTORS) if draw.random() < 0.7 else float(old) + draw.choice([1, -1])
        is_same = np.isclose(float(old), new)
        values = column.astype(float).tolist()
    else:
        new = draw.choice([*column.tolist(), "nobody"])
        is_same = new == old
        values = column.astype(object).tolist()
    values[row] = new
    return f"{name} of row {row} is {new} instead of {old}", None if is_same else made.assign(
        **{name: values}
    )


def outcome(item: Corruption, folder: Path) -> str:
    """Return how the corrupted plan is judged: "rejected", "violated", "legal", or what is ignored."""
    system, problem = item.base.system, item.base.problem
    for name, frame in item.tables.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    try:
        tables = read_tables(system.plan.tables, find_tables(system.plan.tables, folder, list(item.tables)))
        plan = system.plan.from_tables(problem, tables)
        violations = system.plan.check(problem, plan)
    except (InputError, PlanRejected):
        return "rejected"
    if len(violations):
        excess = (violations.frame["amount"] - violations.frame["allowed"]).abs()
        return "violated" if (excess > 0).all() else "violated without an amount"
    system.plan.measure(problem, plan, None)
    selected = plan.to_tables()
    lost = [
        name for name, frame in item.tables.items() if len(frame) and not is_kept(frame, selected.get(name))
    ]
    return "legal" if not lost else f"accepted, but not the table {', '.join(lost)} as given"


def is_kept(claimed: pd.DataFrame, selected: pd.DataFrame | None) -> bool:
    """Return whether a table has the same rows, in any order."""
    if selected is None or len(selected) != len(claimed) or not set(claimed) <= set(selected):
        return False
    first, second = (_sorted(frame[list(claimed)]) for frame in (claimed, selected))
    for name in claimed:
        if pd.api.types.is_numeric_dtype(claimed[name]):
            if not np.allclose(
                first[name].astype(float), second[name].astype(float), rtol=1e-6, atol=1e-9, equal_nan=True
            ):
                return False
        elif first[name].astype(str).tolist() != second[name].astype(str).tolist():
            return False
    return True


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    plain = frame.apply(
        lambda column: (
            column.astype(float).round(6) if pd.api.types.is_numeric_dtype(column) else column.astype(str)
        )
    )
    return plain.sort_values(list(plain), ignore_index=True)


def judge(base: Base, draw: random.Random, per_table: int, folder: Path) -> tuple[int, list[str]]:
    """Return the number of corrupted plans of a system, and those that are judged wrongly."""
    faults, count = [], 0
    for corruption in corruptions(base, draw, per_table):
        own_values = folder / f"{base.system.name}{count}"
        own_values.mkdir(parents=True)
        count += 1
        judged = outcome(corruption, own_values)
        is_decision = corruption.table in DECISIONS[base.system.name]
        if judged not in ("rejected", "violated", *(["legal"] if is_decision else [])):
            faults.append(f"{corruption}: {judged}")
    return count, faults


@pytest.mark.slow
@pytest.mark.parametrize("name", system_names())
def test_every_corrupted_plan_is_judged(name: str, tmp_path: Path) -> None:
    (base,) = (basis for basis in bases() if basis.system.name == name)
    count, faults = judge(base, random.Random(SEED), PER_TABLE, tmp_path)
    assert count >= PER_TABLE
    assert not faults, f"{len(faults)} of {count}:\n" + "\n".join(faults)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", system_names())
def test_500_corrupted_plans_of_each_system(name: str, tmp_path: Path) -> None:
    (base,) = (basis for basis in bases() if basis.system.name == name)
    count, faults = 0, []
    while count < 500:
        more, wrong = judge(base, random.Random(count), 7 * PER_TABLE, tmp_path / str(count))
        count += more
        faults += wrong
    assert not faults, f"{len(faults)} of {count}:\n" + "\n".join(faults)


def test_check_of_a_plan_exits_by_its_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("links.csv").write_text("tail,head,capacity_mbps\na,b,10\nb,a,10\n")
    Path("demands.csv").write_text("source,target,rate_mbps\na,b,5\n")
    Path("s.toml").write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n')
    Path("plan").mkdir()
    for rate, code in ((5, 0), (50, 5)):
        Path("demands.csv").write_text(f"source,target,rate_mbps\na,b,{rate}\n")
        Path("plan/flows.csv").write_text(f"target,tail,head,rate_mbps\nb,a,b,{rate}\n")
        for option in ((), ("--json",)):
            result = planner("check", "s.toml", "--plan", "plan", *option)
            assert result.code == code, result.err
    Path("plan/flows.csv").write_text("target,tail,head,rate_mbps\nb,a,nowhere,5\n")
    assert planner("check", "s.toml", "--plan", "plan").code in (1, 5)
