"""Published values of Foster et al. 2013, and the functions that find ours."""
