"""What a question asks of an engine: relations, bounding by person, aggregation and exact totals."""
