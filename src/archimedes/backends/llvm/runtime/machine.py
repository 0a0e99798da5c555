"""The CPU that code is made for, and machine code in the process."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding as llvm  # type: ignore[import-untyped]

from archimedes.backends import code_cache as cache
from archimedes.system.c_library import function_address, functions_to_import

#: Modules that are written by hand.
_TEXT = Path(__file__).parents[1] / "text"
#: LLVM orders runs of loads and stores in quadratic time below this many of them. The default
#: of 1000 takes most of the compilation of wide outputs; 50 is as fast in what it compiles.
_HUGE_REGION = 50


@lru_cache(maxsize=1)
def _initialise() -> None:
    llvm.set_option("archimedes", f"-dag-maps-huge-region={_HUGE_REGION}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@lru_cache(maxsize=1)
def _host_triple() -> str:
    """Return the triple of this process, with object files that can be linked into it.

    On Windows those are ELF files: llvmlite's linker in memory aborts at Windows' own.
    """
    triple = llvm.get_process_triple()
    return f"{triple}-elf" if llvm.get_object_format(triple) == "COFF" else triple


def _make_machine(triple: str, **options: Any) -> Any:
    """Return LLVM's machine for an architecture and system."""
    _initialise()
    if triple != _host_triple():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    # For Windows LLVM takes all that code refers to for near: there it holds full addresses.
    windows = "windows" in triple
    reloc, model = ("static", "large") if windows else ("pic", "small")
    return llvm.Target.from_triple(triple).create_target_machine(
        reloc=reloc, codemodel=model, jit=True, **options
    )


@lru_cache(maxsize=4)
def _linking(triple: str) -> Any:
    """The machine that linkers are for. They compile nothing: its features would cost time."""
    return _make_machine(triple)


@dataclass(frozen=True)
class Target:
    """A CPU by LLVM's name and features, and the system on it: this machine's, or any other.

    ``lanes`` is the number of float64 lanes of its vector registers; ``rounds_natively`` tells
    that floor and its like are instructions, ``fuses`` that fma is one.

    Example: ``Target("x86-64", "").lanes == 2``.
    """

    cpu: str
    features: str
    #: LLVM's optimization level: 2, or 0 for the unoptimized tier. That is compiled in an eighth of
    #: the time and runs two to three times slower, with the same bits.
    effort: int = 2
    #: Architecture and system, as LLVM writes them.
    triple: str = field(default_factory=_host_triple)

    # Found once: the lowering asks for each operand.

    @cached_property
    def _has(self) -> set[str]:
        return {word[1:] for word in self.features.split(",") if word.startswith("+")}

    @cached_property
    def is_x86(self) -> bool:
        """Whether it has the x86 architecture."""
        return self.triple.split("-")[0] in ("x86_64", "i686", "i386")

    @cached_property
    def is_windows(self) -> bool:
        """Whether the system is Windows: ``long`` has 32 bits, and stacks grow page by page."""
        return "windows" in self.triple

    @cached_property
    def lanes(self) -> int:
        """Float64 values in a vector register."""
        if self.is_x86 and "avx512f" in self._has:
            return 8
        return 4 if self.is_x86 and "avx" in self._has else 2

    @cached_property
    def registers(self) -> int:
        """Number of vector registers."""
        return 16 if self.is_x86 and "avx512f" not in self._has else 32

    @cached_property
    def constants_in_lanes(self) -> int:
        """Lanes of vectors whose constants are best in memory once per lane; 0 for none."""
        # AVX-512 copies one to all lanes inside the instruction that uses it.
        return self.lanes if self.is_x86 and self.lanes == 4 else 0

    @cached_property
    def rounds_natively(self) -> bool:
        """Whether rounding to whole numbers needs no library."""
        return not self.is_x86 or "sse4.1" in self._has

    @cached_property
    def fuses(self) -> bool:
        """Whether a fused multiply-add is an instruction."""
        return not self.is_x86 or "fma" in self._has

    @cached_property
    def _machine(self) -> Any:
        # Level 2 without IR passes: the graph is optimised already.
        return _make_machine(self.triple, cpu=self.cpu, features=self.features, opt=self.effort)

    def parse(self, text: str, fused: bool) -> Any:
        """Parse a module; where it is to be fused, inline marked calls and drop their memory."""
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple, module.data_layout = self.triple, str(self._machine.target_data)
        if fused:
            passes = llvm.create_new_module_pass_manager()
            passes.add_always_inliner_pass()
            passes.add_global_dead_code_eliminate_pass()
            passes.add_sroa_pass()
            passes.run(
                module,
                llvm.create_pass_builder(self._machine, llvm.create_pipeline_tuning_options()),
            )
        return module

    def compile(self, text: str, fused: bool = False) -> bytes:
        """Return the object code of a module."""
        return self._machine.emit_object(self.parse(text, fused))

    def assembly(self, text: str, fused: bool = False) -> str:
        """Return the assembly text of a module."""
        return self._machine.emit_assembly(self.parse(text, fused))


