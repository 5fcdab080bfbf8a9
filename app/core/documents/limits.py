"""How much a document may cost before it is refused in a sentence."""

MB = 1024 * 1024

MAX_BYTES = 64 * MB
"""Of text: more than any context holds (262,144 tokens are about 1 MB)."""
MAX_FILE_BYTES = 512 * MB
"""Of files in formats that carry pictures."""
MAX_UNPACKED = 512 * MB
MAX_ENTRIES = 20_000
"""Bytes and files that a document which is an archive may unpack to."""

MEMORY_BYTES = 2048 * MB
"""Address space of the worker process."""
CPU_S = 1200
"""Processor time of a worker: ends one that hangs when nobody is left to end it."""
STALL_S = 60.0
"""A worker that says nothing for so long hangs; it reports page by page."""
