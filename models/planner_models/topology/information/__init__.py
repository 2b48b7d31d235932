"""What control planes of system `topology` know: all of the problem."""
