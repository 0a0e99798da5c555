"""BLAKE2b without the rest of ``hashlib``, which loads OpenSSL: as long as ten of our modules take.

>>> blake2b(b"abc", digest_size=4).hexdigest()
'63906248'
"""

from __future__ import annotations

__all__ = ["blake2b"]

try:
    # Where Python has it compiled in; ``hashlib`` takes it from there as well.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b
