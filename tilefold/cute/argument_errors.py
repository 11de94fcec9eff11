# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that the host calls, and whose errors name the faulty argument."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from tilefold.base.errors import TilefoldError
from tilefold.builder.tracing.python_errors import BY_ARGUMENTS, misuse_error, wrong_arguments
from tilefold.builder.tracing.source import is_users

from .debugging_methods import shown

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose Python errors about its arguments are TilefoldError: E5009 for a name that it does not
    take or an argument that is missing, E5002 for a value that it cannot use.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TilefoldError as error:
            raise shown(error) from error.__cause__
        except BY_ARGUMENTS as error:
            if _is_of_user(error):
                raise
            raise shown(_mistake(function, args, kwargs, error)) from None

    return call


def _is_of_user(error: Exception) -> bool:
    """Whether an exception was raised in a function of the user's, which was called back."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and is_users(traceback.tb_frame)


def _mistake(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object], error: Exception
) -> TilefoldError:
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return wrong_arguments(error, kwargs, function)
    takes = [name for name in signature.parameters if name != "self"]
    given = args[1:] if len(takes) < len(signature.parameters) else args
    return misuse_error(function.__name__, [*given, *kwargs.values()], takes, error)
