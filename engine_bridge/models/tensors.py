"""What is inside a GGUF file, and whether it is whole: read from its header.

The header is read here and not with `gguf.GGUFReader`: that one makes several numpy arrays for
each token of the vocabulary, 5 to 15 seconds of CPU for a file whose header takes 0.1 s here.
Layout of the format: the GGUF specification of the ggml project, versions 2 and 3.
"""

import functools
import hashlib
import math
import mmap
import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine_bridge.errors import BridgeError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MOST_TENSORS, MOST_FIELDS, MOST_DIMENSIONS = 1 << 20, 1 << 16, 8
MOST_ITEMS = 1 << 24
"""Of an array of strings. Bounds, like those above, the time that a damaged header can cost."""
STRING, ARRAY = 8, 9
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""GGUF value type -> struct format."""
HEAD, EMBEDDINGS = "output.weight", "token_embd.weight"
PLAIN = frozenset({"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"})
"""Types that are not quantised."""
_ALL_ATTENTION = frozenset({"llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "gemma", "granite"})

Value = int | float | bool | str


class NotAModelError(ValueError):
    """Why a file is no usable GGUF, as the end of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True)
class Field:
    """One metadata entry. `value` is None for arrays, which are only measured."""

    key: str
    type: int
    start: int
    """Where the entry, key included, starts in the file; `end` is one past it."""
    data: int
    """Where its value starts; for arrays, their first item."""
    end: int
    value: Value | None = None
    item_type: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor. `shape` is in GGUF's order: the length of a row comes first."""

    name: str
    type: str
    shape: tuple[int, ...]
    offset: int
    """Bytes from the start of the file."""
    nbytes: int

    @property
    def role(self) -> str:
        """`layers` (matrices of the blocks), `head`, `embeddings` or `other`."""
        if self.name == HEAD:
            return "head"
        if self.name == EMBEDDINGS:
            return "embeddings"
        matrix = self.name.startswith("blk.") and len(self.shape) > 1 and self.type != "F32"
        return "layers" if matrix and self.name.endswith(".weight") else "other"

    @property
    def rows(self) -> int:
        return math.prod(self.shape[1:])


@dataclass(frozen=True, slots=True)
class Gguf:
    """The header of a GGUF file."""

    header: bytes
    version: int
    alignment: int
    fields: dict[str, Field]
    tensors: tuple[Tensor, ...]
    file_bytes: int

    def get(self, key: str) -> Value | None:
        """A scalar or text of the metadata; None where it is absent or an array."""
        field = self.fields.get(key)
        return field.value if field else None

    def arch(self, key: str) -> int | None:
        """A whole number of the architecture's own metadata, such as `block_count`."""
        value = self.get(f"{self.architecture}.{key}")
        return value if isinstance(value, int) else None

    @property
    def architecture(self) -> str:
        return str(self.get("general.architecture") or "")

    @property
    def tied(self) -> bool:
        """True where the embeddings serve as the output head too."""
        return all(t.name != HEAD for t in self.tensors)

    @property
    def head(self) -> Tensor | None:
        """The tensor that makes the logits."""
        by_name = {t.name: t for t in self.tensors}
        return by_name.get(HEAD) or by_name.get(EMBEDDINGS)

    def types(self, role: str) -> dict[str, int]:
        """Bytes per tensor type of one role, the largest first. `head` follows tied weights."""
        if role == "head":
            return {self.head.type: self.head.nbytes} if self.head else {}
        counts: Counter[str] = Counter()
        for tensor in self.tensors:
            if tensor.role == role:
                counts[tensor.type] += tensor.nbytes
        return dict(counts.most_common())


def rolls_back(gguf: Gguf) -> bool:
    """Whether any end of what the engine has read can be taken back without reading the rest
    again: only of models that are known to attend to every token, and keep no running state."""
    has_window = any(key.endswith(".attention.sliding_window") for key in gguf.fields)
    return gguf.architecture in _ALL_ATTENTION and not has_window


def attention_share(gguf: Gguf) -> float | None:
    """How much reading a token costs more for each token before it, as a share of what it costs
    at the start, halved: seconds(n) ~ n + share·n². None where the work depends on more than
    the header tells (experts, layers of several kinds)."""
    heads, layers = gguf.arch("attention.head_count"), gguf.arch("block_count")
    if not heads or not layers or gguf.arch("expert_count"):
        return None
    length = gguf.arch("attention.key_length") or (gguf.arch("embedding_length") or 0) // heads
    weights = sum(math.prod(t.shape) for t in gguf.tensors if t.role == "layers")
    return heads * length * layers / weights if weights else None


@functools.cache
def type_sizes() -> dict[str, tuple[int, int, int]]:
    """Tensor type name -> (its number, weights per block, bytes per block), from `gguf`."""
    from gguf.constants import GGML_QUANT_SIZES

    return {t.name: (int(t), int(n), int(b)) for t, (n, b) in GGML_QUANT_SIZES.items()}


@functools.cache
def _type_names() -> dict[int, str]:
    return {number: name for name, (number, _, _) in type_sizes().items()}


def nbytes(type_name: str, shape: Iterable[int]) -> int:
    """Size of a tensor in bytes. Raises KeyError for a type that `gguf` does not know."""
    _, block, size = type_sizes()[type_name]
    return math.prod(shape) // block * size


