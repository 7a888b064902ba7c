"""The page of `eray report` as people use it: in a browser, with mouse, keyboard and screen reader."""

import re
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest
from pictures import BEGAN, picture

from eray._core.phase import Phase
from eray._core.picture import Ending, Picture
from eray._core.topology import Restart
from eray._show.report import FILES, render

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>document.title='x'</script><img src=x onerror=\"document.title='x'\">"
TEXTS = {name: resources.files("eray._show").joinpath(name).read_text("utf-8") for name in FILES}

# How many texts are visible, and those with too little contrast to a colour behind them: that of their bar in the
# chart, else of the nearest element that has one (a pattern has several).
CONTRAST = """() => {
  const parse = (text) => (text.match(/rgba?\\([^)]*\\)/g) || []).map((each) => each.match(/[\\d.]+/g).map(Number));
  const linear = (c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((c) => linear(c / 255))
    .reduce((sum, c, at) => sum + c * [.2126, .7152, .0722][at], 0);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const behind = (element) => {
    if (element instanceof SVGTextElement && element.previousElementSibling instanceof SVGRectElement)
      return parse(getComputedStyle(element.previousElementSibling).fill);
    for (let each = element; each; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (style.backgroundImage.includes("gradient")) return parse(style.backgroundImage);
      const colour = parse(style.backgroundColor)[0];
      if (colour && colour[3] !== 0) return [colour];
    }
    return [[255, 255, 255]];
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest("script, title, .vh")) continue;
    const style = getComputedStyle(element);
    const colour = parse(element instanceof SVGElement ? style.fill : style.color)[0];
    count++;
    for (const ground of behind(element)) {
      const value = ratio(colour, ground);
      if (value < 4.5) found.push([node.data.trim().slice(0, 30), element.className, value]);
    }
  }
  return [count, found];
}"""

LOOKS = """e => {
  const style = getComputedStyle(e);
  return [style.backgroundColor, style.backgroundImage, style.outlineStyle, style.boxShadow].join();
}"""


def broken() -> Picture:
    """Return an ended job in which nearly everything went wrong: a death, a lost node, a shared and an idle device."""
    cause = "process 5 on node0003 (pid 1005) was killed (SIGKILL, 137): out of memory"
    restart = Restart(generation=1, process_count=8, cause="process 2 ended with code 7", restarted_at=BEGAN + 22)
    states = ["running", "left", "running", "running", "joined", "dead", "running", "running"]
    ending = Ending(at=BEGAN + 60, code=137, cause=cause)
    phases = {"phase": "ended", "world_phase": Phase.FAILED}
    base = picture(node_count=5, states=states, failure=cause, restarts=[restart], ending=ending, awaited=[4], **phases)
    assert base.topology is not None
    world = base.topology.worlds[0]
    processes = list(world.processes)
    processes[3] = processes[3].model_copy(update={"local_device_ids": (1, 2)})
    processes[7] = processes[7].model_copy(update={"local_device_ids": None})
    nodes = list(base.nodes)
    nodes[2] = nodes[2].model_copy(update={"state": "lost", "reason": "its node does not answer"})
    worlds = (world.model_copy(update={"processes": tuple(processes)}),)
    topology = base.topology.model_copy(update={"worlds": worlds})
    return base.model_copy(update={"nodes": tuple(nodes), "topology": topology})


def many() -> Picture:
    """Return 1,000 nodes with 8 processes each, one of them dead."""
    states = ["running"] * 8000
    states[4001] = "dead"
    return picture(node_count=1000, per_node=8, devices=8, states=states)


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    """Return the pages by name."""
    directory = tmp_path_factory.mktemp("pages")
    hostile = picture(failure=HOSTILE, world_phase=Phase.FAILED, environment={HOSTILE: HOSTILE})
    hostile = Picture.model_validate_json(hostile.model_dump_json().replace("node0001", HOSTILE.replace('"', '\\"')))
    made = {"well": picture(), "broken": broken(), "many": many(), "hostile": hostile}
    for name, seen in made.items():
        (directory / f"{name}.html").write_text(render(seen, TEXTS), "utf-8")
    return {name: directory / f"{name}.html" for name in made}


