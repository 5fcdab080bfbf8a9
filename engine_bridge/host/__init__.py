"""Runs one engine process and looks after it: start, readiness, logs, leases, stop."""
