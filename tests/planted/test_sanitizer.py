# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports of compute-sanitizer are read and set beside the verdicts of `tilefold check`."""

from tests.planted.sanitizer import Program, programs, reports, table

MEMCHECK = """\
========= COMPUTE-SANITIZER
begin k3
========= Invalid __global__ read of size 4 bytes
=========     at k3+0xa0
=========     by thread (1,0,0) in block (0,0,0)
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call.
begin k4
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
begin k5
========= Error: Race reported between Write access at k5+0x1c0 and Read access at k5+0x200 [64 hazards]
========= Warning: (Warp Level Programming) Potential RAW hazard detected at __shared__ 0x400 in block (0,0,0) :
=========     Write Thread (1,0,0) at k6+0x90 in k6.cute:20
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_reports_are_told_apart_by_kernels() -> None:
    assert reports(MEMCHECK) == {"k3": "Invalid __global__ read"}
    warning = "Warning: (Warp Level Programming) Potential RAW hazard detected"
    assert reports(RACECHECK) == {"k5": "Error: Race reported between Write access", "k6": warning}


def test_kernels_have_names_of_their_own() -> None:
    found = list(programs())
    assert len({program.name for program in found}) == len(found) > 200
    for program in found:
        assert f"@{program.name}(" in program.text
        assert f"@kernels::@{program.name} " in program.text


def test_table() -> None:
    kernels = [
        Program("k0", "stray", "E3202", ""), Program("k1", "race", "E3205", ""),
        Program("k2", "endless", "E3231", ""), Program("k3", "fine", "ok", ""),
    ]  # fmt: skip
    said = {"k0": "E3202", "k1": "E3205", "k2": "E3231", "k3": ""}
    found = {"memcheck": {"k0": "Invalid"}, "racecheck": {}, "initcheck": {}, "synccheck": {"k3": "Barrier error"}}
    text = table(kernels, said, found)
    assert "faulty kernels: 3, of which 1 would not end on the GPU" in text
    assert "found by `tilefold check`: 3; by a tool of compute-sanitizer: 1" in text
    assert "found by `tilefold check` alone, of those that ran: 1" in text
    assert "| stray | E3202 | Invalid | not run | not run | not run |" in text
    assert "| fine (correct) |  |  |  |  | Barrier error |" in text
