"""The engine process: `python -m engine_bridge.backends.llamacpp.serve`.

Reads one line of JSON (`ServeSpec`) from standard input, so that the key is in no argv, and
serves until told to end. The end of standard input means that the host is gone: it leaves.
"""

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class ServeSpec:
    """All that decides how llama.cpp runs. Sizes are tokens, `n_threads` a count."""

    model: str
    alias: str
    port: int
    api_key: str
    n_ctx: int
    n_threads: int
    no_extra_bufts: bool = False
    """True: use the weights as they lie in the file, without repacking them for this CPU."""
    speculation: str = "none"
    """llama.cpp's name of a draftless speculation ("ngram-simple"), or "none"."""
    draft_match: int = 12
    draft_tokens: int = 48
    """For ngram-simple, in tokens: how many must match, how many are drafted then."""
    kv_folder: str = ""
    """Where what was read of documents may be kept; empty: nowhere."""
    cache_bytes: int = 0
    """Memory for prompts that are not the present one, so that going back to a document costs
    nothing; 0: none."""

    def to_stdin(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


BATCH_TOKENS = 512 if sys.platform == "darwin" else 128
"""Prompt tokens computed at a time. Between two batches the engine reports progress and sees
that a reply was stopped; on a CPU, 64 to 2,048 were equally fast (1,000 tokens of the 0.5B
model: 31 to 34 tokens per CPU-second), while a GPU, as on a Mac, wants more at once. At least
64, or a long draft of the speculation does not fit."""

FLASH_ATTENTION = platform.machine().lower() not in ("x86_64", "amd64")
"""Elsewhere llama.cpp decides. On x86 its kernel is slow for fewer than 64 tokens at a time, which
is what an answer and a second question are (0.5B model, two cores, flash attention against none;
19 tokens after 2,000: 0.25 and 0.24 s, after 5,900: 0.46 and 0.27 s; decoding there 18.9 and 28.4
tokens a second). Reading all of a long prompt costs more without (23 and 25 CPU seconds for 2,000
tokens, 90 and 113 for 5,900), but once for a document, and mostly while its reader types."""

ENVIRONMENT = {
    # Threads wait for one another some 700 times a token. Asleep at once, they take as long to be
    # woken as to compute; spinning for as long as it takes, two of them collapse where the cores
    # are busy. So each spins for a moment (GNU's OpenMP counts turns), then sleeps. 0.5B model, two
    # cores, tokens a second: 31 asleep at once, 57 with 300 to 3,000 turns; beside two other
    # programs 15 and 26, with 10,000 turns and more now and then under 10.
    "OMP_WAIT_POLICY": "passive",
    "GOMP_SPINCOUNT": "1000",
}


def main() -> None:
    """Serve until standard input ends or a signal comes."""
    os.environ.update(ENVIRONMENT)
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit("No specification on standard input.")
    spec = ServeSpec(**json.loads(line))
    # Kept open so that what this process runs can be read from outside, whatever happens
    # to the file's name.
    model_file = open(spec.model, "rb")  # noqa: SIM115
    print("engine: loading the runtime", flush=True)
    import xllamacpp

    print("engine: loading weights", flush=True)
    server = xllamacpp.Server(_parameters(spec))
    print(f"engine: listening at {server.listening_address}", flush=True)
    sys.stdin.buffer.read()
    model_file.close()
    # The native server has no stop method; its threads would keep a normal exit waiting.
    os._exit(0)


def _parameters(spec: ServeSpec) -> "object":
    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path = spec.model
    p.model_alias = {spec.alias}
    p.hostnames = ["127.0.0.1"]
    p.port = spec.port
    p.api_keys = [spec.api_key]
    p.n_ctx = spec.n_ctx
    p.n_parallel = 1
    p.n_batch = p.n_ubatch = BATCH_TOKENS
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = spec.n_threads
    if not FLASH_ATTENTION:
        p.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    p.endpoint_metrics = p.endpoint_slots = True
    p.ui = False
    p.no_extra_bufts = spec.no_extra_bufts
    p.slot_save_path = os.path.join(spec.kv_folder, "") if spec.kv_folder else ""
    p.cache_ram_mib = spec.cache_bytes >> 20
    # Context and threads are decided by us and shown; the library must not change them silently.
    p.fit_params = False
    types = xllamacpp.common_speculative_type
    name = "COMMON_SPECULATIVE_TYPE_" + spec.speculation.replace("-", "_").upper()
    p.speculative.types = [getattr(types, name)]
    p.speculative.ngram_simple.size_n = spec.draft_match
    p.speculative.ngram_simple.size_m = spec.draft_tokens
    return p


if __name__ == "__main__":
    main()
