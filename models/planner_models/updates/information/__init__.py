"""Information of control planes of system `updates`: the traffic as it was measured, and signalling."""
