"""Random tables with tracking, groups, conjunctions and copies, and a plain interpreter of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

HOST = "00:00:00:00:00:02"
GROUPS = f"""group_id=1,type=all,bucket=actions=mod_dl_dst:{HOST},output:3,bucket=actions=resubmit(,2)
group_id=2,type=ff,bucket=watch_port:2,actions=resubmit(,2),bucket=watch_port:3,actions=output:3
"""
Log = tuple[tuple[Any, ...], ...]


def draw_table(random: np.random.Generator) -> str:
    """Return rules of three tables; no two of a table that are no conjunction have the same priority."""
    lines = []
    for table in range(3):
        priorities = random.permutation(90)[:9] + 1
        lines += [f"table={table},priority={p},{draw_rule(table, random)}" for p in priorities[:6]]
        if random.random() < 0.6:
            lines += draw_conjunction(table, int(priorities[6]), random)
    return "\n".join(lines) + "\n"


def draw_conjunction(table: int, priority: int, random: np.random.Generator) -> list[str]:
    """Return rules of one priority: two conjunctions of two clauses, and what they do."""
    clauses: dict[str, list[str]] = {}
    for number in (1, 2):
        for _ in range(int(random.integers(1, 4))):
            source = f"ip,nw_src={random.choice([10, 11])}.0.0.0/{random.choice([8, 9, 16])}"
            clauses.setdefault(source, []).append(f"conjunction({10 * table + number},1/2)")
        target = str(random.choice(["tcp,tp_dst=80", "tcp,tp_dst=443", "tcp,tp_dst=0x50/0xfff0", "udp"]))
        clauses.setdefault(target, []).append(f"conjunction({10 * table + number},2/2)")
    lines = [
        f"table={table},priority={priority},{match},actions={','.join(dict.fromkeys(acts))}"
        for match, acts in clauses.items()
    ]
    return lines + [
        f"table={table},priority={priority},conj_id={10 * table + number},ip,actions=output:{number + 1}"
        for number in (1, 2)
    ]


def draw_rule(table: int, random: np.random.Generator) -> str:
    """Return a match and actions of OpenFlow, which fit together."""
    kind = str(random.choice(["", "ip", "tcp", "udp", "arp"], p=[0.1, 0.3, 0.35, 0.15, 0.1]))
    parts = [kind] if kind else []
    if random.random() < 0.2:
        parts.append(f"in_port={random.integers(1, 4)}")
    if kind in ("ip", "tcp", "udp") and random.random() < 0.5:
        parts.append(f"nw_dst={random.choice([10, 11])}.0.0.0/{random.choice([8, 12, 32])}")
    if kind in ("tcp", "udp") and random.random() < 0.5:
        parts.append(f"tp_dst={random.choice(['80', '443', '0x50/0xfff0'])}")
    if table and random.random() < 0.4:
        parts.append(f"reg0={random.integers(0, 3)}/0x3")
    if table and kind and kind != "arp" and random.random() < 0.5:
        parts.append(f"ct_state={random.choice(['+new+trk', '+est+trk', '-trk', '+trk'])}")
    actions = []
    for _ in range(int(random.integers(0, 3))):
        choices = [f"load:{random.integers(0, 4)}->NXM_NX_REG0[0..1]", "mod_dl_dst:00:00:00:00:00:02"]
        choices += ["move:NXM_OF_ETH_SRC[0..1]->NXM_NX_REG0[0..1]", "output:4", "ct_clear"]
        if kind in ("ip", "tcp", "udp"):
            choices += ["dec_ttl", "move:NXM_OF_IP_SRC[0..1]->NXM_NX_REG0[0..1]", "mod_nw_dst:10.1.1.1"]
            choices += ["ct(commit,zone=3)", "clone(mod_nw_dst:10.2.2.2,output:4)"]
        actions.append(str(random.choice(choices)))
    ends = ["output:4", "output:3", "drop"]
    if table < 2:
        ends += [f"resubmit(,{table + 1})"] * 3 + ["output:4,resubmit(,2)", "group:1", "group:2,output:4"]
    if table < 2 and kind in ("ip", "tcp", "udp"):
        ends += [f"ct(table={table + 1},zone=2)", f"ct(commit,table={table + 1},zone=NXM_NX_REG0[0..15])"]
    end = str(random.choice(ends))
    actions = [end] if end == "drop" else [*actions, end]
    return ",".join([*parts, "actions=" + ",".join(actions)])


def draw_header(random: np.random.Generator) -> str:
    """Return a packet that such rules may match."""
    kind = str(random.choice(["tcp", "udp", "icmp", "arp"], p=[0.5, 0.25, 0.1, 0.15]))
    parts = [f"in_port={random.integers(1, 4)} {kind} eth_src=00:00:00:00:00:0{random.integers(0, 4)}"]
    parts.append(f"eth_dst=00:00:00:00:00:0{random.integers(1, 3)}")
    if kind == "arp":
        return " ".join([*parts, "arp_op=1"])
    parts += [
        f"ip_{end}={random.choice([10, 11])}.{random.choice([0, 1, 128])}.0.{random.integers(0, 4)}"
        for end in ("src", "dst")
    ]
    parts.append(f"nw_ttl={random.choice([1, 3, 64])}")
    if kind != "icmp":
        parts.append(f"tp_src=9 tp_dst={random.choice([80, 443, 22, 95])}")
    return " ".join([*parts, f"ct_state={random.choice(['+new+trk', '+est+trk'])}"])


# --- a plain interpreter ------------------------------------------------------------------

NAMES = {"nw_src": "ip_src", "nw_dst": "ip_dst"}
PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1}
FLAGS = {"new": 1, "est": 2, "trk": 32}


def read_number(text: str) -> int:
    """Return a number, an address of IPv4 or one of Ethernet."""
    if "." in text:
        return int.from_bytes(bytes(int(octet) for octet in text.split(".")), "big")
    return int(text.replace(":", ""), 16) if ":" in text else int(text, 0)


def read_packet(text: str) -> dict[str, int]:
    """Return the fields of a packet; what connection tracking will say is in `after`."""
    packet = dict.fromkeys(
        ("in_port", "eth_type", "eth_src", "eth_dst", "ip_src", "ip_dst", "ip_proto", "nw_ttl", "tp_dst",
         "reg0", "ct_state", "arp_op"), 0,
    )  # fmt: skip
    for token in text.split():
        name, equals, value = token.partition("=")
        if name in PROTOCOLS:
            packet |= {"eth_type": 0x800, "ip_proto": PROTOCOLS[name]}
        elif name == "arp":
            packet["eth_type"] = 0x806
        elif name == "ct_state":
            packet["after"] = sum(FLAGS[flag] for flag in re.findall(r"\w+", value))
        elif equals:
            packet[name] = read_number(value)
    return packet


def does_match(packet: dict[str, int], match: str) -> bool:
    """Return whether a packet matches a rule without its conjunctions."""
    for token in match.split(","):
        name, equals, value = token.partition("=")
        if not equals:
            kind = {"ip": 0x800, "arp": 0x806}.get(name, 0x800)
            if packet["eth_type"] != kind or packet["ip_proto"] != PROTOCOLS.get(name, packet["ip_proto"]):
                return False
        elif name == "ct_state":
            for sign, flag in re.findall(r"([+-])(\w+)", value):
                if bool(packet["ct_state"] & FLAGS[flag]) != (sign == "+"):
                    return False
        elif name not in ("table", "priority", "conj_id"):
            number, slash, mask = value.partition("/")
            size = 32 if "." in number else 16
            ones = (1 << size) - 1
            bits = ones if not slash else ones ^ ones >> int(mask) if mask.isdecimal() else int(mask, 16)
            if (packet[NAMES.get(name, name)] ^ read_number(number)) & bits:
                return False
    return True


class Plain:
    """Tables by definition: the rule of the highest priority, a conjunction where each clause has a match."""

    def __init__(self, text: str) -> None:
        self.rules: dict[int, list[tuple[int, str, str]]] = {}
        for line in text.splitlines():
            match, _, actions = line.partition(",actions=")
            table, priority = (int(re.search(rf"{name}=(\d+)", match)[1]) for name in ("table", "priority"))
            match = re.sub(r"table=\d+,priority=\d+,?", "", match)
            self.rules.setdefault(table, []).append((priority, match, actions))

    def find(self, table: int, packet: dict[str, int]) -> str | None:
        """Return the actions of a packet in a table, None without a rule."""
        rules = [r for r in self.rules.get(table, ()) if does_match(packet, r[1] or "in_port=0/0x0")]
        clauses: dict[tuple[int, str], set[str]] = {}
        for priority, _, actions in rules:
            for number, clause in re.findall(r"conjunction\((\d+),(\d)/2\)", actions):
                clauses.setdefault((priority, number), set()).add(clause)
        best: tuple[int, str] | None = None
        for priority, match, actions in rules:
            number = re.search(r"conj_id=(\d+)", match)
            is_whole = number is None or len(clauses.get((priority, number[1]), ())) == 2
            if "conjunction" not in actions and is_whole and (best is None or priority > best[0]):
                best = (priority, actions)
        return None if best is None else best[1]

    def run(self, packet: dict[str, int]) -> Log:
        """Return outputs with the changes before them, in the order of passes."""
        log: list[tuple[Any, ...]] = []
        waiting = [(0, dict(packet))]
        while waiting:
            table, arriving = waiting.pop(0)
            self._look_up(table, dict(arriving), arriving, log, waiting)
        return tuple(log)

    def _look_up(
        self, table: int, now: dict[str, int], sent: dict[str, int], log: list[Any], waiting: list[Any]
    ) -> None:
        actions = self.find(table, now)
        if actions is not None:
            self._act(
                re.findall(r"[\w:.\->\[\]]+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?", actions),
                now,
                sent,
                log,
                waiting,
            )

    def _act(  # noqa: C901
        self,
        actions: list[str],
        now: dict[str, int],
        sent: dict[str, int],
        log: list[Any],
        waiting: list[Any],
    ) -> None:
        for action in actions:
            name, _, value = action.partition(":")
            if action.startswith("resubmit"):
                self._look_up(int(action[10:-1]), now, sent, log, waiting)
            elif name == "output":
                if int(value) != now["in_port"]:
                    log.append((int(value), now["eth_dst"], now["ip_dst"], now["nw_ttl"]))
            elif action.startswith("load"):
                now["reg0"] = now["reg0"] & ~3 | int(value.partition("-")[0])
            elif action.startswith("move"):
                now["reg0"] = now["reg0"] & ~3 | now["eth_src" if "ETH" in action else "ip_src"] & 3
            elif name == "mod_dl_dst":
                now["eth_dst"] = read_number(value)
            elif name == "mod_nw_dst":
                now["ip_dst"] = read_number(value)
            elif action == "dec_ttl":
                if now["nw_ttl"] <= 1:
                    log.append(("controller",))
                    return
                now["nw_ttl"] -= 1
            elif action == "ct_clear":
                now["ct_state"] = 0
            elif action.startswith("clone"):
                self._act(action[6:-1].split(","), dict(now), sent, log, waiting)
            elif action.startswith("ct("):
                log.append(
                    (
                        re.sub(r"table=\d,?|NXM.*?(?=[,)])", "", action),
                        now["eth_dst"],
                        now["ip_dst"],
                        now["nw_ttl"],
                    )
                )
                table = re.search(r"table=(\d)", action)
                if table:
                    waiting.append((int(table[1]), now | {"ct_state": now["after"]}))
                now["ct_state"] = 0
            elif action == "group:1":
                self._act(["mod_dl_dst:00:00:00:00:00:02", "output:3"], dict(now), sent, log, waiting)
                self._act(["resubmit(,2)"], dict(now), sent, log, waiting)
            elif action == "group:2":
                self._act(["resubmit(,2)"], dict(now), sent, log, waiting)
