#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The Python package: NumPy's and PyTorch's doors, beside PyTorch. A long test, some five minutes.
#
#   tests/python.sh [PYTHON] [arguments of pytest]     a Python with pytest, numpy, torch, torchvision, transformers,
#                                                      onnx and onnxscript; default: python3
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
PYTHONPATH=python exec "$python" -m pytest -q tests/python "$@"
