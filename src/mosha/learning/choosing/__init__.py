"""Choosing privately: hyperparameters, accuracy, calibration, teachers that vote."""
