"""Colours of all charts and pictures."""

from typing import Final

COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B0A000", "#888888")
"""Those of Okabe and Ito, which colour-blind readers can distinguish."""
