"""One folder an engine. `base` is all that the host knows of any of them."""

from engine_bridge.backends.base import Backend


def backend_named(name: str) -> Backend:
    """The backend with this id. Raises UsageError for an unknown one."""
    from engine_bridge.errors import UsageError

    if name == "llamacpp":
        from engine_bridge.backends.llamacpp.backend import LlamaCpp

        return LlamaCpp()
    if name == "sglang":
        from engine_bridge.backends.sglang.backend import SGLang

        return SGLang()
    raise UsageError(
        f"There is no engine called {name!r}.", "Use --engine llamacpp, sglang or attach."
    )
