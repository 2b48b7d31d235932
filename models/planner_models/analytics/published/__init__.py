"""Values of Rabkin et al. 2013 beside ours."""
