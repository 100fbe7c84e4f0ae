"""Paying: charges, payments and what became of them, leases, failures, purchases and receipts."""
