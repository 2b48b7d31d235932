"""Packets: senders, receivers, hosts and congestion controls, simulated by discrete events.

Every packet is followed from its host to the reply that its sender gets. Time is counted in integer ticks of
10 ps, so that the order of events is a rule about the network and not about rounding.

`hosts`, `senders`, `receivers`, `losses`, `timers` and `tcp` are a sender with selective acknowledgements as
Linux 4.4 has it, and `controls` what congestion controls do otherwise. What lies between hosts, such as the
racks and circuits of system `circuitflows`, adds its fields to the layout of `state` and runs the loop.
`hops` is a network of several hops, with output queues, forwarding, and senders of its own (NewReno, MPTCP
and UDP) under the same controls.
"""
