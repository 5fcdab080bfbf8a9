#!/usr/bin/env bash
# An interpreter with SGLang for the tests marked `sglang`, GPU or not (several GB, Python 3.12).
#
#   make_sglang_env.sh DIR [PYTHON_3_12]
#   LING_CHAT_SGLANG_PYTHON=DIR/bin/python pytest -m sglang
set -euo pipefail
"${2:-python3.12}" -m venv "$1"
"$1/bin/pip" install --quiet sglang==0.5.23 humming-kernels==0.1.12
"$1/bin/python" -c 'import sglang; print("SGLang", sglang.__version__, "is in", sglang.__path__[0])'
