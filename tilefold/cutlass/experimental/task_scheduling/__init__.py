# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as tasks of warps that share resources: the schedule of each task says in which order it uses them.

A resource is memory with the work that fills it (`producer_work`) and reads it (`consumer_work`). A schedule is
recorded once, and `TaskManager.run` builds it for the warps of its task. The meaning is the one that public programs
rely upon, NVIDIA's tutorials (BSD-3) and FlashInfer's kernels (Apache-2.0).
"""
