"""A server that already runs, here or elsewhere: watched and talked to, never started or ended."""

from engine_bridge.backends.attach.engine import AttachedEngine

__all__ = ["AttachedEngine"]
