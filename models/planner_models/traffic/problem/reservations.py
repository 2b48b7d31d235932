"""Columns of demands that are reservations: setup and hold priorities, as RSVP-TE has them."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Column, number

PRIORITIES: Final = 8
"""Setup and hold priorities of reservations, 0 the strongest (RFC 3209)."""


def _priority(about: str, *, other_names: tuple[str, ...]) -> Column:
    return number(
        about,
        at_least=0,
        at_most=PRIORITIES - 1,
        whole=True,
        optional=True,
        may_be_blank=True,
        other_names=other_names,
    )


RESERVATION_COLUMNS: Final = {
    "setup_priority": _priority(
        "priority with which a reservation takes bandwidth from weaker ones, 0 (strongest) to 7; blank: 7",
        other_names=("setup prio", "setup pri"),
    ),
    "hold_priority": _priority(
        "priority with which a reservation keeps its bandwidth, 0 (strongest) to 7, at most the setup "
        "priority; blank: the setup priority",
        other_names=("holding priority", "hold prio", "hold pri"),
    ),
}
