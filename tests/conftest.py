"""What every test folder shares: laws are searched afresh on each run, and a busy machine is no failure."""

from hypothesis import HealthCheck, settings

settings.register_profile("laws", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laws")
