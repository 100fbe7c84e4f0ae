"""What errors are made of: their base, those of accounts and ledgers, and the warning of a weak promise."""
