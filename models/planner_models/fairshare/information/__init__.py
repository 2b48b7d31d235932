"""Information of control planes of system `fairshare`, how plans are realized, and signalling."""
