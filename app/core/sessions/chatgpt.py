"""The conversations of a ChatGPT export: a tree of nodes each, many of which nobody ever saw."""

from collections.abc import Mapping
from typing import Any

from app.core.chat.conversation import Conversation
from app.core.chat.tree import Origin, Turn, branch_to
from app.core.sessions.store import Incoming

ENGINE = "ChatGPT"
NOT_TEXT = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
}
UNSEEN = {"user_editable_context", "model_editable_context", "reasoning_recap", "system_error"}


def is_export(found: Any) -> bool:
    """Whether this is the list of an export, or one conversation of it."""
    first = found[0] if isinstance(found, list) and found else found
    return isinstance(first, Mapping) and isinstance(first.get("mapping"), Mapping)


def from_export(found: Any) -> list[Incoming]:
    """The conversations that hold anything. Raises KeyError, TypeError or ValueError where one
    is damaged."""
    every = found if isinstance(found, list) else [found]
    talks = [_conversation(each) for each in every]
    return [each for each in talks if each.conversation.turns]


def _conversation(found: Mapping[str, Any]) -> Incoming:
    tree = _Tree(found["mapping"], float(found.get("create_time") or 0))
    leaf = tree.stands_for.get(str(found.get("current_node")), "")
    path, others = branch_to(list(tree.turns.values()), leaf)
    talk = Conversation(path, system=tree.system, others=others)
    changed = float(found.get("update_time") or 0)
    return Incoming(talk, str(found.get("title") or ""), tree.created, changed)


class _Tree:
    """The nodes that a person saw, as turns. What follows an unseen node follows its parent; what
    an assistant says and what its tools answer becomes one turn, where no branch begins between."""

    def __init__(self, nodes: Mapping[str, Any], created: float) -> None:
        self.created = created
        self.system = ""
        self.turns: dict[str, Turn] = {}
        self.stands_for: dict[str, str] = {}
        """The turn that a node became, or that its nearest seen ancestor did."""
        self._nodes = nodes
        self._thoughts: dict[str, str] = {}
        """Thinking that belongs to the answer that follows a node."""
        for name in _from_the_roots(nodes):
            self._read(name, nodes[name])

    def _read(self, name: str, node: Mapping[str, Any]) -> None:
        parent = self.stands_for.get(node.get("parent") or "", "")
        self.stands_for[name] = parent
        thought = self._thoughts.get(node.get("parent") or "", "")
        message = node.get("message")
        text = ""
        if isinstance(message, Mapping) and _kind(message) == "thoughts":
            thought += _thoughts(message["content"])
        elif isinstance(message, Mapping) and not _is_hidden(message):
            text = _text(message).strip()
        if not isinstance(message, Mapping) or not text:
            self._thoughts[name] = thought
            return
        role = message["author"]["role"]
        if role == "system":
            self.system = self.system or text
        elif role == "user":
            self._add(name, message, Turn("user", text, id=name, parent=parent))
        else:
            self._answer(name, message, Turn("assistant", text, thought, id=name, parent=parent))

    def _answer(self, name: str, message: Mapping[str, Any], turn: Turn) -> None:
        before = self.turns.get(turn.parent)
        follows = self._nodes.get(self._nodes[name].get("parent") or "", {}).get("children", ())
        if before is not None and before.role == "assistant" and len(follows) < 2:
            before.text += f"\n\n{turn.text}"
            before.reasoning += turn.reasoning
            return
        turn.finish_reason = "stop"
        turn.origin = Origin(ENGINE, str(_meta(message).get("model_slug") or ""))
        self._add(name, message, turn)

    def _add(self, name: str, message: Mapping[str, Any], turn: Turn) -> None:
        turn.created = float(message.get("create_time") or self.created)
        self.turns[name] = turn
        self.stands_for[name] = name


def _from_the_roots(nodes: Mapping[str, Any]) -> list[str]:
    """All nodes, each after its parent."""
    waiting = [name for name, node in nodes.items() if node.get("parent") not in nodes]
    order: list[str] = []
    seen = set(waiting)
    while waiting:
        name = waiting.pop(0)
        order.append(name)
        children = [each for each in nodes[name].get("children", ()) if each in nodes]
        waiting += [each for each in children if each not in seen]
        seen.update(children)
    return order


def _meta(message: Mapping[str, Any]) -> Mapping[str, Any]:
    found = message.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _kind(message: Mapping[str, Any]) -> str:
    return str((message.get("content") or {}).get("content_type", "text"))


def _is_hidden(message: Mapping[str, Any]) -> bool:
    return bool(_meta(message).get("is_visually_hidden_from_conversation")) or (
        _kind(message) in UNSEEN
    )


def _thoughts(content: Mapping[str, Any]) -> str:
    return "".join(
        f"{each.get('summary', '')}\n{each.get('content', '')}\n\n"
        for each in content.get("thoughts", ())
        if isinstance(each, Mapping)
    )


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or {}
    kind = _kind(message)
    if kind in ("code", "execution_output"):
        language = content.get("language") if kind == "code" else ""
        language = "" if language in (None, "unknown") else language
        text = str(content.get("text", "")).strip("\n")
        fence = "````" if "```" in text else "```"
        return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""
    if "parts" in content:
        return "\n\n".join(filter(None, map(_part, content["parts"] or ())))
    return str(content.get("text") or content.get("result") or "")


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind = part.get("content_type", "")
    return str(part.get("text") or NOT_TEXT.get(kind, ""))
