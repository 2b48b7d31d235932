"""Node labels: unique in a network, and encoded for formats that separate words by spaces."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote, unquote

# characters that end a word, begin a comment or a group, or look like an escape
_UNSAFE = re.compile(r"[\s%()#\x00-\x1f\x7f\ufeff]")


def make_unique(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Return a label for each node: its name, if it is not blank and no other node has it.

    Otherwise the name followed by the id, or the id alone where there is no name.
    """
    count = Counter(names)
    used = {name for name in names if name.strip() and count[name] == 1}
    labels = []
    for name, id_ in zip(names, ids, strict=True):
        label = name
        if label not in used or count[name] > 1:
            label = f"{name} ({id_})" if name.strip() else id_
            while label in used:
                label = f"{label} ({id_})"
            used.add(label)
        labels.append(label)
    return labels


def encode(label: str) -> str:
    """Return `label` as one word: blanks, parentheses, `#` and `%` encoded as in a URL (`New%20York`)."""
    return _UNSAFE.sub(lambda match: quote(match[0], safe=""), label)


def decode(word: str) -> str:
    """Return the label that `encode` made into `word`; a word that is no such encoding stays as it is."""
    try:
        return unquote(word, errors="strict")
    except UnicodeDecodeError:
        return word
