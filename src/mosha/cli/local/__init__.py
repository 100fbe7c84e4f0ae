"""`mosha local`: surveys of people who trust nobody, on devices and at the collector."""
