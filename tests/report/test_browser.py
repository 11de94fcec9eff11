# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report in Chromium: without a network, by the keyboard, with large kernels, and printed."""

import base64
from collections.abc import Generator
from pathlib import Path

import pytest
from tilefold.compiler.frontend.params import expand

from tests.profiling.kernels import CONFLICT, NAIVE
from tests.report.browser import Tab, browser, find
from tests.work import growth
from tilefold.commands.cli import main
from tilefold.driver.lowering import load
from tilefold.tools.report.contents import contents_of
from tilefold.tools.report.page import page_of

CHROMIUM = find()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def tab() -> Generator[Tab, None, None]:
    assert CHROMIUM is not None
    with browser(CHROMIUM) as opened:
        yield opened


@pytest.fixture(scope="module")
def naive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "naive.cute").write_text(NAIVE)
    assert main(["explain", str(folder / "naive.cute"), "-o", str(folder / "naive.html")]) == 0
    return folder / "naive.html"


SELECTED = "document.querySelector('.src[aria-selected=true] b')?.textContent"


def test_the_page_asks_for_nothing_else_and_has_no_errors(tab: Tab, naive: Path) -> None:
    tab.requests.clear()
    tab.errors.clear()
    tab.open(naive)
    assert set(tab.requests) == {naive.as_uri()}
    assert not tab.errors
    assert tab.run("document.querySelectorAll('.src').length") == NAIVE.count("\n") + 1


def test_keys_lead_through_lines_forms_and_remarks(tab: Tab, naive: Path) -> None:
    tab.open(naive)
    first = NAIVE[: NAIVE.index("tile.kernel")].count("\n") + 1
    assert tab.run(SELECTED) == str(first)
    for key, line in (("j", first + 1), ("j", first + 2), ("k", first + 1)):
        tab.press(key)
        assert tab.run(SELECTED) == str(line)
    marked = set[str]()
    while (line := tab.run(SELECTED)) != str(CONFLICT):
        tab.press("n")
        assert tab.run(SELECTED) != line, "there is another line with a remark"
    marked = tab.run("[...document.querySelectorAll('#f-ptx .on')].map(part => part.textContent).join()")
    assert marked.count("ld.shared.b32") == 4
    for key, panel in (("2", "f-ir"), ("3", "f-sass"), ("4", "f-stages"), ("1", "f-ptx")):
        tab.press(key)
        assert tab.run("document.querySelector('[role=tabpanel]:not([hidden])').id") == panel
    tab.run("document.getElementById('t-ptx').focus()")
    tab.press("ArrowRight")
    assert tab.run("document.activeElement.id") == "t-ir"


def test_layouts_have_pictures_under_the_pointer_and_the_focus(tab: Tab, naive: Path) -> None:
    tab.open(naive)
    assert tab.run("document.getElementById('popup').hidden")
    tab.run("document.querySelector('#source .layout').focus()")
    assert not tab.run("document.getElementById('popup').hidden")
    assert tab.run("document.querySelectorAll('#popup svg text').length") > 10
    box = tab.run("(box => [box.left, box.top, box.right, box.bottom])(popup.getBoundingClientRect())")
    assert box[0] >= 0
    assert box[1] >= 0
    assert box[2] <= tab.run("innerWidth")
    assert box[3] <= tab.run("innerHeight")
    tab.press("Escape")
    assert tab.run("document.getElementById('popup').hidden")


def test_keys_lead_through_the_timeline(tab: Tab, naive: Path) -> None:
    tab.open(naive)
    tab.run("document.querySelector('.timeline svg').focus()")
    told = "document.querySelector('.told').textContent"
    said: set[str] = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "End", "ArrowUp"):
        tab.press(key)
        assert tab.run(told) not in said
        said.add(tab.run(told))
        assert tab.run("document.querySelectorAll('.timeline .at').length") == 1
    tab.press("Home")
    assert tab.run(told).startswith("block (0,0,0) warp 0: runs 56 %, stalls 43 %. Cycles 0")
    while "bank conflict" not in tab.run(told):
        before = tab.run(told)
        tab.press("ArrowRight")
        assert tab.run(told) != before, "a conflict is to come"
    tab.press("Enter")
    there = f"{SELECTED} == '{CONFLICT}'"
    wait = f"new Promise(done => {{ const look = () => {there} ? done(true) : setTimeout(look, 10); look(); }})"
    assert tab.run(wait)
    assert tab.run(SELECTED) == str(CONFLICT)


