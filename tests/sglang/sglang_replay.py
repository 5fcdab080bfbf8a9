"""Replays of what a real SGLang 0.5.23 printed and sent (see tests/recordings/README.md)."""

import json
from pathlib import Path
from typing import Any

from engine_bridge.host.logs import EngineLog

RECORDINGS = Path(__file__).parents[1] / "recordings" / "sglang-0.5.23"
EXPERT_LAYERS = 40
"""Of Ling-3.0-flash: 42 layers, the first 2 without experts."""


def lines(name: str, tmp_path: Path, piece: int = 1 << 20) -> list[str]:
    """A recorded server.log as the host's own reader splits it, fed `piece` bytes at a time."""
    data = (RECORDINGS / name / "server.log").read_bytes()
    log = EngineLog(tmp_path / f"{name}-{piece}.log")
    try:
        return [
            line
            for start in range(0, len(data), piece)
            for line in log.feed(data[start : start + piece])
        ]
    finally:
        log.close()


def sent(name: str) -> Any:
    """A recorded JSON answer."""
    return json.loads((RECORDINGS / name).read_bytes())


def text(name: str) -> str:
    return (RECORDINGS / name).read_text(encoding="utf-8")


def config(**changes: Any) -> dict[str, Any]:
    """What decides the launch in Ling-3.0-flash's config.json."""
    return {
        "architectures": ["BailingMoeV3ForCausalLM"],
        "model_type": "bailing_hybrid",
        "vocab_size": 157184,
        "hidden_size": 2560,
        "num_hidden_layers": 42,
        "first_k_dense_replace": 2,
        "num_experts": 512,
        "num_nextn_predict_layers": 1,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "expert_swiglu_limit_list": [0] * 35 + [4] * 7,
        "quantization_config": {"quant_method": "fp8", "routed_experts_quant_method": "mxfp4"},
        **changes,
    }


def model_folder(folder: Path, name: str = "Ling-3.0-flash-fp4", **changes: Any) -> Path:
    """A model folder with a config and no weights."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config(**changes)))
    return path
