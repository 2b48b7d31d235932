"""Levels of loggers, set for a while."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def set_log_levels(names: Iterable[str], level: int) -> Iterator[None]:
    """Set the level of the loggers of these names, and their former levels at the end."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, former in zip(loggers, before, strict=True):
            logger.setLevel(former)
