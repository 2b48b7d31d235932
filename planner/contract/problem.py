"""Protocols of a problem and of a series of problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pandas as pd
from typing_extensions import TypeVar


class Problem(Protocol):
    """Immutable, validated data of one instance."""

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables from which this problem can be built again."""

    def size(self) -> dict[str, int]:
        """Return the numbers of its parts by name, e.g. {"nodes": 50, "links": 176}."""


ProblemT_co = TypeVar("ProblemT_co", covariant=True, default=Any)


class Series(Protocol[ProblemT_co]):
    """Consecutive problems with unique labels, such as the windows of a trace."""

    def __iter__(self) -> Iterator[tuple[str, ProblemT_co]]: ...

    def __len__(self) -> int: ...
