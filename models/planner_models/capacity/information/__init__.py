"""What control planes of system `capacity` know: all of the problem."""
