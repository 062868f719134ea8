"""The report: one HTML page that needs no network, made from records alone."""