@pytest.fixture
def visit(browser, pages) -> Iterator[Callable]:
    """Return a function that opens a page; afterwards nothing may have been said, raised or requested by any."""
    opened, said = [], []

    def open_page(name: str, *, width: int = 1200, height: int = 900, scheme: str = "light", **more):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        address = pages[name].as_uri()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.append(request.url) if request.url != address else None)
        page.goto(address)
        return page

    yield open_page
    for context in opened:
        context.close()
    assert said == []


def rows_shown(page) -> list[str]:
    """Return the names of the nodes that are shown."""
    return page.locator("#grid tbody tr[data-i]:visible .n").all_inner_texts()


def cell(page, node: int, device: int):
    """Return the cell of a device."""
    return page.locator(f'#grid tr[data-i="{node}"] td').nth(device + 1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_shows_at_a_glance_what_is_wrong(visit, artefacts, scheme) -> None:
    page = visit("broken", scheme=scheme)
    assert page.locator("h1").inner_text() == "job 7 on rig ended with code 137"
    assert "out of memory" in page.locator("#problems li").first.inner_text()
    assert page.locator("#problems").bounding_box()["y"] < 300
    marks = {(1, 1): "2+32×", (1, 3): "○", (2, 0): "4…", (2, 2): "5✕", (0, 2): "1✓", (3, 2): "7?", (0, 0): "0"}
    for (node, device), words in marks.items():
        held = cell(page, node, device).evaluate(
            "e => [...e.childNodes].filter(n => n.className !== 'vh').map(n => n.textContent).join('')"
        )
        assert held == words
    looks = {where: cell(page, *where).evaluate(LOOKS) for where in marks}
    assert len(set(looks.values())) == len(marks)
    count, poor = page.evaluate(CONTRAST)
    assert count > 200
    assert poor == []
    page.screenshot(path=artefacts / f"report-broken-{scheme}.png", full_page=True)


def test_theme_follows_the_system_until_the_button_says_otherwise(visit) -> None:
    page = visit("well", scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark, dark_picture = page.evaluate(ground), page.screenshot()
    page.get_by_role("button", name="Light colours").click()
    light, light_picture = page.evaluate(ground), page.screenshot()
    assert dark != light
    assert dark_picture != light_picture
    assert page.evaluate(CONTRAST)[1] == []
    page.get_by_role("button", name="Dark colours").press("Enter")
    assert page.evaluate(ground) == dark
    assert visit("well", scheme="light").evaluate(ground) == light


def test_nodes_are_filtered_by_state_and_name(visit) -> None:
    page = visit("broken")
    status = page.locator("#shown")
    assert status.inner_text() == "5 of 5 nodes"
    for name, nodes in {
        "held by several": ["node0002"],
        "held by nobody": ["node0002"],
        "failed or died": ["node0003"],
        "the node is lost": ["node0003"],
        "did not report yet": ["node0005"],
        "trouble": ["node0002", "node0003", "node0005"],
        "JAX decides": ["node0004"],
    }.items():
        page.get_by_role("radio", name=re.compile(name)).check()
        assert rows_shown(page) == nodes, name
        assert status.inner_text() == f"{len(nodes)} of 5 nodes"
    page.get_by_role("radio", name=re.compile("^.?all")).check()
    page.get_by_role("searchbox", name="Node").first.fill("0004")
    assert rows_shown(page) == ["node0004"]


def test_page_is_used_by_the_keyboard_alone(visit) -> None:
    page = visit("broken")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("node0002")
    page.keyboard.press("Tab")  # the states: one stop, the arrows choose
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.value") == "trouble"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "node0002"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    details = page.locator("tr.detail")
    assert page.get_by_role("button", name="node0002").get_attribute("aria-expanded") == "true"
    assert "10.0.0.1" in details.inner_text()
    assert details.get_by_role("table", name="Devices").locator("tbody tr").nth(1).inner_text().split("\t")[4:] == [
        "process 2, process 3",
        "shared",
    ]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "chart-search"
    assert page.locator("#chart-shown").inner_text() == "3 of 15 rows"
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    assert first == "lock: node0002, begins +0.10 s, lasts 0.10 s"
    assert page.locator("#tip").inner_text() == "raylet: node0002, begins +1.20 s, lasts 1.80 s"
    page.keyboard.press("ArrowDown")
    assert page.locator("#tip").inner_text().startswith("import jax: process 2 on node0002")
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    page.get_by_role("button", name="node0002").press("Space")
    assert details.count() == 0


def test_everything_one_can_use_has_a_name(visit) -> None:
    page = visit("broken")
    page.get_by_role("button", name="node0001").click()
    session = page.context.new_cdp_session(page)
    tree = session.send("Accessibility.getFullAXTree")["nodes"]
    roles: dict[str, list[str]] = {}
    for each in tree:
        if not each.get("ignored"):
            roles.setdefault(each["role"]["value"], []).append(each.get("name", {}).get("value", ""))
    for role in ("button", "link", "radio", "searchbox", "combobox", "table", "navigation", "region", "image", "group"):
        assert roles.get(role), role
        if role != "group":
            assert [name for name in roles[role] if not name.strip()] == [], role
    assert {"main", "banner", "contentinfo"} <= set(roles)
    assert page.locator("html").get_attribute("lang") == "en"
    headers = page.locator("#grid th")
    assert headers.count() == page.locator("#grid th[scope]").count() > 0


def test_page_of_a_thousand_nodes_is_quick_to_use(visit, artefacts) -> None:
    page = visit("many")
    assert page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive") < 8_000
    assert page.locator("#shown").inner_text() == "1,000 of 1,000 nodes"
    assert page.locator("#grid tbody .n").first.inner_text() == "node0501"
    assert page.locator("#grid tr[data-i] .dead").count() == 1
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height < 6_000
    page.get_by_role("searchbox", name="Node").first.fill("node09")
    assert page.locator("#shown").inner_text() == "100 of 1,000 nodes"
    page.get_by_role("combobox", name="Rows").select_option("all")
    assert page.locator("#chart-shown").inner_text() == "300 of 9,000 rows; name a node to see others"
    page.get_by_role("combobox", name="Rows").select_option("chosen")
    labels = page.locator("#gantt svg > text:not(.axis)").evaluate_all("all => all.map(e => e.firstChild.data)")
    assert labels == ["node0001", "process 0", "node1000", "process 7999"]
    page.screenshot(path=artefacts / "report-many.png")


def test_hostile_names_are_text(visit) -> None:
    page = visit("hostile")
    page.locator("#grid tbody button").first.click()
    assert HOSTILE in page.locator("#problems").inner_text()
    assert page.locator("#grid .n").first.inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.title() == "eray: job 7 on rig, up, with errors"


def test_page_fits_a_narrow_screen(visit, artefacts) -> None:
    page = visit("broken", width=400, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert page.locator("#gantt svg").bounding_box()["width"] <= 400
    page.screenshot(path=artefacts / "report-narrow.png", full_page=True)


def test_page_is_read_without_script(visit) -> None:
    page = visit("broken", java_script_enabled=False)
    assert page.locator("noscript p").is_visible()
    assert page.get_by_role("button").count() == 0
    assert page.get_by_role("radio").count() == 0
    assert cell(page, 2, 2).inner_text().startswith("5")
    page.locator("summary").click()
    assert "raylet (1.80 s)" in page.locator("#start table").inner_text()


def test_page_is_printed_whole(visit) -> None:
    page = visit("broken", scheme="dark")
    page.get_by_role("button", name="Light colours").click()
    page.get_by_role("button", name="Dark colours").click()
    page.emulate_media(media="print")
    assert page.locator("#search").is_hidden()
    assert page.locator(".tall").evaluate("e => getComputedStyle(e).maxHeight") == "none"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(CONTRAST)[1] == []
    assert page.pdf()[:4] == b"%PDF"
