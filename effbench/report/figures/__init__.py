"""Figures as plain data: what is drawn, with its units and intervals. The page and matplotlib draw the same ones."""
