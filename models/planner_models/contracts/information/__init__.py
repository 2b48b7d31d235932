"""Information of control planes of system `contracts`: all of the problem."""
