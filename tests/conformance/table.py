"""All conformance forms, and those that are known to raise ``TraceError`` with the reason."""

from __future__ import annotations

from . import (
    group_assignment,
    group_creation,
    group_elementwise,
    group_indexing,
    group_inplace,
    group_linalg,
    group_methods,
    group_reductions,
    group_values,
)
from .forms import Form

__all__ = ["EXPECTED_TRACE_ERRORS", "FORMS"]

FORMS: list[Form] = [
    form
    for module in (
        group_elementwise,
        group_values,
        group_methods,
        group_indexing,
        group_assignment,
        group_inplace,
        group_creation,
        group_reductions,
        group_linalg,
    )
    for form in module.FORMS
]

EXPECTED_TRACE_ERRORS: dict[str, str] = {
    "np.sin(b)": "NumPy gives float16, which graphs do not compute with",
}
