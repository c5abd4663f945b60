"""Files, child processes, logs, backoff, and registries of plug-ins."""
