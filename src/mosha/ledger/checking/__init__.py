"""The book read again: replay, a second opinion on prices and refunds, the index."""