class _Cursor:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self.data, self.at)
        self.pass_over(struct.calcsize(form))
        return values

    def text(self) -> str:
        (length,) = self.take("<Q")
        start = self.at
        self.pass_over(length)
        return self.data[start : self.at].decode("utf-8", "replace")

    def pass_over(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise struct.error("beyond the end")

    def pass_items(self, item_type: int, count: int) -> None:
        """Pass over array items."""
        if item_type in SCALARS:
            self.pass_over(count * struct.calcsize("<" + SCALARS[item_type]))
        elif item_type != STRING or count > MOST_ITEMS:
            raise NotAModelError("has a damaged header")
        else:
            unpack, at, data = struct.Struct("<Q").unpack_from, self.at, self.data
            for _ in range(count):
                at += 8 + unpack(data, at)[0]
            self.at = at
            self.pass_over(0)

    def field(self) -> Field:
        start, key = self.at, self.text()
        (kind,) = self.take("<I")
        if kind == ARRAY:
            item_type, count = self.take("<IQ")
            data = self.at
            self.pass_items(item_type, count)
            return Field(key, kind, start, data, self.at, None, item_type, count)
        data = self.at
        value: Value
        if kind == STRING:
            value = self.text()
        elif kind in SCALARS:
            (value,) = self.take("<" + SCALARS[kind])
        else:
            raise NotAModelError(f"has a header with the unknown value type {kind}")
        return Field(key, kind, start, data, self.at, value)

    def tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        """Name, shape, number of the type, offset into the tensor data."""
        name, (dimensions,) = self.text(), self.take("<I")
        if dimensions > MOST_DIMENSIONS:
            raise NotAModelError("has a damaged header")
        shape, (kind, offset) = self.take(f"<{dimensions}Q"), self.take("<IQ")
        return name, shape, kind, offset


def items_end(header: bytes, field: Field, count: int) -> int:
    """Where the first `count` items of an array end."""
    if field.item_type in SCALARS:
        return field.data + count * struct.calcsize("<" + SCALARS[field.item_type])
    at = field.data
    for _ in range(count):
        at += 8 + int(struct.unpack_from("<Q", header, at)[0])
    return at


def read(path: Path) -> Gguf:
    """The header of the GGUF file at `path`.

    Raises BridgeError when it is not a readable, complete GGUF file.
    """
    try:
        with path.open("rb") as file:
            return read_open(file)
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    except NotAModelError as error:
        why = str(error)
    raise BridgeError(f"{path.name} {why}.", "Check the path, or fetch the model again.")


def read_open(file: IO[bytes]) -> Gguf:
    """The header of an open GGUF file, checked against its length.

    Raises NotAModelError, and OSError when the file cannot be read.
    """
    size = os.fstat(file.fileno()).st_size
    if size < len(MAGIC):
        raise NotAModelError("is empty" if size == 0 else "is cut short")
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(MAGIC)] != MAGIC:
            raise NotAModelError("is not a GGUF file")
        try:
            gguf = _parse(data)
        except (struct.error, OverflowError) as error:
            raise NotAModelError("is cut short in its header") from error
    needed = max((t.offset + t.nbytes for t in gguf.tensors), default=0)
    if needed > size:
        raise NotAModelError(f"is cut short: {needed - size:,} of {needed:,} bytes are missing")
    return gguf


def _parse(data: mmap.mmap) -> Gguf:
    cursor = _Cursor(data)
    cursor.pass_over(len(MAGIC))
    (version,) = cursor.take("<I")
    if version not in VERSIONS:
        raise NotAModelError(f"has the GGUF version {version}, which is not known here")
    n_tensors, n_fields = cursor.take("<QQ")
    if not 0 < n_tensors <= MOST_TENSORS or n_fields > MOST_FIELDS:
        raise NotAModelError("has a damaged header")
    fields = {field.key: field for field in (cursor.field() for _ in range(n_fields))}
    infos = [cursor.tensor() for _ in range(n_tensors)]
    given = fields.get("general.alignment")
    alignment = given.value if given else DEFAULT_ALIGNMENT
    if not isinstance(alignment, int) or alignment < 1:
        raise NotAModelError("has a damaged header")
    start = -(-cursor.at // alignment) * alignment
    return Gguf(data[:start], version, alignment, fields, tuple(_tensors(infos, start)), len(data))


def _tensors(infos: list[tuple[str, tuple[int, ...], int, int]], start: int) -> Iterator[Tensor]:
    names = _type_names()
    for name, shape, number, offset in infos:
        kind = names.get(number, f"type {number}")
        size = nbytes(kind, shape) if number in names else 0
        yield Tensor(name, kind, shape, start + offset, size)


def identity(path: Path) -> str:
    """What tells one model from another wherever its file lies: a hash of its size, its header
    and 64 samples of its weights, in hex. Takes 0.1 s. Raises BridgeError like `read`."""
    stat = path.stat() if path.is_file() else None
    return _identity(path, stat.st_size if stat else 0, stat.st_mtime_ns if stat else 0)


@functools.lru_cache(maxsize=64)
def _identity(path: Path, size: int, _changed: int) -> str:
    gguf = read(path)
    digest = hashlib.sha256(b"%d" % size + gguf.header)
    with path.open("rb") as file:
        for part in range(64):
            file.seek(len(gguf.header) + (size - len(gguf.header)) * part // 64)
            digest.update(file.read(4096))
    return digest.hexdigest()
