"""A cheaper or better network."""
