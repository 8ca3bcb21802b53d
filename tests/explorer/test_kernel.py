"""A kernel in the page: written by `lilac explore`, or pasted."""

import json
import os

import pytest
from conftest import CORPUS, PAGE, Opened, explore, lilac


def corpus(name):
    with open(os.path.join(CORPUS, name), encoding="utf-8") as file:
        return file.read()


@pytest.fixture(scope="module")
def product(browser, tmp_path_factory):
    """The page of a matrix product."""
    folder = str(tmp_path_factory.mktemp("product"))
    opened = Opened(browser, explore(folder, "matmul_f16", "--num-warps", "8"), viewport={"width": 1440, "height": 900})
    yield opened.page
    opened.close()


def test_script_in_a_kernel(browser, tmp_path):
    """A kernel's text cannot end the page's script."""
    text = corpus("softmax_float16_4096.ttir").replace('"kernels.py"', '"</script><b>.py"')
    path, out = tmp_path / "kernel.ttir", str(tmp_path / "page.html")
    path.write_text(text, encoding="utf-8")
    assert lilac("explore", str(path), "-o", out, "--page", os.environ["LILAC_PAGE"])[0] == 0
    opened = Opened(browser, out)
    assert opened.page.inner_text("h2") == "softmax"
    assert opened.page.evaluate("lilac.kernel.data.text") == text
    opened.close()


def test_head(product):
    assert product.inner_text("h2") == "matmul"
    facts = product.inner_text(".facts")
    for fact in ("sm_90a device", "8 warps", "3 stages", "1 layout conversion", "7 accesses to global memory"):
        assert fact in facts


def selected(page, title):
    return page.locator(f".pane:has(h3:has-text('{title}')) .lines .selected").all_text_contents()


def test_linked_selection(product):
    product.locator(".pane:has(h3:has-text('Source')) [data-place='kernels.py:59']").click()
    assert any("ttg.convert_layout" in line for line in selected(product, "Tile IR"))
    assert any("tt.store" in line for line in selected(product, "Tile IR"))
    assert any("st.global" in line for line in selected(product, "PTX"))
    product.locator(".pane:has(h3:has-text('PTX')) [data-place='kernels.py:56']:has-text('wgmma.mma_async')").first.click()
    (line,) = selected(product, "Source")
    assert line.lstrip("0123456789").strip() == "acc = tl.dot(va, vb, acc, out_dtype=ACC)"
    assert all("warp_group_dot" in line for line in selected(product, "Tile IR"))
    assert "What became of kernels.py:56" in product.inner_text(".detail")


def test_keyboard_in_a_pane(product):
    product.locator(".pane:has(h3:has-text('Source')) [data-place='kernels.py:55']").click()
    product.locator(".pane:has(h3:has-text('Source')) .lines").focus()
    product.keyboard.press("ArrowDown")
    assert "kernels.py:56" in product.inner_text(".detail h3 >> nth=0")
    product.keyboard.press("ArrowUp")
    product.keyboard.press("ArrowUp")
    assert "kernels.py:54" in product.inner_text(".detail h3 >> nth=0")  # the loop


def test_details_of_a_line(product):
    product.locator(".pane:has(h3:has-text('Source')) [data-place='kernels.py:59']").click()
    detail = product.inner_text(".detail")
    assert "Global memory" in detail and "tt.store" in detail and "2048 (2048)" in detail
    assert "Elements go through shared memory" in detail and "Layouts" in detail
    assert product.locator(".detail .scope").count() == 1


def test_explanation(product):
    """Plans, reasons, what was not chosen, and the budget, as `lilac explain` has them."""
    product.wait_for_selector(".kernel[data-explained]")
    product.locator(".pane:has(h3:has-text('Source')) [data-place='kernels.py:59']").click()
    detail = product.inner_text(".detail")
    assert "The layout it comes from is that of ttng.warp_group_dot (kernels.py:56)" in detail
    assert "wgmma determines the layout of its result" in detail and "not chosen" in detail
    words = ["explain", "-", "--json", "--num-warps", "8", "--num-stages", "3"]
    explanation = json.loads(lilac(*words, text=corpus("matmul_f16.ttir"))[1])
    assert product.evaluate("lilac.kernel.explanation") == explanation
    budget = product.inner_text(".kernel section:has(h3:has-text('Budget'))")
    assert f"limited by {explanation['budget']['limited_by']}" in budget and "memory is the largest" in budget


def test_timeline(product):
    product.wait_for_selector(".timeline")
    assert "Time line of the loop at kernels.py:54" in product.inner_text(".kernel")
    assert "Up to 2 groups of copies are in flight" in product.inner_text(".timeline")
    assert timelines(product) == [{
        "before": ["copy", "copy", "commit"] * 2,
        "body": ["wait copies", "product", "wait products", "copy", "copy", "commit"],
        # Copies of two groups are issued before the loop; a product ends in the iteration after its own.
        "bars": [["copy", -1, 0], ["copy", -1, 1], ["product", 0, 1], ["copy", 0, 2], ["product", 1, 2], ["copy", 1, 3],
                 ["product", 2, 3], ["copy", 2, 4], ["product", 3, 4], ["copy", 3, 5], ["product", 4, 5], ["copy", 4, 5]],
    }]
    product.locator(".timeline [data-bar='2']").click()
    assert "kernels.py:56" in product.inner_text(".detail h3 >> nth=0")


