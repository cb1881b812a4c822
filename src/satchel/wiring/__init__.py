"""Settings become a running program here: the only place that names adapters."""
