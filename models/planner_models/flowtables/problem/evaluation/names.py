"""Names of tables and ports in the output of `ovs-ofctl --names`, replaced by numbers."""

from __future__ import annotations

import re
from typing import Final

from planner.contract.notes import add_note
from planner_models.flowtables.problem.openflow_actions import PORTS
from planner_models.flowtables.problem.openflow_fields import PORT_NUMBERS

NAME: Final = r'"?([A-Za-z_][\w.\-]*)"?'
TABLE: Final = re.compile(
    rf"(?<![\w\"])(table=|goto_table:|resubmit\([^,()]*,){NAME}(?=[,\s)]|$)", re.MULTILINE
)
PORT: Final = re.compile(
    rf"(?<![\w\"])(in_port=|output:|watch_port[:=]|resubmit\(|actions=|enqueue\(|bucket=){NAME}(?=[,\s)]|$)",
    re.MULTILINE,
)
SHOWN: Final = re.compile(r"^[ \t]*+(\d++)\(([^)\n]+)\): addr", re.MULTILINE)
DOWN: Final = re.compile(
    r"^[ \t]*+(\d++)\([^)\n]+\): addr(?:(?!^[ \t]*+\w++\().)*?LINK_DOWN", re.MULTILINE | re.DOTALL
)
WORDS: Final = {
    *PORTS, *PORT_NUMBERS, "DROP", "EXIT", "CT_CLEAR", "DEC_TTL", "POP_VLAN", "STRIP_VLAN", "DEC_MPLS_TTL",
    "ANY", "CLEAR_ACTIONS", "DECAP", "DEC_NSH_TTL", "POP_QUEUE",
}  # fmt: skip
"""Words behind `actions=` and `output:` that are no names of ports."""


class Numbers:
    """Numbers of the names of a dump.

    tables  by name, in the order of the dump; the first one is table 0 unless the dump has it
    ports   by name, those of `ovs-ofctl show` first
    """

    def __init__(self, shown: str = "") -> None:
        self.tables: dict[str, int] = {}
        self.ports = {name.strip('"'): int(number) for number, name in SHOWN.findall(shown)}
        self.down = frozenset(int(number) for number in DOWN.findall(shown))
        self.drawn: list[str] = []

    def replace_all(self, text: str) -> str:
        """Return the rules or groups of a dump with numbers for names."""
        self._number_tables(text)
        text = TABLE.sub(lambda match: f"{match[1]}{self.tables[match[2]]}", text)
        self._number_ports(text)
        return self.replace_ports(text)

    def replace_ports(self, text: str) -> str:
        """Return a text with the numbers of ports that have been named."""

        def number(match: re.Match[str]) -> str:
            return match[0] if match[2] not in self.ports else f"{match[1]}{self.ports[match[2]]}"

        return PORT.sub(number, text)

    def note(self, where: str) -> None:
        """Note the numbers of the names."""
        if self.tables:
            first = next((name for name, number in self.tables.items() if number == 0), None)
            start = "" if first is None else f"; packets start at {first}, the first one"
            named = ", ".join(f"{name} {number}" for name, number in self.tables.items())
            add_note(f"assumed: tables of {where} are numbered in its order: {named}{start}")
        if self.drawn:
            named = ", ".join(f"{name} {self.ports[name]}" for name in self.drawn)
            add_note(
                f"assumed: ports of {where} are numbered in its order: {named}; the output of ovs-ofctl "
                "show has their numbers (ports = ...)"
            )

    def _number_tables(self, text: str) -> None:
        """Number the tables that have names, those with rules first."""
        if not TABLE.search(text):
            return
        used = {int(number) for number in re.findall(r"\btable=(\d+)", text)}
        heads = (TABLE.search(line.partition("actions=")[0]) for line in text.splitlines())
        names = dict.fromkeys(match[2] for match in heads if match is not None)
        names |= dict.fromkeys(name for _, name in TABLE.findall(text))
        free = (number for number in range(255) if number not in used)
        for name in names:
            if name not in self.tables:
                self.tables[name] = next(free)

    def _number_ports(self, text: str) -> None:
        """Number the ports that have names and none in `ovs-ofctl show`."""
        names = dict.fromkeys(name for _, name in PORT.findall(text))
        used = {int(number) for number in re.findall(r"(?:in_port=|output:)(\d+)", text)} | set(
            self.ports.values()
        )
        free = (number for number in range(1, 65_280) if number not in used)
        for name in names:
            is_port = name.upper() not in WORDS and not re.match(r"(NXM|OXM)_|x*reg\d|learn|clone", name)
            if is_port and name not in self.ports:
                self.ports[name] = next(free)
                self.drawn.append(name)
