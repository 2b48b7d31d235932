"""Technologies of circuits: rates and reconfiguration times of prototypes, with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

TechnologyName = Literal["optical_ms", "optical_us", "optical_ns", "free_space", "radio_60ghz"]


@dataclass(frozen=True, kw_only=True)
class Technology:
    """Circuits of one kind.

    circuit_mbps  rate of a circuit
    night_us      time in which circuits that change are dark
    about         what makes the circuits, and the source of both figures
    """

    circuit_mbps: float
    night_us: float
    about: str


TECHNOLOGIES: Final[dict[TechnologyName, Technology]] = {
    "optical_ms": Technology(
        circuit_mbps=10_000.0,
        night_us=12_000.0,
        about="mirrors of three dimensions: 12 ms and 10 Gbit/s, Farrington et al. 2010 (Helios)",
    ),
    "optical_us": Technology(
        circuit_mbps=10_000.0,
        night_us=11.5,
        about="mirrors with two positions, by wavelength: 11.5 us, Porter et al. 2013 (Mordia)",
    ),
    "optical_ns": Technology(
        circuit_mbps=10_000.0,
        night_us=0.00384,
        about="tunable lasers before a passive grating: 3.84 ns, Ballani et al. 2020 (Sirius)",
    ),
    "free_space": Technology(
        circuit_mbps=10_000.0,
        night_us=12.0,
        about="light through air by micromirrors: 12 us, Ghobadi et al. 2016 (ProjecToR)",
    ),
    "radio_60ghz": Technology(
        circuit_mbps=6_760.0,
        night_us=10_000.0,
        about="802.11ad has at most 6.76 Gbit/s; antennas turn slowly, Zhou et al. 2012; 10 ms is chosen",
    ),
}
"""Technologies of circuits by name."""
