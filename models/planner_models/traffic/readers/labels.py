"""Node labels: unique in a network, and safe in formats that separate words by spaces."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote, unquote

# what would end a word, begin a comment or a group, or look like an escape itself
_UNSAFE = re.compile(r"[\s%()#\x00-\x1f\x7f\ufeff]")


def unique(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    """One label for each node: its name, where that is not blank and no other node has it.

    Else the name with the id behind it, or only the id where there is no name.
    """
    count = Counter(names)
    taken = {name for name in names if name.strip() and count[name] == 1}
    labels = []
    for name, id_ in zip(names, ids, strict=True):
        label = name
        if label not in taken or count[name] > 1:
            label = f"{name} ({id_})" if name.strip() else id_
            while label in taken:
                label = f"{label} ({id_})"
            taken.add(label)
        labels.append(label)
    return labels


def encoded(label: str) -> str:
    """`label` as one word: blanks, parentheses, `#` and `%` as in a URL (`New York` is `New%20York`)."""
    return _UNSAFE.sub(lambda match: quote(match[0], safe=""), label)


def decoded(word: str) -> str:
    """The label that `encoded` made into `word`; a word with other percent signs stays as it is."""
    try:
        return unquote(word, errors="strict")
    except UnicodeDecodeError:
        return word
