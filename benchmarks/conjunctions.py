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
LENGTHS: Final = (20, 24, 26, 28, 30, 32, 32, 32)
"""Of the prefixes of targets."""
Prefix = tuple[int, int]
CHECKED: Final = 300


class Drawn(NamedTuple):
    """Rules of a switch, and its policies: sources and targets as prefixes, and ports, of each."""

    text: str
    policies: list[tuple[list[Prefix], list[Prefix], list[int]]]


def draw_table(flows: int, random: np.random.Generator) -> Drawn:
    """Return about so many flows of policies on addresses in 10.0.0.0/8."""
    count = max(-(-flows // (2 * CLAUSE)), 1)
    clauses: dict[str, list[str]] = {}
    policies = []
    lines = ["table=0,priority=1 actions=output:9"]
    for number in range(1, count + 1):
        policy = draw_policy(count, random)
        policies.append(policy)
        for index, (name, prefixes) in enumerate((("nw_src", policy[0]), ("nw_dst", policy[1])), start=1):
            for value, size in prefixes:
                match = f"ip,{name}={format_address(value)}/{size}"
                clauses.setdefault(match, []).append(f"conjunction({number},{index}/3)")
        for port in policy[2]:
            clauses.setdefault(f"tcp,tp_dst={port}", []).append(f"conjunction({number},3/3)")
        lines.append(f"table=0,priority=100,conj_id={number},ip actions=output:{number % 8 + 1}")
    lines += [
        f" cookie=0x1, duration=9.5s, table=0, n_packets=3, priority=100,{match} actions={','.join(texts)}"
        for match, texts in clauses.items()
    ]
    return Drawn("\n".join(lines), policies)


def draw_policy(count: int, random: np.random.Generator) -> tuple[list[Prefix], list[Prefix], list[int]]:
    """Return sources, targets and ports of one of so many policies."""
    sources = [(int(value), 32) for value in set(random.integers(0, 1_000 * count, CLAUSE).tolist())]
    lengths = random.choice(LENGTHS, CLAUSE).tolist()
    values = random.integers(0, 1 << 24, CLAUSE).tolist()
    targets = {(value >> 32 - size << 32 - size, size) for value, size in zip(values, lengths, strict=True)}
    ports = random.choice([80, 443, 22, 53, 8080, 9090], 2, replace=False).tolist()
    return sources, sorted(targets), ports


def draw_packets(drawn: Drawn, random: np.random.Generator) -> list[tuple[int, int, int]]:
    """Return source, target and port of packets, half of them of a policy."""
    packets = []
    for _ in range(PACKETS):
        sources, targets, ports = drawn.policies[int(random.integers(len(drawn.policies)))]
        if random.random() < 0.5:
            targets = drawn.policies[int(random.integers(len(drawn.policies)))][1]
        value, size = targets[int(random.integers(len(targets)))]
        target = value + int(random.integers(1 << 32 - size))
        source = sources[int(random.integers(len(sources)))][0]
        packets.append((source, target, int(random.choice(ports))))
    return packets


def format_address(value: int) -> str:
    """Return an address in 10.0.0.0/8."""
    return f"10.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def is_in(value: int, prefixes: list[Prefix]) -> bool:
    """Return whether an address is in one of some prefixes."""
    return any(value >> 32 - size == prefix >> 32 - size for prefix, size in prefixes)


def format_packet(packet: tuple[int, int, int]) -> str:
    """Return a packet as text."""
    source, target = (format_address(value) for value in packet[:2])
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
                for number, (sources, targets, ports) in enumerate(drawn.policies, start=1)
                if packet[2] in ports and is_in(packet[0], sources) and is_in(packet[1], targets)
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
