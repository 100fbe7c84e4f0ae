"""Statistics of graphs with their sensitivities, at edge and at node level."""