@pytest.mark.parametrize("width", [800, 400])
def test_narrow_windows_scroll_in_one_direction(tab: Tab, naive: Path, width: int) -> None:
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    tab.open(naive)
    widths = tab.run("[document.documentElement.scrollWidth, innerWidth]")
    tab.call("Emulation.clearDeviceMetricsOverride")
    assert widths[0] <= widths[1]


def test_long_lines_are_wrapped_and_a_pane_scrolls_in_one_direction(tab: Tab, naive: Path) -> None:
    tab.open(naive)
    assert tab.run("document.body.scrollWidth <= innerWidth")
    assert tab.run("[...document.querySelectorAll('.pane')].every(pane => pane.scrollWidth <= pane.clientWidth)")
    scrolls = "[...document.querySelectorAll('.pane *')].filter(x => /auto|scroll/.test(getComputedStyle(x).overflowX))"
    assert tab.run(f"{scrolls}.length") == 0


def test_colours_follow_the_setting_of_the_reader(tab: Tab, naive: Path) -> None:
    grounds: set[str] = set()
    for scheme in ("light", "dark"):
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.open(naive)
        grounds.add(tab.run("getComputedStyle(document.body).backgroundColor"))
    tab.call("Emulation.setEmulatedMedia", features=[])
    assert grounds == {"rgb(255, 255, 255)", "rgb(22, 24, 29)"}


def test_a_line_of_code_leads_to_its_source(tab: Tab, naive: Path) -> None:
    tab.open(naive)
    tab.run("[...document.querySelectorAll('#f-sass [data-s]')].find(x => x.textContent.includes('BAR.SYNC')).click()")
    assert tab.run(SELECTED) == "16"


def test_it_prints_with_all_passes_open(tab: Tab, naive: Path) -> None:
    tab.open(naive)
    pdf = base64.b64decode(tab.call("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 3


def test_each_picture_fits_a_printed_page(tab: Tab, tmp_path: Path) -> None:
    page = tmp_path / "copies.html"
    assert main(["show", str(Path(__file__).parents[2] / "examples" / "gemm.cute"), "-o", str(page)]) == 0
    tab.call("Page.navigate", url=page.as_uri())
    loaded = "new Promise(done => addEventListener('load', () => done(true)))"
    assert tab.run(f"document.readyState === 'complete' || {loaded}")
    pdf = base64.b64decode(tab.call("Page.printToPDF", printBackground=True)["data"])
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= page.read_text().count("<figure") == 5


def large(operations: int) -> str:
    """A kernel of so many operations, each of a line of its own. Few values live at a time: for thousands of them the
    assembler alone takes ten seconds.
    """
    steps = "\n".join(f"    %x{n + 1} = arith.mulf %x{n}, %x{max(0, n - 3)} : f32" for n in range(operations))
    g = '!tile.tensor<f32, gmem, align<16>, "64:1">'
    return (
        f"gpu.module @kernels {{\n  tile.kernel @large(%A: {g}, %B: {g}) threads(64) {{\n    %t = gpu.thread_id x\n"
        f"    %x0 = tile.load %A(%t)\n{steps}\n    tile.store %x{operations}, %B(%t)\n    return\n  }}\n}}\n"
    )


@pytest.mark.sampled(0)
def test_pages_of_five_thousand_operations_stay_quick(tab: Tab, tmp_path: Path) -> None:
    few, many = 625, 5000

    def write(operations: int) -> None:
        program = load(expand(large(operations), "large.cute", {}))
        (tmp_path / f"{operations}.html").write_text(page_of(contents_of(program, ())))

    assert growth(write, few, many, times=1) < 3
    script = """(() => { const began = performance.now();
        for (let n = 0; n < 20; n++) dispatchEvent(new KeyboardEvent("keydown", {key: "j"}));
        document.body.offsetHeight; return (performance.now() - began) / 20; })()"""
    milliseconds: dict[int, tuple[float, float]] = {}
    for operations in (few, many):
        tab.open(tmp_path / f"{operations}.html")
        loading = tab.run("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        milliseconds[operations] = (loading, tab.run(script))
    for small, large_one in zip(*milliseconds.values(), strict=True):
        assert large_one < 3 * many / few * max(small, 1)  # a millisecond is what the clock of a page tells apart
