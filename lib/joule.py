# SPDX-License-Identifier: LGPL-2.1-or-later
"""joule - named regions of a Python program, whose energy `joule regions` tells.

    import joule

    with joule.region("load"):
        ...

    @joule.region("solve")
    def solve(): ...

Where nothing is recorded (outside of Slurm, in a step without an energy profile,
without libjoule) all of this does nothing, and status() says why.
"""
import contextlib
import ctypes
import errno
import os

__all__ = ["region_begin", "region_end", "mark", "region", "status", "energy",
           "NOT_KNOWN"]

NOT_KNOWN = 2**64 - 1

_MISSING = "libjoule.so.1 is not installed"


class Energy(ctypes.Structure):
    """What the step has used on this node: uJ, mW, ns and ms, as in joule.h; cpu_uj
    and memory_uj are NOT_KNOWN where the node does not measure them apart."""

    _fields_ = [
        ("time_ns", ctypes.c_int64),
        ("step_uj", ctypes.c_uint64),
        ("job_uj", ctypes.c_uint64),
        ("power_mw", ctypes.c_uint32),
        ("period_ms", ctypes.c_uint32),
        ("cpu_uj", ctypes.c_uint64),
        ("memory_uj", ctypes.c_uint64),
        ("cpu_mw", ctypes.c_uint32),
        ("memory_mw", ctypes.c_uint32),
    ]


def _load():
    try:
        library = ctypes.CDLL("libjoule.so.1", use_errno=True)
    except OSError:
        return None
    for name in ("joule_region_begin", "joule_region_end", "joule_mark"):
        function = getattr(library, name)
        function.argtypes = [ctypes.c_char_p]
        function.restype = None
    library.joule_energy.argtypes = [ctypes.POINTER(Energy)]
    library.joule_energy.restype = ctypes.c_int
    library.joule_status.argtypes = []
    library.joule_status.restype = ctypes.c_char_p
    return library


_library = _load()


def _bytes(name):
    return name if isinstance(name, bytes) else str(name).encode("utf-8", "replace")


def region_begin(name):
    """The calling thread enters a region."""
    if _library:
        _library.joule_region_begin(_bytes(name))


def region_end(name):
    """The calling thread leaves a region."""
    if _library:
        _library.joule_region_end(_bytes(name))


def mark(name):
    """A moment with a name, for traces."""
    if _library:
        _library.joule_mark(_bytes(name))


@contextlib.contextmanager
def region(name):
    """A region as a block of `with`, or as a decorator."""
    region_begin(name)
    try:
        yield
    finally:
        region_end(name)


def status():
    """"recording", or in one sentence why nothing is recorded."""
    return _library.joule_status().decode() if _library else _MISSING


def energy():
    """The energy of the calling process's step on this node.  Raises OSError
    where nothing is known of it."""
    if not _library:
        raise OSError(errno.ENOENT, _MISSING)
    figures = Energy()
    if _library.joule_energy(ctypes.byref(figures)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return figures
