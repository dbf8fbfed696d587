"""The demo history: a small library whose true improvements and decoys are known. Start reading in `expected.toml`."""

from perfquarry.data.demo.build import build_demo
from perfquarry.data.demo.expectations import Expected, expected

__all__ = ["Expected", "build_demo", "expected"]
