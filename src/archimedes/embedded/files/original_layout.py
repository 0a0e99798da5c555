"""C files with the names that programs written for Archimedes 0.5 use.

The algorithm is in ``<name>_kernel.c``; ``<name>.h`` and ``<name>.c`` give it the names
``<name>_arg_t``, ``<name>_res_t``, ``<name>_work_t`` and functions ``int <name>_init`` and
``int <name>_step`` that return 0, so that a ``main.c`` which uses them builds as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.embedded.c_types.comments import block_comment
from archimedes.embedded.files.header import header_text
from archimedes.embedded.files.source_file import source_text

if TYPE_CHECKING:
    from archimedes.embedded.model import Model

__all__ = ["KERNEL", "original_files"]

#: What the names of the files and functions that hold the algorithm end with.
KERNEL = "_kernel"


def original_files(model: Model) -> dict[str, str]:
    """Return the files of a model whose name ends with ``_kernel``, by path."""
    kernel, name = model.name, model.name.removesuffix(KERNEL)
    head = block_comment([model.notice, *model.description[:1]])
    arguments = f"({name}_arg_t *arg, {name}_res_t *res, {name}_work_t *work)"
    header = f"""\
{head}

#ifndef {name.upper()}_H
#define {name.upper()}_H

#include "{kernel}.h"

#ifdef __cplusplus
extern "C" {{
#endif

typedef {kernel}_in_t {name}_arg_t;
typedef {kernel}_out_t {name}_res_t;
typedef {kernel}_work_t {name}_work_t;

/* Set the arguments to their default values, and everything else to zero. Returns 0. */
int {name}_init{arguments};

/* Compute the results from the arguments. Returns 0. */
int {name}_step{arguments};

#ifdef __cplusplus
}}
#endif

#endif /* {name.upper()}_H */
"""
    source = f"""\
{head}

#include "{name}.h"

int {name}_init{arguments}
{{
    {kernel}_init(arg, res, work);
    return 0;
}}

int {name}_step{arguments}
{{
    {kernel}_step(arg, res, work);
    return 0;
}}
"""
    return {
        f"{name}.h": header,
        f"{name}.c": source,
        f"{kernel}.h": header_text(model),
        f"{kernel}.c": source_text(model),
    }
