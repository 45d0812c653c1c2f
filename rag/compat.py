"""The cookbook's call shapes under the name that notebooks import: see `rag.cookbook.compat`."""

from rag.cookbook import compat as _compat
from rag.cookbook.compat import *  # noqa: F403

__all__ = _compat.__all__
