"""Rotor networks: the most traffic over a rotation, its gap and time, for up to 64 racks.

    python -m benchmarks.rotors [--quick]

`skewed` sends half of the traffic to four partners, `hotspots` has lognormal demands. Times are of the
processor, after compiling. Served shares are of the demand.

Asserted: plans pass the check, no design over the rotation beats the bound, and `two_hop` is within 1e-5
of it.
"""

from __future__ import annotations

from benchmarks.common import machine, parser_of, time_beside_bound
from planner_models.rotors import check
from planner_models.rotors.designs import DESIGNS
from planner_models.rotors.problem import generators

SIZES = ((16, 3), (32, 4), (64, 8))
GAP = 1e-5
ROTATING = [design for design in DESIGNS if design.name in ("two_hop", "valiant", "direct")]
PROBLEMS = {
    "skewed": lambda racks, switches: generators.skewed(racks=racks, switches=switches, partners=4, load=0.9),
    "hotspots": lambda racks, switches: generators.hotspots(racks=racks, switches=switches, load=0.9),
}


def compare(preset: str, racks: int, switches: int) -> None:
    """Print a row of the designs over the rotation of one network."""
    problem = PROBLEMS[preset](racks, switches)
    offered = float(problem.offered_mbps.sum())
    bound, results = time_beside_bound(problem, ROTATING, check, gap=GAP, tolerance=1e-9)
    cells = "".join(f"{value / offered:>11.4f}{seconds:>8.2f} s" for value, seconds in results)
    print(f"{preset:<10}{racks:>4} x {switches:<5}{bound / offered:>9.4f}{cells}")


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    print(f"{'':<21}{'bound':>9}" + "".join(f"{design.name:>21}" for design in ROTATING))
    for design in ROTATING:
        design.decide(generators.small())  # compiles
    for racks, switches in SIZES[: 2 if arguments.quick else 3]:
        for preset in PROBLEMS:
            compare(preset, racks, switches)


if __name__ == "__main__":
    main()
