"""Feed the model."""
