"""Corruptions of a table: a row less, a row twice, one value changed, or two of a column swapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd


def corrupt(
    table: pd.DataFrame,
    random: np.random.Generator,
    count: int,
    *,
    names: Sequence[str],
    offsets: Sequence[float],
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield `count` corruptions of each kind, with the kind in words.

    names    that a changed name is drawn from
    offsets  that are added to a changed number, after it is halved or doubled
    """
    for _ in range(count):
        row, other = random.integers(0, len(table), 2)
        yield "drop row", table.drop(index=table.index[row])
        yield "repeat row", pd.concat([table, table.iloc[[row]]], ignore_index=True)
        name = str(random.choice(table.columns))
        column = table[name].astype(object).to_numpy(copy=True)
        if pd.api.types.is_numeric_dtype(table[name]):
            column[row] = float(column[row]) * random.choice([0.5, 2.0]) + random.choice(offsets)
        else:
            column[row] = str(random.choice(names))
        yield f"change {name}", table.assign(**{name: column})
        column = table[name].astype(object).to_numpy(copy=True)
        column[[row, other]] = column[[other, row]]
        yield f"swap {name}", table.assign(**{name: column})
