"""What differs between operating systems and processors: one module per subject.

Each module says what Linux, macOS and Windows do, and offers functions that mean the same on all of
them; no other module asks on which system it runs (``tests/quality/test_systems.py`` checks that).

=================== ===========================================================================
``c_library``       functions of the C library, clocks for native code, names of shared libraries
``cpus``            how many threads to use; the names of processor and system
``files``           locks, new files, renaming, names that reach the disk
``floating_point``  rounding modes and subnormal numbers in this thread
``private_folders`` the folder of the cache, and who else could write to it
``processes``       forked children, the administrator, processes with pipes
``programs``        compilers, browsers and other programs: finding, running and installing them
=================== ===========================================================================
"""

from __future__ import annotations
