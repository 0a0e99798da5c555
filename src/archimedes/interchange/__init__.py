"""Models and data that travel to other tools, and theirs to us.

Functional Mock-up Units, PyTorch and JAX, ONNX networks, Gymnasium environments, flight stacks and
the logs of other programs. Each tool has a module or a folder of its own here; what a tool needs is
imported where it is first used, and the error names the extra that installs it.
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
