"""How one report is randomised on the device, and its form on the wire; no NumPy on the device."""
