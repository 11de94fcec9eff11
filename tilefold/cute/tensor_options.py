# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of programs for the numbers that fill their tensors."""

from argparse import ArgumentParser, Namespace


def add_tensor_init_args(parser: ArgumentParser, supports_int_dtypes: bool = False) -> None:
    """Adds `--init_normal`, for normally distributed numbers instead of uniform ones, with `--normal_mean` and
    `--normal_std`. With `supports_int_dtypes` the help says that tensors of integers stay uniform.
    """
    help = "fill tensors with normally distributed numbers" + ("; not those of integers" if supports_int_dtypes else "")
    parser.add_argument("--init_normal", action="store_true", help=help)
    parser.add_argument("--normal_mean", type=float, default=0.0, help="their mean (default: 0)")
    parser.add_argument("--normal_std", type=float, default=1.0, help="their standard deviation (default: 1)")


def validate_tensor_init_args(args: Namespace, parser: ArgumentParser) -> None:
    """Ends the program with a message of the parser if the standard deviation is not positive, or if it or the mean is
    given without `--init_normal`.
    """
    if args.normal_std <= 0:
        parser.error("--normal_std must be positive")
    if not args.init_normal and (args.normal_mean, args.normal_std) != (0.0, 1.0):
        parser.error("--normal_mean and --normal_std need --init_normal")
