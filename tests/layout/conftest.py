# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hypothesis settings: time limits are left to the whole run, since machines differ."""

from hypothesis import settings

settings.register_profile("tilefold", deadline=None, max_examples=60)
settings.load_profile("tilefold")
