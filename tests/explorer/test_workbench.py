"""The workbench: what is pasted, the views, the tour."""

import re

import pytest

ROWS = "16x32xf32\nregister = m0 m1 m2 m3\nlane = n0 n1 n2 n3 n4"


@pytest.fixture()
def bench(page):
    page.click("#tab-workbench")
    page.evaluate("lilac.workbench.open(lilac.examples[0])")
    view(page, "tour")
    return page


def view(page, name):
    page.click(f".workbench [data-value={name}]")


def type_of(page, text):
    return page.evaluate("(text) => lilac.model.readLayout(text, lilac.library).type", text)


def test_forms_of_a_layout(page):
    """Directions, a bit matrix, CuTe's thread-value layout and Triton's syntax are read to the same layout."""
    linear = ("tensor<16x8xf32, #ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
              "warp = [], block = []}>>")
    assert type_of(page, "16x8xf32\nregister = n0 m3\nlane = n1 n2 m0 m1 m2") == linear
    matrix = "16x8xf32 register:2 lane:5\n" + "\n".join(
        ["10 00000", "00 10000", "00 01000", "00 00100", "00 00010", "00 00001", "01 00000"])
    assert type_of(page, matrix) == linear
    assert type_of(page, "tv(16x8xf32) ((4,8),(2,2)):((32,1),(16,8))") == linear
    assert type_of(page, linear) == linear
    mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>"
    text = page.evaluate("(type) => lilac.library.linearText(type)", f"tensor<16x8xf32, {mma}>")
    assert text in linear
    assert type_of(page, f"{mma} 16x8xf32") == f"tensor<16x8xf32, {mma}>"


def test_directions_with_sums(page):
    text = type_of(page, "4x8xf16\nregister = m0^n0 m1\nlane = n0 n1 n2")
    assert "generic_linear" in text and "[[1, 1], [2, 0]]" in text


@pytest.mark.parametrize("text, message", [
    ("16x32xf32\nregister = q0", "'q0' is not a bit"),
    ("16x30xf32\nregister = m0", "not powers of two"),
    ("16x32xf32\nregisters = m0", "Expected 'register"),
    ("4x4xf32 register:2 lane:2\n1000\n0100", "4 rows of 4 digits"),
    ("#ttg.blocked<{sizePerThread = [1]}>", "Write the tensor"),
    ("tensor<16x16xf32, #ttg.blockd<{}>>", "blockd"),
    ("", "Paste a layout"),
])
def test_unreadable(bench, text, message):
    before = bench.inner_text(".results")
    bench.fill("#layout-a", text)
    bench.wait_for_selector("#layout-a[aria-invalid=true]")
    assert message in bench.inner_text("#message-a")
    assert bench.inner_text(".results") == before  # what was shown stays
    bench.fill("#layout-a", ROWS)
    bench.wait_for_selector("#layout-a:not([aria-invalid])")
    assert bench.inner_text("#message-a") == ""


def test_all_examples(bench):
    count = bench.evaluate("lilac.examples.length")
    for i in range(count):
        bench.evaluate("(i) => lilac.workbench.open(lilac.examples[i])", i)
        for name in ("layouts", "conversion", "tour"):
            view(bench, name)
            assert bench.locator(".results .refused").count() == 0, (i, name)
            assert bench.locator(".message:not(:empty)").count() == 0, (i, name)
            drawn = bench.locator(".results canvas").count() > 0
            assert drawn or name == "conversion" or "layouts of memory" in bench.inner_text(".results"), (i, name)


def test_tour(bench):
    text = bench.inner_text(".results")
    for part in ("16 wavefronts, loading 256 wavefronts", "I = {n0}", "H = {m0⊕n1, m1⊕n2, m2⊕n3, m3⊕n4}",
                 "span{m0⊕n0}: 32", "span{m0, m1, m2, m3}: 256", "{0}: 16", "32*m + (n ^ 2*m)", "Sw<4,1,4> o 0 o (16,32):(32,1)",
                 "vec = 2, perPhase = 1, maxPhase = 16"):
        assert part in text, part
    assert "16 + 16 wavefronts" in bench.inner_text(".verdict")


