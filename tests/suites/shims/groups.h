// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cooperative groups with the name that they had for `sync` at first.
#pragma once
#include <cooperative_groups.h>

template <class Group> __device__ void synchronize(Group group) { group.sync(); }
