"""Topology engineering: distance from the bound, and time, for up to 64 blocks with 512 ports each.

    python -m benchmarks.topology [--quick]

Links are made from nothing. `gravity` has blocks of two generations, `balanced` demand that fills the ports
of every block, which is the hardest case: no block has ports to spare for rounding. Times are of the
processor, with the routing, after compiling. Scales are shares of the bound.

Asserted: plans pass the check, no design beats the bound, and `optimum` is within 1% of it.
"""

from __future__ import annotations

from benchmarks.common import machine, parser_of, time_beside_bound
from planner_models.topology import check
from planner_models.topology.designs import DESIGNS
from planner_models.topology.problem import generators
from planner_models.topology.problem.adjustments import adjust

SIZES = ((16, 64), (32, 256), (64, 512))
GAP = 0.01


def compare(preset: str, blocks: int, ports: int) -> None:
    """Print a row of all designs on one fabric."""
    problem = adjust(generators.PRESETS[preset](blocks=blocks, ports=ports, seed=1), free_links=True)
    bound, results = time_beside_bound(problem, DESIGNS, check, gap=GAP, tolerance=1e-6)
    cells = "".join(f"{scale / bound:>11.4f}{seconds:>8.2f} s" for scale, seconds in results)
    print(f"{preset:<10}{blocks:>4} x {ports:<5}{bound:>9.4f}{cells}")


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
