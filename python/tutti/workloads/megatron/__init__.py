"""Decoders and recipes from the command-line arguments of Megatron-LM."""
