"""Under which terms accounts are opened: limits, who pays with whom, policy, notes, weak promises."""
