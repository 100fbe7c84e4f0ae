"""What there is to ask about: datasets with their declarations, blocks, grants, surveys and publications."""