TIMELINES = """() => lilac.model.loopsOf(lilac.kernel.explanation).map((loop) => {
  const { bars, first } = lilac.model.barsOf(loop), { before, body } = loop;
  return { before: before.map(({ kind }) => kind), body: body.map(({ kind }) => kind),
    bars: bars.map(({ kind, iteration, end }) => [kind, iteration, Math.floor((end - first) / body.length)]) };
})"""


def timelines(page):
    """The loops: their events, and for each bar its kind, and the iterations in which it begins and ends."""
    page.wait_for_selector(".kernel[data-explained]", state="attached")
    return page.evaluate(TIMELINES)


def test_timeline_of_barriers(browser, tmp_path):
    """Copies that end at mbarriers; waits of warps for each other complete none. A loop around has no bars of its own."""
    opened = Opened(browser, explore(str(tmp_path), "attention_f16_d128_causal", "--num-warps", "8"))
    (loop,) = timelines(opened.page)
    assert "wait mbarrier" in loop["body"]
    copies = [bar for bar in loop["bars"] if bar[0] == "copy" and bar[2] < 5]
    assert [end for _, _, end in copies] == list(range(len(copies)))  # each iteration waits for one group
    assert all(end - begin == 2 for _, begin, end in copies if begin >= 0)
    opened.close()


def test_timeline_of_specialised_loops(browser, tmp_path):
    """Copies that other warps start: the first fill the buffers, each later one begins where a buffer is released."""
    page = os.path.join(str(tmp_path), "specialised.html")
    kernel = os.path.join(CORPUS, "..", "ttir", "matmul_tma_persistent_ws_kernel-82e73db2.ttir")
    status, _, err = lilac("explore", kernel, "-o", page, "--page", PAGE)
    assert status == 0, err
    opened = Opened(browser, page)
    (loop,) = timelines(opened.page)
    assert loop["body"] == ["wait mbarrier", "product", "wait products", "arrive"]
    buffers = len(loop["before"])
    assert buffers > 1 and set(loop["before"]) == {"copy"}
    copies = [bar for bar in loop["bars"] if bar[0] == "copy"]
    assert [begin for _, begin, _ in copies] == [-1] * buffers + list(range(5))
    assert [end for _, _, end in copies][:5] == list(range(5))
    text = opened.page.inner_text(".timeline")
    assert f"Up to {buffers} groups of copies are in flight" in text and f"one of the {buffers} buffers is free" in text
    opened.close()


def test_other_options(product):
    field = product.locator(".kernel label:has-text('warps') select")
    field.select_option("4")  # for a tile of 128 × 256
    assert "8 warps in place of 4\n" in product.inner_text(".facts")
    field.select_option("8")
    assert "8 warps\n" in product.inner_text(".facts")


def test_pasted_kernel(page):
    page.click("#tab-kernel")
    text = corpus("cumsum_16x256.ttir")
    page.evaluate("document.querySelector('.kernel details').open = true")
    page.fill("#ttir", text)
    page.click(".kernel button:has-text('Compile')")
    assert page.evaluate("lilac.kernel.data.ptx") == lilac("compile", "-", text=text)[1]
    before = page.inner_text(".kernel h2")
    page.fill("#ttir", text.replace("tt.load", "tt.lod", 1))
    page.click(".kernel button:has-text('Compile')")
    assert "unknown operation 'tt.lod'" in page.inner_text(".kernel .refused")
    assert page.inner_text(".kernel h2") == before
    page.fill("#ttir", text)
    page.click(".kernel button:has-text('Compile')")
    assert not page.is_visible(".kernel .refused")


def test_examples(page):
    page.click("#tab-kernel")
    page.evaluate("document.querySelector('.kernel details').open = true")
    field = page.locator(".kernel label:has-text('or an example') select")
    for i in range(field.locator("option").count() - 1):
        page.evaluate("document.querySelector('.kernel details').open = true")
        field.select_option(str(i))
        assert not page.is_visible(".kernel .refused")
        assert page.locator(".panes .pane").count() == 3
        assert "What became of" in page.inner_text(".detail")


def test_ttgir(page):
    """Layouts with names of the module."""
    page.click("#tab-kernel")
    page.evaluate("document.querySelector('.kernel details').open = true")
    page.fill("#ttir", corpus("transpose_float16.ttgir"))
    page.click(".kernel button:has-text('Compile')")
    assert not page.is_visible(".kernel .refused")
    places = page.evaluate("lilac.kernel.tile.filter(({ raw }) => raw.includes('ttg.convert_layout')).map(({ place }) => place)")
    page.evaluate("(place) => lilac.kernel.select(place)", places[0])
    assert "Conversion" in page.inner_text(".detail")


def test_file(page, tmp_path):
    page.click("#tab-kernel")
    path = tmp_path / "named.ttir"
    path.write_text(corpus("gather_64x32_axis1.ttir"), encoding="utf-8")
    page.evaluate("document.querySelector('.kernel details').open = true")
    page.set_input_files("#ttir-file", str(path))
    page.wait_for_function("lilac.kernel.data.name === 'named.ttir'")
    assert page.inner_text(".pane h3 >> nth=0").startswith("Source")
