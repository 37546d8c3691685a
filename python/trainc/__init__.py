# SPDX-License-Identifier: Apache-2.0
"""Helpers of trainc for PyTorch's users."""
from trainc.export import export

__all__ = ["export"]
