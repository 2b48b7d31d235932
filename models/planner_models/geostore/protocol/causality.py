"""Dependencies of writes: nearest, one-hop and all (Lloyd et al. 2013, section 2.3 and Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple


class Access(NamedTuple):
    """An operation of a user: a write by its name, or a read of the write named `of`."""

    user: str
    name: str
    of: str | None = None


FIGURE_2: Final = (
    Access("Alice", "w1"),
    Access("Bob", "r2", "w1"),
    Access("Bob", "w3"),
    Access("Alice", "r4", "w3"),
    Access("Carol", "w5"),
    Access("Alice", "w6"),
    Access("Alice", "r7", "w5"),
    Access("Alice", "w8"),
)
"""Operations of Fig. 2(a)."""


class Dependencies(NamedTuple):
    """Writes that a write depends on.

    nearest  the longest path from the write has one hop
    one_hop  the shortest path has one hop: the client attaches these (section 3.2)
    all      some path leads there
    """

    nearest: frozenset[str]
    one_hop: frozenset[str]
    all: frozenset[str]


def find_dependencies(accesses: Sequence[Access]) -> dict[str, Dependencies]:
    """Return the dependencies of each write, of operations in the order in which they happen.

    A write has a hop to its user's previous write, and to each write that its user has read since then.
    """
    context: dict[str, set[str]] = {}
    result: dict[str, Dependencies] = {}
    for access in accesses:
        followed = context.setdefault(access.user, set())
        if access.of is not None:
            followed.add(access.of)
            continue
        behind = frozenset().union(*(result[write].all for write in followed))
        result[access.name] = Dependencies(
            frozenset(followed - behind), frozenset(followed), behind | followed
        )
        context[access.user] = {access.name}
    return result