def test_toggles(bench):
    first = bench.locator("[data-toggle='0,1']")
    assert first.get_attribute("aria-pressed") == "true"
    announced = re.search(r"then (\d+) wavefronts", first.get_attribute("aria-label")).group(1)
    first.click()
    verdict = bench.inner_text(".verdict")
    store, load = map(int, re.match(r"(\d+) \+ (\d+)", verdict).groups())
    assert store + load == int(announced) and load > 16
    assert bench.evaluate("document.activeElement.dataset.toggle") == "0,1"
    assert "span{" in bench.inner_text(".algebra:nth-of-type(4)")  # a conflict's direction
    bench.keyboard.press("Space")
    assert bench.inner_text(".verdict").startswith("16 + 16")
    bench.click("text=No swizzle")
    assert bench.inner_text(".verdict").startswith("16 + 256")
    bench.click("text=The row's number")
    assert bench.inner_text(".verdict").startswith("16 + 32")
    bench.click("text=Another optimal one")
    assert bench.inner_text(".verdict").startswith("16 + 16")


def test_scope(bench):
    scope = bench.locator(".scope").first
    assert "B loads: instruction 0" in scope.inner_text()
    assert "16 wavefronts" in scope.inner_text() and "lanes 0 and 1 meet in bank 0" in scope.inner_text()
    scope.get_by_role("radio", name="A stores").click()
    assert "1 wavefront" in scope.inner_text() and "meet" not in scope.inner_text()
    scope.locator("input[type=range]").fill("3")
    assert "instruction 3" in scope.inner_text()
    scope.get_by_role("button", name="Play lane by lane").click()
    assert scope.get_by_role("button", name="Stop").count() == 1
    bench.wait_for_timeout(300)
    assert 0 < bench.evaluate("document.querySelectorAll('.scope .hits span:not([style*=\"height:0\"])').length")
    scope.get_by_role("button", name="Stop").click()
    assert scope.get_by_role("button", name="Play lane by lane").count() == 1


def test_cells_and_keyboard(bench):
    view(bench, "layouts")
    canvas = bench.locator(".results canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    bench.mouse.move(box["x"] + 26 + 1.5 * 28, box["y"] + 26 + 2.5 * 28)
    described = bench.locator(".results .describes").first
    assert described.inner_text() == "element (2, 1): register 2, lane 1"
    canvas.focus()
    bench.keyboard.press("ArrowRight")
    assert described.inner_text() == "element (2, 2): register 2, lane 2"
    bench.keyboard.press("ArrowDown")
    assert described.inner_text() == "element (3, 2): register 3, lane 2"
    bench.keyboard.press("Escape")
    assert "Point at an element" in described.inner_text()
    radios = bench.get_by_role("radiogroup", name="Colour of Layout A")
    radios.get_by_role("radio", name="lanes").focus()
    bench.keyboard.press("ArrowLeft")
    assert radios.get_by_role("radio", name="registers").get_attribute("aria-checked") == "true"
    assert "coloured by register" in canvas.get_attribute("aria-label")


def test_conversion(bench):
    view(bench, "conversion")
    text = bench.inner_text(".results")
    assert "Elements go through shared memory" in text and "all counts are as planned" in text
    bench.click("summary:has-text('The plan in words')")
    assert "every one of 512 registers" in bench.inner_text(".results pre")


def test_memory(bench):
    index = bench.evaluate("lilac.examples.findIndex(({ name }) => name.includes('row-major memory'))")
    bench.evaluate("(i) => lilac.workbench.open(lilac.examples[i])", index)
    assert "256 wavefronts by formula, 256 on the simulator" in bench.inner_text(".results")
    bench.fill("#layout-b", "padded(32x32, 32:+4)")
    bench.wait_for_selector("text=without padding only")
    assert "on the simulator" in bench.inner_text(".results")
