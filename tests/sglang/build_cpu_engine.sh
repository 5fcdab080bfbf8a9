#!/usr/bin/env bash
# Build an environment in which a real SGLang serves a tiny Llama on a CPU, for the opt-in tests:
#
#   tests/sglang/build_cpu_engine.sh FOLDER [PYTHON]      (PYTHON: 3.11 or 3.12; about 9 GB, minutes)
#   LING_CHAT_SGLANG_CPU_ENGINE=FOLDER pytest tests/sglang
#
# FOLDER/venv   SGLang 0.5.23 and all it asks for (an environment that is there is left as it is)
# FOLDER/shim   a copy of sgl_kernel's Python files whose two loaders do nothing: its wheel has
#               binaries for GPUs only, and SGLang imports it on a CPU too
# FOLDER/tiny   config and tokenizer of a two-layer Llama; its weights are made up at each start
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
python=$work/venv/bin/python

if [ ! -x "$python" ]; then
  "${2:-python3}" -m venv "$work/venv"
  if command -v uv >/dev/null; then
    uv pip install --python "$python" -q "sglang==0.5.23"
  else
    "$python" -m pip install -q "sglang==0.5.23"
  fi
fi

if [ ! -d "$work/shim/sgl_kernel" ]; then
  "$python" - "$work/shim" <<'PYTHON'
import shutil, sys, sysconfig
from pathlib import Path

source = Path(sysconfig.get_paths()["purelib"]) / "sgl_kernel"
target = Path(sys.argv[1]) / "sgl_kernel"
for path in source.rglob("*.py"):
    copy = target / path.relative_to(source)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, copy)
with (target / "load_utils.py").open("a") as file:
    for loader in ("_load_architecture_specific_ops", "_preload_cuda_library"):
        file.write(f"\n\ndef {loader}():\n    return None\n")
PYTHON
fi

[ -f "$work/tiny/config.json" ] || "$python" "$here/tiny_llama.py" "$work/tiny"
echo "ready: LING_CHAT_SGLANG_CPU_ENGINE=$work"
