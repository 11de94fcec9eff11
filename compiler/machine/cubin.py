# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code as the assembler writes it: an ELF file with a section `.text.<kernel>` for each kernel."""

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_TEXT = ".text."


def read_code_sizes(cubin: bytes) -> dict[str, int]:
    """The bytes of machine code of each kernel; empty unless `cubin` is a 64-bit little-endian ELF file."""
    if len(cubin) < _HEADER.size or not cubin.startswith(b"\x7fELF\x02\x01"):
        return {}
    header = _HEADER.unpack_from(cubin)
    offset, entry_size, count, names_index = header[6], header[11], header[12], header[13]
    if entry_size != _SECTION.size or offset + count * entry_size > len(cubin) or names_index >= count:
        return {}
    sections = [_SECTION.unpack_from(cubin, offset + index * entry_size) for index in range(count)]
    names = cubin[sections[names_index][4] :][: sections[names_index][5]]
    sizes: dict[str, int] = {}
    for section in sections:
        name = names[section[0] : names.find(b"\0", section[0])].decode("ascii", "replace")
        if name.startswith(_TEXT):
            sizes[name.removeprefix(_TEXT)] = section[5]
    return sizes
