# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules by which a launch runs: those of all operations, or of exact numbers, that look at numbers or refuse."""

from collections.abc import Mapping

import numpy as np
from xdsl.ir import Operation

from ...dialects.kernel import KernelOp
from ..engine import Argument, TensorArgument
from .faults import site_of
from .launch import Launch, OutOfStepError
from .rules import orders_clusters, rule_of, runs_in_step
from .translate import Rule, RuleOf


def rules_for(launch: Launch, kernel: KernelOp, args: Mapping[str, Argument], *, exact: bool) -> RuleOf:
    """The rules of a launch; with `exact` it gets the bit patterns of exact numbers. The numbers that it is given keep
    theirs. SimulationError (E3251) for NaN in its arguments, where it looks for that.
    """
    rules = rule_of
    if exact:
        from .exact.rules import exact_rule_of, table_for

        given = [value.storage if isinstance(value, TensorArgument) else np.asarray(value) for value in args.values()]
        launch.exact, rules = table_for(kernel, given), exact_rule_of
    if launch.numbers:
        from .number_faults import check_arguments, watch_rules

        check_arguments(args, site_of(kernel), launch.forgiven)
        rules = watch_rules(rules)

    def rule_for(kind: type[Operation]) -> Rule | None:
        rule = rules(kind)
        if rule is not None and launch.in_step and not runs_in_step(rule):
            raise OutOfStepError(always=True)
        if rule is not None and orders_clusters(rule):
            launch.shares = False
        return rule

    return rule_for
