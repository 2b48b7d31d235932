"""Information of control planes of system `rotors`: all of the problem, and signalling of schedules."""
