"""Where random words come from: the secure generator, a keyed one for replays, a seeded one for tests."""
