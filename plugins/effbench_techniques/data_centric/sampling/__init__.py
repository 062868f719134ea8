"""Choose which examples to train on."""
