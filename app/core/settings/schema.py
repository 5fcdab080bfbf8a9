"""What can be set: each setting with its limits, what it is for, and when it applies.

The settings screen, `ling-chat doctor` and the file's checks all follow from this.
Titles and descriptions are English here and translated where they are shown.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo


class Applies(StrEnum):
    """When a changed setting shows."""

    NOW = "applies now"
    CHAT = "applies in the next chat"
    ENGINE = "applies at the next start of the engine"
    APP = "applies at the next start of ling-chat"


def setting(default: Any, title: str, description: str, applies: Applies, **limits: Any) -> Any:
    """A field of the schema. `limits` are pydantic's: ge, le, pattern …"""
    return Field(
        default,
        title=title,
        description=description,
        json_schema_extra={"applies": applies.value},
        **limits,
    )


def applies(field: FieldInfo) -> Applies:
    """When this field applies."""
    extra = field.json_schema_extra
    return Applies(str(extra["applies"])) if isinstance(extra, dict) else Applies.APP


class Section(BaseModel):
    """A table of the file. Keys that are not known here stay in the file untouched."""

    model_config = ConfigDict(validate_assignment=True)


class Appearance(Section):
    theme: str = setting(
        "ling-dark",
        "Theme",
        "Colours: one of the app's themes, or a file of your own in the themes folder.",
        Applies.NOW,
    )
    language: Literal["auto", "en", "zh_CN"] = setting(
        "auto",
        "Language",
        "The language of the app. With auto it is that of your locale.",
        Applies.APP,
    )
    signs: Literal["auto", "unicode", "ascii"] = setting(
        "auto",
        "Signs",
        "Which characters draw bars and marks. With auto the terminal decides.",
        Applies.APP,
    )
    frames_per_second: int = setting(
        0,
        "Frames per second",
        "How often the screen is drawn at most. With 0 it is 30, and 8 over SSH.",
        Applies.APP,
        ge=0,
        le=60,
    )
    thin_line: Literal["auto", "on", "off"] = setting(
        "auto",
        "Thin line",
        "Sends only what changes on the screen, for slow lines; costs some CPU. With auto it is on"
        " over SSH.",
        Applies.APP,
    )


class EngineSettings(Section):
    backend: Literal["auto", "sglang", "llamacpp", "attach"] = setting(
        "auto",
        "Engine",
        "Which engine runs the model. With auto it is SGLang beside an NVIDIA GPU where it is"
        " installed, else the embedded one.",
        Applies.APP,
    )
    model: str = setting(
        "",
        "Model",
        "A name from `ling-chat models list`, a GGUF file or a model of the hub. Empty takes the"
        " one that fits this machine.",
        Applies.APP,
    )
    url: str = setting(
        "",
        "Server",
        "The address of the server to attach to, like http://spark:30000.",
        Applies.APP,
        pattern=r"^\S*$",
    )
    python: str = setting(
        "",
        "Interpreter with SGLang",
        "The Python that has SGLang, where it lives in another environment than ling-chat.",
        Applies.APP,
    )
    keep: bool = setting(
        False,
        "Keep the engine",
        "The engine stays when the last ling-chat leaves; the next start is at once.",
        Applies.NOW,
    )
    optimisations: dict[str, bool] = Field(default_factory=dict)
    """Switches by id. The engine's own screen shows them with their proofs."""


class DocumentSettings(Section):
    warm: bool = setting(
        True,
        "Read ahead",
        "Documents are read into the engine's cache while you type, so that the answer comes at"
        " once.",
        Applies.NOW,
    )
    warm_servers: bool = setting(
        False,
        "Read ahead on servers",
        "The same on a server that ling-chat did not start, whose owner may not like it.",
        Applies.NOW,
    )
    rewarm: bool = setting(
        False,
        "Read again after a restart",
        "When the engine was restarted, documents are read again at once where they were not kept"
        " on the disk.",
        Applies.NOW,
    )
    words: bool = setting(
        True,
        "Read what you type",
        "While you rest, the question you are typing on a document is read ahead as well, by the"
        " embedded engine: it costs the processor a moment each time.",
        Applies.NOW,
    )


class ChatSettings(Section):
    titles: bool = setting(
        True,
        "Titles by the model",
        "When it rests after one of the first answers, the model finds a title for the session.",
        Applies.NOW,
    )

    thinking: Literal["auto", "on", "off"] = setting(
        "auto",
        "Thinking",
        "Whether the model thinks before it answers, where it can. With auto it does as it likes.",
        Applies.CHAT,
    )
    temperature: float | None = setting(
        None,
        "Temperature",
        "How freely words are chosen; 0 always takes the likeliest.",
        Applies.CHAT,
        ge=0,
        le=2,
    )
    top_p: float | None = setting(
        None,
        "Top-p",
        "Only the likeliest words that together reach this share are drawn from.",
        Applies.CHAT,
        ge=0,
        le=1,
    )
    top_k: int | None = setting(
        None,
        "Top-k",
        "Only so many of the likeliest words are drawn from; 0 takes all.",
        Applies.CHAT,
        ge=0,
        le=1_000_000,
    )
    min_p: float | None = setting(
        None,
        "Min-p",
        "Words below this share of the likeliest one's probability are left out.",
        Applies.CHAT,
        ge=0,
        le=1,
    )
    presence_penalty: float | None = setting(
        None,
        "Presence penalty",
        "Makes words rarer that were said already, however often.",
        Applies.CHAT,
        ge=-2,
        le=2,
    )
    frequency_penalty: float | None = setting(
        None,
        "Frequency penalty",
        "Makes words rarer, the more often they were said.",
        Applies.CHAT,
        ge=-2,
        le=2,
    )
    max_tokens: int | None = setting(
        None,
        "Longest answer",
        "In tokens. Not set, only the context ends it.",
        Applies.CHAT,
        ge=1,
        le=10_000_000,
    )


class Settings(Section):
    """The whole file; everything has a default."""

    appearance: Appearance = Field(default_factory=Appearance, title="Appearance")
    engine: EngineSettings = Field(default_factory=EngineSettings, title="Engine")
    chat: ChatSettings = Field(default_factory=ChatSettings, title="Chat")
    documents: DocumentSettings = Field(default_factory=DocumentSettings, title="Documents")
    keys: dict[str, str] = Field(default_factory=dict)
    """Other keys than the usual ones, by the id of what they do."""
