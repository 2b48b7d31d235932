"""Information of control planes of system `fairshare`, realization of plans, and signalling."""
