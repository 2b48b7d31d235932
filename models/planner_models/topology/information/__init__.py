"""Information of control planes of system `topology`: all of the problem."""
