"""What a model folder says of itself: sizes, context length, and what Ling needs care with."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_bridge.errors import UsageError

LING = ("BailingMoeV3ForCausalLM",)
LING_CONTEXT_TOKENS = 262_144
"""What Ling-3.0-flash is published to handle; a checkpoint that states less needs YaRN."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The facts of a model folder that decide how it is launched."""

    path: Path
    name: str
    architecture: str
    context_tokens: int
    """Trained positions: `max_position_embeddings`; with YaRN in the file, what it reaches."""
    weight_bytes: int
    """Of all weight files; 0 where there are none (only a dummy load can run then)."""
    layers: int
    dense_layers: int
    """How many of the first layers have no experts."""
    experts: int
    mxfp4_experts: bool
    nextn_layers: int
    tied_head: bool
    clamped_layers: tuple[int, ...]
    """Layers whose routed experts are trained with a clamped SwiGLU."""

    @property
    def is_ling(self) -> bool:
        return self.architecture in LING

    @property
    def expert_layers(self) -> int:
        return self.layers - self.dense_layers if self.experts else 0


def read(folder: Path) -> Checkpoint:
    """The facts in a folder's `config.json` and weight files.

    Raises UsageError when there is no such folder, no readable config, or a file is missing.
    """
    config = _config(folder)
    # A model that also sees or hears keeps its language part in a table of its own.
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    assert isinstance(text, dict)
    quantization = config.get("quantization_config") or text.get("quantization_config") or {}
    limits = text.get("expert_swiglu_limit_list") or []
    return Checkpoint(
        path=folder,
        name=folder.name,
        architecture=str((config.get("architectures") or [""])[0]),
        context_tokens=_context(text),
        weight_bytes=_weight_bytes(folder),
        layers=int(text.get("num_hidden_layers") or 0),
        dense_layers=int(text.get("first_k_dense_replace") or 0),
        experts=int(text.get("num_experts") or text.get("n_routed_experts") or 0),
        mxfp4_experts=quantization.get("routed_experts_quant_method") == "mxfp4",
        nextn_layers=int(text.get("num_nextn_predict_layers") or 0),
        tied_head=bool(text.get("tie_word_embeddings")),
        clamped_layers=tuple(layer for layer, limit in enumerate(limits) if limit),
    )


def _config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is no folder.",
            "Give a folder with a model for SGLang, or a name of the hub such as"
            " inclusionAI/Ling-3.0-flash-fp4.",
        )
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{folder} has no config.json.", "Give a model's own folder.") from None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder / 'config.json'} cannot be read.", "Download the model again."
        ) from error
    if not isinstance(config, dict):
        raise UsageError(f"{folder / 'config.json'} is no model's.", "Download it again.")
    return config


def _context(text: dict[str, Any]) -> int:
    trained = int(text.get("max_position_embeddings") or 0)
    # `rope_parameters` is what newer releases of transformers call it.
    scaling = text.get("rope_scaling") or text.get("rope_parameters") or {}
    if "yarn" in str(scaling.get("rope_type") or scaling.get("type")):
        origin = int(scaling.get("original_max_position_embeddings") or trained)
        return max(trained, int(origin * float(scaling.get("factor") or 1)))
    return trained


def _weight_bytes(folder: Path) -> int:
    """Bytes of the weight files. Raises UsageError when the index names one that is missing."""
    try:
        index = json.loads((folder / "model.safetensors.index.json").read_bytes())
        names = sorted(set(index["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError):
        names = [path.name for path in folder.glob("*.safetensors")]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"{folder} lacks {len(missing)} of its {len(names)} weight files, such as"
            f" {missing[0]}.",
            "Download the model again; what is there already is kept.",
        )
    return sum((folder / name).stat().st_size for name in names)
