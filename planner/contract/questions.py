"""Questions that tables do not answer and on which the result depends, with the assumed answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class OpenQuestion:
    """A question about a problem, which a parameter of its adjustments answers.

    parameter  name of the parameter of `adjust`
    text       the question, without a question mark
    answers    meaning of each value that answers it, such as {True: "a line both ways"}
    assumed    the value that is assumed without an answer; None: none is, and the tables are refused
    reason     why that one
    """

    parameter: str
    text: str
    answers: Mapping[Any, str]
    assumed: Any = None
    reason: str = ""

    @property
    def assumption(self) -> str:
        """Assumption without an answer, with its reason."""
        return f"{self.answers[self.assumed]}, as {self.reason}"

    @property
    def others(self) -> Mapping[Any, str]:
        """The other answers."""
        return {value: meaning for value, meaning in self.answers.items() if value != self.assumed}
