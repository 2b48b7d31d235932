"""Signalling: messages and bytes that control planes exchange for one decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

NAME: Final = 4
FIGURE: Final = 8
"""Bytes of a name and of a figure, the same in all systems."""


@dataclass(frozen=True, kw_only=True)
class Signalling:
    """Number and bytes of the messages that control planes exchange for one decision.

    Bytes count content without headers: `NAME` for a name, `FIGURE` for a figure.
    """

    messages: int
    bytes: int

    def __add__(self, other: Signalling) -> Signalling:
        return Signalling(messages=self.messages + other.messages, bytes=self.bytes + other.bytes)


NONE: Final = Signalling(messages=0, bytes=0)


def no_signalling(problem: Any, plan: Any) -> Signalling:  # noqa: ARG001
    """Return zero: each control plane decides on its own information, or on fixed rules."""
    return NONE
