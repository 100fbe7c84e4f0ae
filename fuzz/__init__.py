"""Long random searches, for which the tests have no time: `python -m fuzz [name ...] [--seconds S] [--count N]`."""
