"""One SELECT, checked against a white list and turned into the same questions as the verbs."""
