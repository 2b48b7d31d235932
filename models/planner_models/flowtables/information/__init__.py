"""Information of control planes of system `flowtables`, and signalling between datapath and userspace."""
