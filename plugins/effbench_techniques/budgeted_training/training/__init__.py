"""Recipes that know how much budget is left."""
