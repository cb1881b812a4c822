"""Doubles for what cannot be had or must be deterministic. They follow the ports to the letter."""
