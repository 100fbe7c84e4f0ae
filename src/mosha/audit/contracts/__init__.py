"""Contracts that measurements, statistics, trainers and accountants must keep."""
