"""The resources of the kernels of a cubin: registers and bytes of local memory per thread.

A cubin is an ELF file; its section .nv.info is a list of attributes (format, number, size, value),
and two of them are read here: EIATTR_REGCOUNT and EIATTR_FRAME_SIZE, both pairs of a symbol and a
number. Reading them needs neither a GPU nor cuobjdump and lasts some microseconds.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Optional

_REGISTERS, _FRAME = 0x2F, 0x11


class Resources(NamedTuple):
    registers: Optional[int]
    local_bytes: Optional[int]


def _sections(cubin: bytes) -> dict[str, bytes]:
    """The sections that hold attributes of the whole file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    text = headers[names][4]
    found = {}
    for name, _, _, _, offset, length in headers:
        end = cubin.index(b"\0", text + name)
        key = cubin[text + name : end]
        if key == b".nv.info":
            found[key.decode()] = cubin[offset : offset + length]
    return found


def resources(cubin: bytes) -> Resources:
    """Of the kernel in a cubin that holds one; what cannot be read is None."""
    values: dict[int, int] = {}
    try:
        if cubin[:4] == b"\x7fELF":
            info = _sections(cubin).get(".nv.info", b"")
            at = 0
            while at + 4 <= len(info):
                form, number, size = struct.unpack_from("<BBH", info, at)
                at += 4
                if form != 4:  # the value is in place of the size
                    continue
                if number in (_REGISTERS, _FRAME) and size >= 8:
                    values[number] = max(values.get(number, 0), struct.unpack_from("<I", info, at + 4)[0])
                at += size
    except (struct.error, IndexError, ValueError):
        pass
    return Resources(values.get(_REGISTERS), values.get(_FRAME))
