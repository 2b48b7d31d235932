"""Programs of SPANStore and SkyPIE beside our designs, on the same groups in one run.

    python -m benchmarks.geostore_peers [--regions N] [--groups N]

Both programs are written here from the papers, group by group, and solved by HiGHS through scipy; they have
no code of the designs. SPANStore (Wu et al. 2013, 4; eventual consistency): a user reads one replica within
the limit and has f + 1 within it; each write goes to replicas straight or over another one (relays).
SkyPIE (Bang et al. 2024): reads have a limit, and writes go straight to every replica. Front ends are in
every region.

SkyPIE's model is that of design `skypie`: costs are equal within 1e-5. SPANStore's has one freedom more than
design `spanstore`, whose users write where they read. With one price of traffic and one of read requests the
models agree, and costs are equal within 1e-5; with other prices the program costs at most as much. Both are
asserted; the ratio of user CPU seconds is printed.

Kernels are compiled before: on so few groups Python runs them otherwise until that has taken as long as
compiling would, and then the design is slower than HiGHS.
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.common import machine
from planner.kernels import compile_all
from planner.options import Options
from planner_models.geostore import Geostore, measure
from planner_models.geostore.designs import skypie, spanstore
from planner_models.geostore.problem.generators import world

MONTH_S: Final = 30 * 86_400
EQUAL: Final = 1e-5
GAP: Final = 1e-7


class Program:
    """Rows and columns of a mixed-integer program, for HiGHS."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.integer: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def variable(self, cost: float = 0.0, *, integer: bool = False) -> int:
        """Return the column of a new variable from 0 to 1."""
        self.cost.append(cost)
        self.integer.append(int(integer))
        return len(self.cost) - 1

    def row(self, terms: dict[int, float], lower: float, upper: float = np.inf) -> None:
        """Add a constraint on a sum of variables."""
        self.rows.append((terms, lower, upper))

    def solve(self) -> float:
        """Return the least cost; raises RuntimeError where HiGHS does not prove one."""
        entries = [(row, *item) for row, (terms, _, _) in enumerate(self.rows) for item in terms.items()]
        row, column, value = zip(*entries, strict=True)
        matrix = sp.csr_array((value, (row, column)), shape=(len(self.rows), len(self.cost)))
        result = milp(
            self.cost,
            integrality=self.integer,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(
                matrix, [lower for _, lower, _ in self.rows], [upper for _, _, upper in self.rows]
            ),
            options={"mip_rel_gap": GAP},
        )
        if result.status != 0:
            raise RuntimeError(result.message)
        return float(result.fun)


class Group:
    """The numbers of one group, from the tables: users, prices, traffic of a month, and near regions."""

    def __init__(self, problem: Geostore, group: int) -> None:
        table = problem.groups.iloc[group]
        access = problem.access[problem.access["group"] == table["group"]]
        names = problem.regions["region"].tolist()
        count = len(names)
        self.count = count
        self.users = [names.index(name) for name in access["region"]]
        self.reads = access["reads_per_s"].to_numpy() * MONTH_S
        self.writes = access["writes_per_s"].to_numpy() * MONTH_S
        self.gb = float(table["object_bytes"]) / 1e9
        self.storage = float(table["size_gb"]) * problem.regions["storage_usd_gb_month"].to_numpy()
        self.put, self.get = (problem.regions[name].to_numpy() for name in ("put_usd", "get_usd"))
        self.spare = int(table["failures"]) + 1
        self.usd, rtt = np.zeros((count, count)), np.full((count, count), problem.local_rtt_ms)
        for source, target, ms, usd in problem.links[["source", "target", "rtt_ms", "usd_per_gb"]].itertuples(
            index=False
        ):
            pair = names.index(source), names.index(target)
            rtt[pair], self.usd[pair] = ms, usd
        self.near = [np.flatnonzero(rtt[user] <= table["read_ms"]).tolist() for user in self.users]

    def replicas(self, program: Program) -> list[int]:
        """Add a variable for the replica in each region, with its storage and the requests of all writes."""
        puts = float(self.writes.sum())
        return [
            program.variable(self.storage[j] + puts * self.put[j], integer=True) for j in range(self.count)
        ]

    def add_reads(self, program: Program, held: list[int]) -> None:
        """Add the replica that each user reads, within its limit."""
        for user, region in enumerate(self.users):
            read = {}
            for j in self.near[user]:
                usd = self.reads[user] * (self.get[j] + self.gb * self.usd[j, region])
                read[program.variable(usd)] = 1.0
                program.row({list(read)[-1]: -1.0, held[j]: 1.0}, 0.0)
            program.row(read, 1.0, 1.0)


