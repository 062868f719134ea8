"""Tables for people and for programs. Never imports torch."""
