"""What the collector does with reports: deliveries, tickets, consistency, shrinkage."""
