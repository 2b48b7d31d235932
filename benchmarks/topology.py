"""Topology engineering: how near to the bound, and how fast, for up to 64 blocks with 512 ports each.

    python -m benchmarks.topology [--quick]

Links are made from nothing. `gravity` has blocks of two generations, `balanced` demand that fills the ports
of every block, which is the hardest case: no block has ports to spare for rounding. Times are of the
processor, with the routing, after compiling. Scales are shares of the bound.

Asserted: plans pass the check, no design beats the bound, and `optimum` is within 1% of it.
"""

from __future__ import annotations

import time

from benchmarks.common import machine, parser_of
from planner_models.topology import check
from planner_models.topology.designs.table import DESIGNS
from planner_models.topology.problem import generators
from planner_models.topology.problem.adjustments import adjust

SIZES = ((16, 64), (32, 256), (64, 512))
GAP = 0.01


def compare(preset: str, blocks: int, ports: int) -> None:
    """Print a row of all designs on one fabric."""
    problem = adjust(generators.PRESETS[preset](blocks=blocks, ports=ports, seed=1), free_links=True)
    cells, bound = [], None
    for design in DESIGNS:
        start = time.process_time()
        decision = design.decide(problem)
        seconds = time.process_time() - start
        scale = decision.proof.objective
        assert decision.plan is not None
        assert scale is not None
        assert not len(check(problem, decision.plan))
        if bound is None:  # of the first design, optimum
            bound = decision.proof.bound
            assert bound is not None
            assert scale >= (1 - GAP) * bound
        assert scale <= bound * (1 + 1e-6)
        cells.append(f"{scale / bound:>11.4f}{seconds:>8.2f} s")
    print(f"{preset:<10}{blocks:>4} x {ports:<5}{bound:>9.4f}{''.join(cells)}")


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    print(f"{'':<21}{'bound':>9}" + "".join(f"{design.name:>21}" for design in DESIGNS))
    for design in DESIGNS:
        design.decide(generators.small())  # compiles
    for blocks, ports in SIZES[: 2 if arguments.quick else 3]:
        for preset in ("gravity", "balanced"):
            compare(preset, blocks, ports)


if __name__ == "__main__":
    main()
