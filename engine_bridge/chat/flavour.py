"""What sets chat servers apart, as data: what each understands beyond the common API."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine_bridge.chat.events import ChatRequest

if TYPE_CHECKING:
    from engine_bridge.contract import EngineStatus


@dataclass(frozen=True, slots=True)
class Flavour:
    """One dialect of the OpenAI-compatible chat API."""

    id: str
    title: str
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the body that ask for figures."""
    stream_options: Mapping[str, Any] = field(default_factory=lambda: {"include_usage": True})
    thinking_switch: bool = False
    """Takes chat_template_kwargs.enable_thinking."""
    continues: Mapping[str, Any] | None = None
    """Fields of the body by which the last message, the assistant's, is the beginning of the
    answer; None: the server cannot do that."""
    abort_path: str | None = None
    """Where a request is aborted by its `rid`; None: closing the connection is all there is."""

    def request_id(self) -> str | None:
        """A fresh id. Its length is fixed, for SGLang aborts every id that starts with it."""
        return secrets.token_hex(16) if self.abort_path else None

    def body(
        self, request: ChatRequest, model: str, rid: str | None, *, extras: bool = True
    ) -> dict[str, Any]:
        """The JSON body. Without `extras`, only what every server has to understand."""
        body: dict[str, Any] = {
            "model": model or "default",
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "stream": True,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "presence_penalty": request.presence_penalty,
            "frequency_penalty": request.frequency_penalty,
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
        if extras:
            body |= {**self.extras, "stream_options": dict(self.stream_options)}
            body |= {"top_k": request.top_k, "min_p": request.min_p, "rid": rid}
            body["ignore_eos"] = request.ignore_eos or None
            if self.thinking_switch and request.thinking is not None:
                body["chat_template_kwargs"] = {"enable_thinking": request.thinking}
        if request.continues and self.continues is not None:
            body |= self.continues
        return {name: value for name, value in body.items() if value is not None}


LLAMA_SERVER = Flavour(
    id="llama-server",
    title="llama.cpp server",
    extras={"return_progress": True, "timings_per_token": True},
    thinking_switch=True,
    continues={},
)
SGLANG = Flavour(
    id="sglang",
    title="SGLang",
    extras={"return_spec_tokens_details": True, "return_cached_tokens_details": True},
    stream_options={"include_usage": True, "continuous_usage_stats": True},
    thinking_switch=True,
    continues={"continue_final_message": True},
    abort_path="/abort_request",
)
GENERIC = Flavour(id="generic", title="OpenAI-compatible server")

FLAVOURS = {flavour.id: flavour for flavour in (LLAMA_SERVER, SGLANG, GENERIC)}
_BACKENDS = {"llamacpp": LLAMA_SERVER, "sglang": SGLANG}


def flavour_of(status: "EngineStatus") -> Flavour:
    """The dialect of a running engine: what it said of itself, else its backend's own."""
    backend = status.spec.backend if status.spec else ""
    return FLAVOURS.get(status.flavour) or _BACKENDS.get(backend, GENERIC)
