"""The text of kernels: one thread per instance, arrays in C order.

The rows of a block of threads lie one after the other in an array of shape (N, ...), so that a
block reads and writes one piece of memory, whole lines at a time, and turns it in shared memory:
a thread finds its row there. Rows of an even number of words are kept one word apart, so that the
threads of a warp meet in no bank. What does not fit into shared memory is read and written where
it is, and so are single numbers, which lie well as they are.

Long programs without loops are split into several kernels, one after the other. A multiprocessor
keeps about 8,000 instructions. A longer program is fetched anew by every group of threads, and all
that does not fit into its registers is spilled, more than caches hold. Split into kernels that fit,
each runs for many instances at a time; values that cross a cut lie in device memory, those of a
block of threads next to each other, and are stored once and loaded once by each kernel that reads
them.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from archimedes.backends.c.c99 import PART
from archimedes.backends.c.c_functions import Function
from archimedes.backends.c.helpers import with_dependencies
from archimedes.backends.c.render import Argument, render
from archimedes.backends.c.spelling import BYTES, CTYPES, Array, Frame
from archimedes.backends.cuda import cuda_c
from archimedes.backends.lowering.scope import Location
from archimedes.backends.protocol import Program
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.dtypes import B8, length_of
from archimedes.graph.ops import CONST, INPUT, TABLE
from archimedes.graph.passes import Outputs, Transformer, inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.graph.regions.base import Region

#: The name of a kernel that is alone in its file.
KERNEL = "archimedes_kernel"
#: Bytes of shared memory that a block has on every device without asking for more.
SHARED = 48 * 1024
#: Threads of a block: the most whose rows fit.
BLOCKS = (128, 64, 32)
#: Programs of more statements than this are cut into kernels of at most ``PART_OF_LONG``: longer
#: ones do not stay in the instruction cache of a multiprocessor (128 KiB), and each group of
#: threads waits for its instructions. A call of an elementary function counts as so many.
LONG, PART_OF_LONG, ELEMENTARY = 5000, 3500, 20
#: Bytes of a row that kernels of long programs read and write where it is.
LONG_ROW = 1200
#: Loads of values between kernels begin so many statements before they are needed.
AHEAD = 24
_HEAD = re.compile(r"^__device__ static void (\w+_whole(?:_part\d+)?)\((.*)\)$", re.MULTILINE)


class DeviceArray(NamedTuple):
    """An argument of a kernel: ``row`` numbers per instance, ``many`` if each has its own."""

    name: str
    code: int
    row: int
    many: bool
    output: bool

    @property
    def stride(self) -> int:
        """Numbers from one row to the next in shared memory."""
        return self.row | 1

    @property
    def bytes(self) -> int:
        """Bytes of a row in shared memory."""
        return self.stride * BYTES[self.code]

    @property
    def may_stage(self) -> bool:
        """Whether shared memory would help."""
        return self.many and self.row > 1 and self.code != B8


class Layout(NamedTuple):
    """How kernels reach their arrays: ``staged`` ones through shared memory.

    ``threads`` are those of a block, ``shared`` the most bytes of shared memory it takes. A kernel
    takes pointers to the ``arrays`` that are not empty, inputs first, and the number of instances.
    ``parts``: kernels that the program is cut into.
    """

    arrays: tuple[DeviceArray, ...]
    staged: tuple[DeviceArray, ...]
    threads: int
    shared: int
    parts: int = 1


def layout(program: Program, batched: Sequence[bool], room: int = SHARED) -> Layout:
    """Lay out a kernel; ``batched`` says which inputs have a row per instance.

    Other inputs are shared by all instances. Long programs are cut; a block of theirs may take
    ``room`` bytes of shared memory.
    """
    inputs = enumerate(zip(program.inputs, batched, strict=True))
    arrays = [DeviceArray(f"in{k}", x.code, x.size, many, False) for k, (x, many) in inputs]
    outputs = enumerate(program.outputs)
    arrays += [DeviceArray(f"out{k}", x.code, x.size, True, True) for k, x in outputs]
    parts = parts_of(program.graph)
    if parts == 1:
        threads, staged = _choose_staged(arrays, SHARED)
    else:
        # Each kernel stages what it uses; longer rows would leave room for few threads.
        threads, staged = _choose_staged([a for a in arrays if a.bytes <= LONG_ROW], room)
    shared = threads * sum(a.bytes for a in staged)
    return Layout(tuple(arrays), staged, threads, shared, parts)


def parts_of(graph: Graph) -> int:
    """Return how many kernels a program becomes: one, or several without loops in them.

    >>> parts_of(Graph())
    1
    """
    live = graph.live()
    if graph.regions or any(length_of(graph.dtype[i]) for i in live):
        return 1
    size = _statements(graph) + ELEMENTARY * sum(TABLE[graph.op[i]].elementary for i in live)
    return -(-size // PART_OF_LONG) if size > LONG else 1


def _choose_staged(arrays: Sequence[DeviceArray], room: int) -> tuple[int, tuple[DeviceArray, ...]]:
    """Return the threads of a block and what goes through shared memory: all, or short rows.

    Arrays of long words come first, so that each lies where it may.
    """
    wanted = sorted((a for a in arrays if a.may_stage), key=lambda a: a.bytes)
    total = sum(a.bytes for a in wanted)
    threads = next((x for x in BLOCKS if x * total <= room), BLOCKS[-1])
    sums = itertools.accumulate(a.bytes for a in wanted)
    staged = [a for a, size in zip(wanted, sums) if size <= room // threads]
    return threads, tuple(sorted(staged, key=lambda a: -BYTES[a.code]))


class KernelText(NamedTuple):
    """Kernels and the functions they call; ``helpers``: what a file has before them.

    ``kernels`` are their names, in the order they run, with the bytes of shared memory of a block.
    ``far`` are the bytes of device memory that a block of threads keeps between them.
    """

    text: str
    helpers: dict[str, str]
    kernels: tuple[tuple[str, int], ...] = ()
    far: int = 0


def assemble_file(kernels: Sequence[KernelText]) -> str:
    """Put kernels into one file, what they stand on once."""
    helpers = {name: text for kernel in kernels for name, text in kernel.helpers.items()}
    prelude, staging = (
        (cuda_c.TEXT / f"{name}.cuh").read_text("utf-8") for name in ("prelude", "staging")
    )
    return "\n".join([prelude, *helpers.values(), staging, *(kernel.text for kernel in kernels)])


def kernel_text(program: Program, plan: Layout, name: str = KERNEL, part: int = PART) -> KernelText:
    """Write a program that is not cut as a kernel of this name."""
    arguments = [Argument(a.name, a.code, (a.row,)) for a in plan.arrays]
    count = len(program.inputs)
    instance = f"{name}_instance"
    function = cuda_c.device_function(
        program.graph, instance, arguments[:count], arguments[count:], part
    )
    arrays = [a for a in plan.arrays if a.row]

    def call(rows: dict[str, str]) -> list[str]:
        return [f"{instance}({', '.join(rows[a.name] for a in arrays)});"]

    kernel = write_kernel(name, arrays, plan.threads, plan.staged, call)
    return KernelText(f"{function.text}\n{kernel}", function.helpers, ((name, plan.shared),))


def write_kernel(
    name: str,
    arrays: Sequence[DeviceArray],
    threads: int,
    staged: Sequence[DeviceArray],
    calls: Callable[[dict[str, str]], Sequence[str]],
    partial: Sequence[str] = (),
    far: Sequence[str] | None = None,
) -> str:
    """Write a kernel of this name.

    ``calls`` returns what each thread does, for the expressions of its rows by the names of the
    arrays. ``partial`` are names of staged outputs of which some numbers are there already, ``far``
    lines that come first in kernels with a pointer to memory between them.
    """
    heads = [
        f"{'' if a.output else 'const '}{CTYPES[a.code]} *__restrict__ {a.name}" for a in arrays
    ]
    heads += ["unsigned char *__restrict__ far"] if far is not None else []
    head = (
        f'extern "C" __global__ void __launch_bounds__({threads}) '
        f"{name}({', '.join([*heads, 'uint64_t count'])})"
    )
    lines = ["extern __shared__ __align__(16) unsigned char arc_shared[];"] if staged else []
    lines += [
        f"const uint64_t first = (uint64_t)blockIdx.x * {threads};",
        f"const unsigned n = count - first < {threads} ? (unsigned)(count - first) : {threads};",
        *(far or ()),
    ]
    at, rows = 0, dict[str, str]()
    for a in staged:
        kind = CTYPES[a.code]
        lines.append(f"{kind} *const tile_{a.name} = ({kind} *)(arc_shared + {at});")
        at += a.bytes * threads
        rows[a.name] = f"tile_{a.name} + threadIdx.x * {a.stride}"
    for a in arrays:
        direct = f"{a.name} + (first + threadIdx.x) * {a.row}" if a.many else a.name
        rows.setdefault(a.name, direct)
    fetch = [_stage("arc_fetch", a, threads) for a in staged if not a.output or a.name in partial]
    put = [_stage("arc_put", a, threads) for a in staged if a.output]
    lines += [*fetch, *(["arc_arrived();"] if fetch else [])]
    lines += ["if (threadIdx.x < n) {", *(f"    {line}" for line in calls(rows)), "}"]
    lines += [*(["__syncthreads();"] if put else []), *put]
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}\n"])


def _stage(function: str, a: DeviceArray, threads: int) -> str:
    """Call what moves the rows of a block into shared memory, or out of it: its target is first."""
    near, far = f"tile_{a.name}", f"{a.name} + first * {a.row}"
    to, source = (near, far) if function == "arc_fetch" else (far, near)
    return f"{function}<{CTYPES[a.code]}, {a.row}, {a.stride}, {threads}>({to}, {source}, n);"


# ---- long programs ---------------------------------------------------------------------


def program_text(program: Program, plan: Layout, name: str = KERNEL) -> KernelText:
    """Write a program as a kernel, or as those that a long one is cut into."""
    write = kernel_text if plan.parts == 1 else _split_program
    return write(program, plan, name)


class _SplitC(cuda_c.CudaC):
    """CUDA C of a program in parts; ``far`` counts the numbers between them, by dtype."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.far: dict[int, int] = {}
        #: The names of the arguments of each part, and what is left to do behind all of them.
        self.parts: list[tuple[str, list[str]]] = []
        self._loaded: dict[tuple[str, Location], str] = {}

    def frame(self, name: str, large: bool, pointer: str = "work", gap: str = "") -> Frame:
        """Return an empty frame: there are no loops that would need arrays."""
        return Frame(name, False, pointer, gap)

    def array(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve numbers between kernels."""
        self.far[dtype] = count
        f.parameters[f"far{dtype}"] = f"arc_far{dtype} far{dtype}"
        return Location(Array(f"far{dtype}"), 0, dtype)

    def load(self, f: Function, element: Location) -> str:
        """Load a number from between kernels once and early; read others where they are."""
        text = super().load(f, element)
        if not element.array.base.startswith("far"):
            return text
        name = self._loaded.get((f.name, element))
        if name is None:
            name = self._loaded[f.name, element] = f.fresh("x")
            line = f"    {self.declaration(element.dtype, name, text, True)}"
            f.lines.insert(max(0, len(f.lines) - AHEAD), line)
        return name

    @contextmanager
    def part(self, f: Function, number: int) -> Iterator[Function]:
        """Write a part, and take its call out of the function: it is a kernel's."""
        with super().part(f, number) as part:
            yield part
        call = f.lines.pop().strip()
        called, _, arguments = call.rstrip(");").partition("(")
        self.parts.append((called, [x for x in arguments.split(", ") if x]))


def _split_program(program: Program, plan: Layout, name: str) -> KernelText:
    arguments = [Argument(a.name, a.code, (a.row,)) for a in plan.arrays]
    count, dialects = len(program.inputs), list[_SplitC]()

    def dialect(prefix: str, **options: Any) -> _SplitC:
        dialects.append(_SplitC(prefix, **options))
        return dialects[0]

    whole = f"{name}_whole"
    source = render(
        program.graph,
        whole,
        inputs=arguments[:count],
        outputs=arguments[count:],
        part=-(-_statements(remove_dead_code(program.graph).graph) // plan.parts),
        dialect=dialect,
    )
    (c,) = dialects
    rest = c.pieces[whole]
    kernels = [[part] for part in c.parts]
    text = source.text.replace(rest, "")
    if any("=" in line for line in rest.splitlines()):
        # Inputs and constants among the results are no operations: the last kernel copies them.
        parameters = source.prototype.partition("(")[2].rstrip(")").split(", ")
        kernels[-1].append((whole, [re.split(r"[ *]", x)[-1] for x in parameters]))
        text += f"\nstatic {rest}"
    text = _HEAD.sub(_force_inlining, cuda_c.put_on_device(text))
    return _write_kernels(plan, name, text, c, kernels)


def _statements(graph: Graph) -> int:
    """Count what is written of a graph without regions."""
    return sum(graph.op[i] not in (CONST, INPUT) for i in graph.live())


def _force_inlining(head: re.Match[str]) -> str:
    parameters = cuda_c.POINTER.sub(r"*__restrict__ \1", head[2])
    return f"__device__ static __forceinline__ void {head[1]}({parameters})"


def _write_kernels(
    plan: Layout,
    name: str,
    text: str,
    c: _SplitC,
    kernels: Sequence[Sequence[tuple[str, list[str]]]],
) -> KernelText:
    """Write a kernel for each part, which stages the arrays that it uses."""
    arrays = [a for a in plan.arrays if a.row]
    uses = [{x for _, names in calls for x in names} for calls in kernels]
    # Most bytes per number first, so that all of them lie where they may.
    order = sorted(c.far, key=lambda d: -BYTES[d])
    sizes = [-(-c.far[d] * BYTES[d] * plan.threads // 16) * 16 for d in order]
    starts = [0, *itertools.accumulate(sizes)]
    block = f"far + (uint64_t)blockIdx.x * {starts[-1]}"
    lines = [
        f"const arc_far{d} far{d} = {{({CTYPES[d]} *)({block} + {start}) + threadIdx.x}};"
        for d, start in zip(order, starts)
    ]
    kinds = [f"typedef arc_far<{CTYPES[d]}, {plan.threads}> arc_far{d};\n" for d in order]
    texts, parts = [(cuda_c.TEXT / "far.cuh").read_text("utf-8"), *kinds, text], []
    for k, (calls, used) in enumerate(zip(kernels, uses)):
        staged = [a for a in plan.staged if a.name in used]
        elsewhere = set().union(*uses[:k], *uses[k + 1 :])
        partial = [a.name for a in staged if a.output and a.name in elsewhere]

        def work(rows: dict[str, str], calls: Any = calls) -> list[str]:
            return [f"{f}({', '.join(rows.get(x, x) for x in names)});" for f, names in calls]

        number = f"{name}_{k + 1}"
        texts.append(write_kernel(number, arrays, plan.threads, staged, work, partial, lines))
        parts.append((number, plan.threads * sum(a.bytes for a in staged)))
    helpers = with_dependencies("\n".join(texts), cuda_c.device_helpers())
    return KernelText("\n".join(texts), helpers, tuple(parts), max(starts[-1], 16))


def inline_single_calls(graph: Graph, least: int = LONG) -> Graph:
    """Return a program of at least so many nodes without calls of functions that are called once.

    A program with other regions, or with functions that are called more than once, stays as it is.
    """
    uses: Counter[str] = Counter()
    size = _count(graph, uses)
    if size < least or not graph.regions or any(n != 1 for n in uses.values()):
        return graph
    return _inline_calls(graph)


def _count(graph: Graph, uses: Counter[str]) -> int:
    """Count nodes and calls; what is no call counts as called twice."""
    size = len(graph.op)
    for region in (graph.regions[i] for i in graph.live() if i in graph.regions):
        if isinstance(region, Call):
            uses[region.body.digest()] += 1
            size += _count(region.body, uses)
        else:
            uses[region.kind] += 2
    return size


class _InlineCalls(Transformer):
    def region(self, i: int, region: Region) -> Outputs:
        (body,) = region.bodies
        return inline(self.dst, _inline_calls(body), self.relink(region).inputs)


def _inline_calls(graph: Graph) -> Graph:
    flat = Graph.with_inputs(graph.input_dtypes)
    return _InlineCalls(flat, graph, flat.inputs).program()
