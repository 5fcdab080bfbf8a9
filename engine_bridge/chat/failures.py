"""What servers say when they refuse, as sentences with a cure."""

import json
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from engine_bridge.chat.web import shown
from engine_bridge.errors import BridgeError, UnavailableError, UsageError


class StreamBroken(BridgeError):  # noqa: N818
    """The answer ended before its end. What had arrived was yielded before this is raised."""


class NotReadyError(BridgeError):
    """The server is there, but still loads its model or has no room just now."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The server asks to come again; `retry_after_s` where it says when."""

    reason: str
    retry_after_s: float | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status and what the server wrote with it."""

    status: int
    text: str
    kind: str = ""
    details: dict[str, Any] | None = None


def refusal(status: int, body: bytes | str | dict[str, Any]) -> Refusal:
    """Reads any of the shapes in which servers wrap an error.

    {"error": {"message", "type" or "code"}}, {"error": "…"}, {"message": "…"},
    {"detail": "…" or [{"msg": …}]}, or plain text.
    """
    found: Any = body
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):  # nested too deeply
            found = body
    if isinstance(found, dict) and "error" in found:
        found = found["error"]
    if not isinstance(found, dict):
        text = "" if str(found).lstrip().startswith("<") else str(found)
        return Refusal(status, printable(text))
    message = found.get("message") or found.get("detail") or found.get("msg") or ""
    if not isinstance(message, str):
        message = json.dumps(message)
    code = found.get("code")
    kind = " ".join(str(found.get(name) or "") for name in ("type", "code"))
    if isinstance(code, int) and status == 200:
        status = code
    return Refusal(status, printable(message or (json.dumps(found) if found else "")), kind, found)


def printable(text: str, limit: int = 300) -> str:
    """A server's words on one line, without anything a terminal would obey."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else f"{line[:limit]}…"


def busy(told: Refusal, headers: Any) -> Busy | None:
    """Whether the server asks to wait, and how long (`Retry-After`, seconds or an HTTP date)."""
    if told.status not in (429, 503):
        return None
    reason = told.text or ("too many requests" if told.status == 429 else "the server is busy")
    return Busy(reason, _retry_after(headers.get("retry-after", "")))


def _retry_after(value: str) -> float | None:
    value = value.strip()
    if re.fullmatch(r"\d{1,6}(\.\d+)?", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, IndexError):
        return None


_OPTIONAL = re.compile(
    r"stream_options|return_\w+|timings_per_token|chat_template_kwargs|top_k|\brid\b|"
    r"extra.?(forbidden|input|field|param)|unrecogni[sz]ed|unknown (field|param|argument|name)|"
    r"unsupported (field|param)|unexpected (field|keyword)",
    re.IGNORECASE,
)


def rejects_optional_field(told: Refusal) -> bool:
    """Whether the request may pass without the fields that only ask for figures."""
    if context_overflow(told):
        return False
    return told.status == 422 or (told.status == 400 and bool(_OPTIONAL.search(told.text)))


_CONTEXT = re.compile(
    r"exceed_context|context_length_exceeded|context.?(length|size|window|limit)|"
    r"maximum (input|prompt|sequence) length|prompt (is )?too long",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"(?:context|maximum)[^\d]{0,60}(\d[\d,]*)", re.IGNORECASE)


def context_overflow(told: Refusal) -> BridgeError | None:
    """The sentence for a prompt that does not fit, with the server's numbers where it gave any."""
    if told.status not in (400, 413, 422, 500) or not _CONTEXT.search(f"{told.kind} {told.text}"):
        return None
    details = told.details or {}
    asked, limit = details.get("n_prompt_tokens"), details.get("n_ctx")
    if not isinstance(limit, int) and (found := _LIMIT.search(told.text)):
        limit = _number(found[1])
        above = [n for n in map(_number, re.findall(r"\d[\d,]*", told.text)) if n > limit]
        asked = max(above, default=None)
    cure = "Attach less, start a new conversation, or give the engine a longer context (--context)."
    if isinstance(asked, int) and isinstance(limit, int):
        return BridgeError(
            f"The prompt has {asked:,} tokens, but the engine's context holds {limit:,}.", cure
        )
    return BridgeError(f"The prompt does not fit the engine's context: {told.text}", cure)


def _number(text: str) -> int:
    return int(text.replace(",", "").rstrip("."))


def sentence(told: Refusal, base_url: str, model: str) -> BridgeError:
    """The error for a refused request. A key is never repeated: 401 texts often quote it."""
    where, said = shown(base_url), f" ({told.text.rstrip('.')})" if told.text else ""
    if told.status in (401, 403):
        return UnavailableError(
            f"The server at {where} refuses the API key ({told.status}).",
            f"Set LING_CHAT_API_KEY, or keep the key with: ling-chat key {where}",
        )
    if overflow := context_overflow(told):
        return overflow
    if told.status == 404 and "model" in f"{told.kind} {told.text}".lower():
        return UsageError(
            f"The server at {where} has no model {printable(model)!r}{said}.",
            "Give one that it lists with --model.",
        )
    if told.status in (404, 405) or 300 <= told.status < 400:
        return UsageError(
            f"There is no chat API at {where}.",
            "Check the URL; it usually ends in /v1.",
        )
    server_fault = told.status >= 500
    verb = "failed" if server_fault else "refused the request"
    return BridgeError(
        f"The server at {where} {verb} with status {told.status}{said}.",
        "Look at the server's log." if server_fault else "Change the request's settings.",
    )
