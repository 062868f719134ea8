"""What others' training frameworks do."""
