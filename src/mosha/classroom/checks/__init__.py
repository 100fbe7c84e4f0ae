"""Judges of answers: the auditor attacks, contracts are tried on neighbors, numbers are compared with the library's."""
