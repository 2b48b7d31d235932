"""Published values of Pfaff et al. 2015, and the functions that find ours."""
