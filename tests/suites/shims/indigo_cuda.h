// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stands for the header of the Indigo suite, whose host program the simulator does not need.

void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
