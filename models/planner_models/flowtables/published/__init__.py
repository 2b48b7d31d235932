"""Published values of Pfaff et al. 2015, and how ours are found."""
