"""Quantization, sparsity and low rank while training."""