def solve_skypie(group: Group) -> float:
    """Return the least cost of SkyPIE's model: a month's writes of each user go to every replica."""
    program = Program()
    held = group.replicas(program)
    for j, column in enumerate(held):
        sent = sum(
            writes * group.gb * group.usd[region, j]
            for writes, region in zip(group.writes, group.users, strict=True)
        )
        program.cost[column] += float(sent)
    program.row(dict.fromkeys(held, 1.0), group.spare)
    group.add_reads(program, held)
    return program.solve()


def solve_spanstore(group: Group) -> float:
    """Return the least cost of SPANStore's program: writes reach replicas straight, or over another one."""
    program = Program()
    held = group.replicas(program)
    group.add_reads(program, held)
    program.row(dict.fromkeys(held, 1.0), group.spare)
    for user, region in enumerate(group.users):
        near = group.near[user]
        program.row({held[j]: 1.0 for j in near}, min(group.spare, len(near)))
        gb = group.writes[user] * group.gb
        straight = [program.variable(gb * group.usd[region, k], integer=True) for k in range(group.count)]
        program.row({straight[k]: 1.0 for k in near}, 1.0)
        for k in range(group.count):
            arrives = {straight[k]: 1.0, held[k]: -1.0}
            for j in range(group.count):
                if j != k:
                    relayed = program.variable(gb * group.usd[j, k])
                    program.row({straight[j]: 1.0, relayed: -1.0}, 0.0)
                    arrives[relayed] = 1.0
            program.row(arrives, 0.0, 0.0)
    return program.solve()


def make(regions: int, groups: int, *, one_price: bool, seed: int = 1) -> Geostore:
    """Return eventual groups with front ends in every region."""
    problem = world(
        regions=regions,
        groups=groups,
        users=5,
        limit_ms=150,
        consistency="eventual",
        write_share=0.3,
        seed=seed,
    ).with_protocol(frontends="every_region")
    if not one_price:
        return problem
    return replace(
        problem,
        links=problem.links.assign(usd_per_gb=0.05),
        regions=problem.regions.assign(get_usd=4e-7),
    )


def user_s() -> float:
    """Return the user CPU seconds of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def compare(problem: Geostore, name: str) -> tuple[float, float, float, float]:
    """Return the costs of our design and of the peer's program, USD a month, and user CPU seconds of both."""
    design, solve = {
        "spanstore": (spanstore.place, solve_spanstore),
        "skypie": (skypie.place, solve_skypie),
    }[name]
    start = user_s()
    plan = design(problem, options=Options(gap=GAP)).plan
    middle = user_s()
    program = sum(solve(Group(problem, group)) for group in range(len(problem.groups)))
    end = user_s()
    assert plan is not None
    ours = measure(problem, plan, None)["usd_per_month"]
    assert ours is not None
    return ours, program, middle - start, end - middle


def compare_all(regions: int, groups: int) -> None:
    """Print costs and times of both designs under one price and several, and assert what is said above."""
    compare(make(regions, 1, one_price=True), "spanstore")  # compiles kernels
    for one_price in (True, False):
        problem = make(regions, groups, one_price=one_price)
        for name in ("spanstore", "skypie"):
            ours, program, our_s, program_s = compare(problem, name)
            if name == "skypie" or one_price:
                assert abs(ours - program) <= EQUAL * program, (name, ours, program)
            assert program <= ours * (1 + EQUAL), (name, ours, program)
            prices = "one price" if one_price else "prices by continent"
            print(
                f"{name}, {prices}: design {ours:.4f} USD in {our_s:.2f} s, "
                f"program {program:.4f} USD in {program_s:.2f} s, ratio {program_s / our_s:.1f}"
            )


def main() -> None:
    """Print costs and times of our designs and the peers' programs, and assert what is said above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, default=14)
    parser.add_argument("--groups", type=int, default=10)
    inputs = parser.parse_args()
    print(machine())
    with compile_all():
        compare_all(inputs.regions, inputs.groups)


if __name__ == "__main__":
    main()
