"""What the benchmarks of the gateway share: a model server by script, a load generator, and the servers compared."""
