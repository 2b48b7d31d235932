"""Values of the paper on Pisces, computed again."""
