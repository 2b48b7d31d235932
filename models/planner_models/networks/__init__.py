"""Tables and arrays that systems on networks share: nodes, traffic classes, lists of nodes, tunnels."""
