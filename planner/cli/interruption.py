"""Ctrl-C at the command line. This module loads nothing, so that it is there from the first moment on."""

INTERRUPTED: str = "interrupted\n"
"""What Ctrl-C leaves on standard error, with exit code 130."""
