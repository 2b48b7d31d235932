"""Time to read conjunction tables of a switch, and to evaluate packets, by the number of flows.

    python -m benchmarks.conjunctions [--quick]

Tables are drawn like those of network policies of kube-ovn and Antrea: each policy is a conjunction of source
addresses, target addresses and ports, and one flow a clause of several policies. Actions are compared with
those by definition: a policy matches where each of its clauses has the packet.
"""

from __future__ import annotations

import sys
import time
from typing import Final, NamedTuple

import numpy as np

from planner_models.flowtables.problem.evaluation.interpreter import Evaluation
from planner_models.flowtables.problem.evaluation.reading import read_header, read_switch

FLOWS: Final = (1_000, 10_000, 100_000)
PACKETS: Final = 10_000
GOAL_S: Final = 30.0
CLAUSE: Final = 40
"""Addresses of a clause."""
CHECKED: Final = 300


class Drawn(NamedTuple):
    """Rules of a switch, and its policies: sources, targets and ports of each."""

    text: str
    policies: list[tuple[set[int], set[int], set[int]]]


def draw_table(flows: int, random: np.random.Generator) -> Drawn:
    """Return about so many flows of policies on addresses in 10.0.0.0/8."""
    count = max(-(-flows // (2 * CLAUSE)), 1)
    clauses: dict[str, list[str]] = {}
    policies = []
    lines = ["table=0,priority=1 actions=output:9"]
    for number in range(1, count + 1):
        sources, targets = (
            set(random.integers(0, max(1_000 * count, 1_000), CLAUSE).tolist()) for _ in range(2)
        )
        ports = set(random.choice([80, 443, 22, 53, 8080, 9090], 2, replace=False).tolist())
        policies.append((sources, targets, ports))
        for index, (name, values) in enumerate((("nw_src", sources), ("nw_dst", targets)), start=1):
            for value in values:
                match = f"ip,{name}=10.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"
                clauses.setdefault(match, []).append(f"conjunction({number},{index}/3)")
        for port in ports:
            clauses.setdefault(f"tcp,tp_dst={port}", []).append(f"conjunction({number},3/3)")
        lines.append(f"table=0,priority=100,conj_id={number},ip actions=output:{number % 8 + 1}")
    lines += [
        f" cookie=0x1, duration=9.5s, table=0, n_packets=3, priority=100,{match} actions={','.join(parts)}"
        for match, parts in clauses.items()
    ]
    return Drawn("\n".join(lines), policies)


def draw_packets(drawn: Drawn, random: np.random.Generator) -> list[tuple[int, int, int]]:
    """Return source, target and port of packets, half of them of a policy."""
    packets = []
    for _ in range(PACKETS):
        sources, targets, ports = drawn.policies[int(random.integers(len(drawn.policies)))]
        if random.random() < 0.5:
            packets.append(tuple(int(random.choice(sorted(group))) for group in (sources, targets, ports)))
        else:
            other = drawn.policies[int(random.integers(len(drawn.policies)))]
            packets.append((min(sources), max(other[1]), int(random.choice([80, 443, 22, 1]))))
    return packets


def format_packet(packet: tuple[int, int, int]) -> str:
    """Return a packet as text."""
    source, target = (f"10.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}" for value in packet[:2])
    return f"in_port=20 tcp ip_src={source} ip_dst={target} tp_src=999 tp_dst={packet[2]}"


def main() -> None:
    """Print the times for each number of flows, and require the answers and the goal."""
    for flows in FLOWS[:2] if "--quick" in sys.argv else FLOWS:
        random = np.random.default_rng(flows)
        drawn = draw_table(flows, random)
        packets = draw_packets(drawn, random)
        start = time.process_time()
        switch = read_switch(drawn.text, "flows.txt", {}, "")
        read_s = time.process_time() - start
        start = time.process_time()
        evaluation = Evaluation(switch)
        actions = [
            evaluation.follow(read_header(format_packet(packet)))[0].entry.action for packet in packets
        ]
        evaluated_s = time.process_time() - start
        for packet, action in list(zip(packets, actions, strict=True))[:CHECKED]:
            matching = {
                f"out:{number % 8 + 1}"
                for number, groups in enumerate(drawn.policies, start=1)
                if all(value in group for value, group in zip(packet, groups, strict=True))
            }
            assert action in (matching or {"out:9"}), packet
        entries = sum(len(by_value) for by_value in evaluation.entries.values())
        print(
            f"{drawn.text.count(chr(10)) + 1:>8,} flows: read {read_s:.1f} s, {PACKETS:,} packets "
            f"{evaluated_s:.1f} s (CPU), {entries:,} entries, {len(evaluation.entries)} masks"
        )
        assert read_s + evaluated_s <= GOAL_S


if __name__ == "__main__":
    main()