@lru_cache(maxsize=1)
def _host_cpu() -> tuple[str, str]:
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_host_cpu_name(), features


@lru_cache(maxsize=16)
def host_target(features: str | None = None) -> Target:
    """Return the CPU of this machine; ``features`` ("-avx2,-avx512f") turns some on or off.

    Example: ``host_target("-avx2,-avx,-avx512f").lanes == 2`` on x86-64.
    """
    cpu, own = _host_cpu()
    if not features:
        return Target(cpu, own)
    changed = [word for word in features.split(",") if word]
    if any(word[:1] not in "+-" or len(word) < 2 for word in changed):
        raise ValueError(
            f"target_features={features!r}: write features as '+name' or '-name', separated by "
            "commas, for example '-avx512f,-avx2'"
        )
    names = {word[1:] for word in changed}
    unchanged = [word for word in own.split(",") if word[1:] not in names]
    # The CPU's name would bring its features back.
    return Target("", ",".join([*unchanged, *changed]))


@lru_cache(maxsize=1)
def import_addresses() -> dict[str, int]:
    """Return the addresses of the functions that all code may call."""
    sources = functions_to_import(_host_triple())
    return {name: function_address(*source) for name, source in sources.items()}


class _Loaded(weakref.ref["NativeCode"]):
    """Code in the process, and its linker, which are unloaded some time after their owner is gone.

    Destructors run wherever Python happens to be, and what a signal handler raises in one is lost:
    Ctrl-C would be, since those of native code run right after a compilation. So the owner's end is
    noted by a builtin, and the code is unloaded when code is loaded next.
    """

    __slots__ = ("linker", "tracker")
    tracker: Any
    linker: Any

    def close(self) -> None:
        """Unload the code: it goes before the linker that holds it."""
        self.tracker.close()
        self.linker.close()


#: What is loaded, by identity; and what nobody owns any more.
_loaded: dict[int, _Loaded] = {}
_left: list[Any] = []


def _unload() -> None:
    """Unload what nobody owns any more."""
    while _left:
        try:
            code = _left.pop()
        except IndexError:
            return  # another thread has it
        _loaded.pop(id(code), None)
        code.close()


class NativeCode:
    """Object code linked into the process; it goes after the last reference.

    Each has a linker of its own, because LLVM keeps the books of a shared one forever. Code that
    was compiled for another system, whose ``triple`` is given, is linked as it would be there.
    """

    def __init__(
        self, code: bytes, symbol: str, imports: dict[str, int] | None = None, triple: str = ""
    ) -> None:
        _unload()
        machine = _linking(triple or _host_triple())
        # On Windows llvmlite has LLVM's older linker only.
        newer = "windows" not in machine.triple
        linker = llvm.create_lljit_compiler(machine, use_jit_link=newer)
        builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
        for name, address in {**import_addresses(), **(imports or {})}.items():
            builder.import_symbol(name, address)
        tracker = builder.link(linker, "kernel")
        loaded = _Loaded(self, _left.append)
        loaded.tracker, loaded.linker = tracker, linker
        _loaded[id(loaded)] = loaded
        self.address: int = tracker[symbol]
        self.size = len(code)

    def function(self, *kinds: Any, address: int = 0) -> Any:
        """Return what calls the code with arguments of these ctypes, and holds it meanwhile.

        ``address`` is that of another function in the code. Threads may make a cached function at
        once: one that did not stay in the cache is still called by who made it.
        """
        function: Any = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address or self.address)
        function.code = self
        return function


def function_pointer(function: Any) -> int:
    """Return the address of a function of ctypes."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def read_ir(name: str, **values: object) -> str:
    """Return the LLVM IR of a file in ``text/``, with values for the names in braces."""
    text = (_TEXT / f"{name}.ll").read_text("utf-8")
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", str(value))
    return text


def common_code(text: str, symbol: str, imports: Mapping[str, int]) -> NativeCode:
    """Compile and load a module that every process needs, or read it from the disk.

    ``imports`` are the functions and objects of the process that it names, by address.
    """
    target = host_target(None)
    key = cache.cache_key("common", text, target, llvmlite.__version__)
    code = cache.read(key)
    if code is None:
        code = target.compile(text)
        cache.write(key, code)
    return NativeCode(code, symbol, dict(imports))
