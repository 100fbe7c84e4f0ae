"""A stream as a running service: state on disk, clocks, epochs, Spark."""
