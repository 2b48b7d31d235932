"""Information of control planes of system `capacity`: all of the problem."""
