"""What a question is made of: its plan, the look before payment, its text, its JSON, a retry that pays nothing."""
