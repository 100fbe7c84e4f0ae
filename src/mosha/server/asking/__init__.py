"""Asking: questions as data, previews that read nothing, requests with their reviews, answers as JSON."""
