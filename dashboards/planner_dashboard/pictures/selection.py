"""Selection of a user in a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Selected:
    """The element that a user selected.

    kind  of the element (`ElementKind.name`)
    name  of the element; "" where the user cleared the selection
    """

    kind: str
    name: str


def read_selected(picked: Any) -> Selected | None:
    """Return the selection that a component reports; None where it reports none."""
    return Selected(str(picked["kind"]), str(picked["name"])) if picked else None
