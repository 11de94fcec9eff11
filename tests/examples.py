# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many examples Hypothesis generates for tests whose examples take long."""

from hypothesis import settings

USUAL = 25
"""The number by the profile of `make test`."""


def examples(count: int) -> int:
    """`count` in `make test`, and as many times more in other profiles as they have more examples of other tests: for
    `@settings(max_examples=examples(10))`.
    """
    profile = settings.default
    assert profile is not None
    return count * profile.max_examples // USUAL
