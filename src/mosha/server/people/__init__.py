"""Who is there: people, teams, agents and services, how they prove it, and what each of them may do."""
