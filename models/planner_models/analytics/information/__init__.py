"""Information of control planes of system `analytics`: estimates of bandwidth, and signalling."""
