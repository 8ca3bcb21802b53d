"""The page as a whole: from disk, without a network, quickly, in themes and on paper, with a keyboard."""

import os

import pytest
from axe_core_python.sync_playwright import Axe
from conftest import PAGE, Opened, explore, lilac

KERNEL = """module {{
  tt.func public @long(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {{
    %r = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32> loc(#loc1)
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>> loc(#loc2)
    %a = tt.addptr %p, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32> loc(#loc2)
    %v0 = tt.load %a : tensor<1024x!tt.ptr<f32>> loc(#loc3)
{body}
    %q = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>> loc(#loc4)
    %b = tt.addptr %q, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32> loc(#loc4)
    tt.store %b, %v{last} : tensor<1024x!tt.ptr<f32>> loc(#loc4)
    tt.return loc(#loc4)
  }} loc(#loc1)
}} loc(#loc1)
{locations}
"""


def long_kernel(lines):
    body = "\n".join(f"    %v{i + 1} = arith.{'mulf' if i % 3 else 'addf'} %v{i}, %v{i // 2} : tensor<1024xf32> loc(#loc{i + 5})"
                     for i in range(lines))
    locations = "\n".join(f'#loc{i} = loc("long.py":{i}:4)' for i in range(1, lines + 5))
    return KERNEL.format(body=body, last=lines, locations=locations)


def test_from_disk(opened):
    assert opened.requests[0] == f"file://{PAGE}"
    assert all(url.startswith(("data:", "blob:")) for url in opened.requests[1:])
    assert os.path.getsize(PAGE) < 4_000_000


def processor_time(browser, path):
    """Seconds of the processor that the page's thread takes until the library is ready, less what it takes to answer
    this test, and the page's own clock, in milliseconds: when it is shown, when it is ready."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"file://{path}")
    page.wait_for_selector("html[data-ready]", timeout=30000)
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    assert page.locator(".pane [data-i]").count() > 3000
    clock = [int(page.evaluate(f"document.documentElement.dataset.{name}")) for name in ("shown", "ready")]
    context.close()
    return metrics["TaskDuration"] - metrics["DevToolsCommandDuration"], clock


def test_colours(browser, tmp_path):
    """Lines are coloured when they come into view, and all of them for paper; their text stays the same."""
    path, out = tmp_path / "long.ttir", str(tmp_path / "long.html")
    path.write_text(long_kernel(400), encoding="utf-8")
    assert lilac("explore", str(path), "-o", out, "--page", PAGE)[0] == 0
    opened = Opened(browser, out, viewport={"width": 1440, "height": 900})
    page = opened.page
    parts = page.locator(".pane").last.locator("section")
    assert parts.count() > 5
    text = parts.last.text_content()
    assert parts.first.locator("u").count() > 0 and parts.last.locator("u").count() == 0
    parts.last.scroll_into_view_if_needed()
    page.wait_for_function("[...document.querySelectorAll('.pane')].pop().querySelector('section:last-child u')")
    assert parts.last.text_content() == text
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('.pane section')].every((part) => part.dataset.coloured)")
    opened.close()


def test_time_to_open(browser, tmp_path):
    """With a kernel of 1,000 lines: less than a second. Other programs run on this machine, so that the time of the
    processor counts and not the clock."""
    path, out = tmp_path / "long.ttir", str(tmp_path / "long.html")
    path.write_text(long_kernel(1000), encoding="utf-8")
    status, _, err = lilac("explore", str(path), "-o", out, "--page", PAGE)
    assert status == 0, err
    seconds, (shown, ready) = min(processor_time(browser, out) for _ in range(3))
    print(f"{seconds:.2f} s of the processor; shown after {shown} ms, ready after {ready} ms")
    assert seconds < 1


VIEWS = {
    "kernel": "document.getElementById('tab-kernel').click()",
    "layouts": "document.querySelector('.workbench [data-value=layouts]').click()",
    "conversion": "document.querySelector('.workbench [data-value=conversion]').click()",
    "tour": "document.querySelector('.workbench [data-value=tour]').click()",
}


@pytest.mark.parametrize("scheme, width", [("light", 1440), ("dark", 480)])
def test_accessible(browser, tmp_path, scheme, width):
    opened = Opened(browser, explore(str(tmp_path), "transpose_float16"), color_scheme=scheme,
                    viewport={"width": width, "height": 900})
    page = opened.page
    for name, action in VIEWS.items():
        if name != "kernel":
            page.click("#tab-workbench")
        page.evaluate(f"() => {{ {action}; }}")
        violations = Axe().run(page)["violations"]
        assert [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in violations] == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name  # no scrolling sideways
    opened.close()


def test_contrast_of_pictures(opened):
    """Texts on coloured cells have a contrast of at least 4.5 in both themes."""
    contrast = """(theme) => {
      document.documentElement.dataset.theme = theme;
      lilac.redraw();
      const context = document.createElement("canvas").getContext("2d");
      const channels = (colour) => {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
      };
      const luminance = (colour) => {
        const [r, g, b] = channels(colour).map((c) => c / 255)
          .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ink = luminance(lilac.model.ink("ink"));
      const ratios = Array.from({ length: 32 }, (_, i) => luminance(lilac.model.hue(i, 32)))
        .map((fill) => (Math.max(fill, ink) + 0.05) / (Math.min(fill, ink) + 0.05));
      delete document.documentElement.dataset.theme;
      lilac.redraw();
      return Math.min(...ratios);
    }"""
    for theme in ("light", "dark"):
        assert opened.page.evaluate(contrast, theme) >= 4.5, theme


def test_theme_and_keys(page):
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") is None
    page.keyboard.press("2")
    assert page.get_attribute("#tab-workbench", "aria-selected") == "true"
    page.keyboard.press("1")
    assert page.get_attribute("#tab-kernel", "aria-selected") == "true"
    page.focus("#tab-kernel")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-workbench"
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")


def test_focus_order(page):
    """Tab reaches the link to the content, the tabs, the buttons and then the fields, in this order."""
    page.click("#tab-workbench")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("scrollTo(0, 0)")
    seen = []
    page.focus(".skip")
    for _ in range(6):
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        page.keyboard.press("Tab")
    assert seen == ["Skip to the content", "tab-workbench", "Theme: system", "Keys", "layout-a", "layout-b"]


def test_print(opened, tmp_path):
    """On paper: light colours, no controls."""
    page = opened.page
    page.click("#tab-workbench")
    page.emulate_media(media="print")
    assert not page.is_visible("#tabs") and not page.is_visible(".controls.bar")
    page.emulate_media(media="screen")
    size = len(page.pdf(path=str(tmp_path / "page.pdf")))
    assert size > 20_000
    assert page.evaluate("document.documentElement.dataset.theme") is None  # as before
