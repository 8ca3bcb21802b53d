"""numpy's .npy files and the number formats that Python's struct module lacks; standard library only."""

import ast
import struct

# numpy's element types: struct's letter for each
LETTERS = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q",
           "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "b1": "?"}


def write(path, descr, values, shape=None):
    """Writes values (numbers as struct packs them) as an array of numpy type descr ("f2", "i8" …)."""
    shape = (len(values),) if shape is None else tuple(shape)
    sign = "|" if descr[1] == "1" else "<"
    header = repr({"descr": sign + descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack("<%d%s" % (len(values), LETTERS[descr]), *values))


def read(path):
    """The values in a .npy file, flat, with its numpy type and shape: (values, descr, shape)."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:6] == b"\x93NUMPY", path
    width = 2 if data[6] == 1 else 4
    length = int.from_bytes(data[8:8 + width], "little")
    header = ast.literal_eval(data[8 + width:8 + width + length].decode())
    assert not header["fortran_order"], path
    descr = header["descr"][1:]
    count = 1
    for size in header["shape"]:
        count *= size
    values = struct.unpack_from("<%d%s" % (count, LETTERS[descr]), data, 8 + width + length)
    return list(values), descr, header["shape"]


def round_f16(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def round_f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16_bits(value):
    """The bits of a finite value rounded to bf16 (to nearest even), as a signed 16-bit integer."""
    word = struct.unpack("<I", struct.pack("<f", value))[0]
    word = (word + 0x7FFF + (word >> 16 & 1)) >> 16 & 0xFFFF
    return word - 0x10000 if word & 0x8000 else word


def bf16_value(bits):
    return struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0]


def round_bf16(value):
    return bf16_value(bf16_bits(value))
