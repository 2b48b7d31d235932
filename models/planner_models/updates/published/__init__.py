"""Published values of Foster et al. 2013, and how ours are found."""
