"""The words of the platform: unit, guarantee, event, measurement, account, release, errors.

Standard library only. Everything above speaks in these words.
"""
