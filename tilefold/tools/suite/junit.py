# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outcomes as the XML that servers of tests read, with the elements that pytest's `--junitxml` writes."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tilefold.base.printable import printable
from tilefold.tools.suite.jobs import Outcome

_ELEMENTS = {"faults": "failure", "error": "error", "incomplete": "skipped"}
"""The element of a verdict; a clean program has none."""


def junit_xml(outcomes: Sequence[Outcome]) -> str:
    """A suite with a case for each program, whose element has the reasons why it is not clean."""
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = {"tests": len(outcomes), "failures": verdicts.count("faults"), "errors": verdicts.count("error")}
    counts["skipped"] = verdicts.count("incomplete")
    whole = Element("testsuites")
    numbers = {name: str(count) for name, count in counts.items()}
    suite = SubElement(whole, "testsuite", {"name": "tilefold test", **numbers})
    for outcome in outcomes:
        case = SubElement(suite, "testcase", classname="tilefold", name=outcome.path)
        if (element := _ELEMENTS.get(outcome.verdict)) is not None:
            said = printable("\n".join(outcome.lines))
            SubElement(case, element, message=said.partition("\n")[0]).text = said
    indent(whole)
    return f"{tostring(whole, encoding='unicode', xml_declaration=True)}\n"
