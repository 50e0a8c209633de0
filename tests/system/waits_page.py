# SPDX-License-Identifier: GPL-2.0-or-later
"""waits_page.py PAGES PICTURES PROFILE - pages of `joule waits` in Chromium.

PAGES has small.html, hostile.html, ... as tests/unit/makepage makes them.  What the
page shows is compared with what is computed here of its data.  Prints "ok - NAME" or
"not ok - NAME" for each test; screenshots go to PICTURES.
"""
import base64
import json
import os
import re
import struct
import sys
import time

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGES, PICTURES, PROFILE = sys.argv[1:]
LOAD_S, CLICK_MS = 5, 150

# Before the page's own script: what went wrong, and what moved.
WATCH = """
window.wrong = [];
addEventListener("error", event => wrong.push(String(event.message)));
addEventListener("securitypolicyviolation",
                 event => wrong.push(event.violatedDirective + " " + event.blockedURI));
window.moved = 0;
new PerformanceObserver(list => list.getEntries().forEach(entry => {
    if (!entry.hadRecentInput)
        moved += entry.value;
})).observe({type: "layout-shift", buffered: true});
"""

LINES = """
return [...document.querySelectorAll("#" + arguments[0] + " .line")].map(row => ({
    index: row.index,
    name: row.querySelector(".name").textContent,
    shown: row.querySelector(".number").textContent,
    unit: row.querySelector(".unit").textContent,
    open: row.getAttribute("aria-expanded") === "true",
    selected: row.getAttribute("aria-selected") === "true",
    level: Number(row.getAttribute("aria-level")),
    tabIndex: row.tabIndex,
    box: Number(row.querySelector(".box").dataset.level),
}))
"""

PREFIX = {"": 1, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "\u00b5": 1e-6, "n": 1e-9}


def check(name, good, remark=""):
    print(("ok - " if good else "not ok - ") + name, flush=True)
    if not good and remark != "":
        print("# %s" % (remark,), flush=True)


def start():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--disable-gpu", "--hide-scrollbars",
                     "--force-device-scale-factor=1", "--user-data-dir=" + PROFILE):
        options.add_argument(argument)
    # Chromium has no sandbox as root.
    if os.getuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService("/usr/bin/chromedriver") \
        if hasattr(webdriver, "ChromeService") \
        else webdriver.chrome.service.Service("/usr/bin/chromedriver")
    started = webdriver.Chrome(options=options, service=service)
    started.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    return started


def script(text, *arguments):
    return browser.execute_script(text, *arguments)


def resize(width, height=900, ratio=1, scheme="light"):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": ratio, "mobile": False})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})


def picture(name):
    height = script("return document.documentElement.scrollHeight")
    size = script("return [innerWidth, innerHeight, devicePixelRatio]")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": size[0], "height": height, "deviceScaleFactor": size[2],
        "mobile": False})
    frames()
    browser.save_screenshot(os.path.join(PICTURES, "waits-page-%s.png" % name))


def frames():
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


class Page:
    """A page that is open, and its data."""

    def __init__(self, name, fragment=""):
        self.name = name
        path = os.path.join(PAGES, name + ".html")
        browser.get("about:blank")
        begin = time.monotonic()
        browser.get("file://" + path + fragment)
        frames()
        self.load_s = time.monotonic() - begin
        text = open(path, encoding="utf-8").read()
        data = re.search('id="data">(.*?)</script>', text, re.S).group(1)
        self.data = json.loads(data)
        self.metrics, self.paths = self.data["metrics"], self.data["paths"]
        self.processes, self.nodes = self.data["processes"], self.data["nodes"]
        self.values = {}
        for run in self.data["values"]:
            metric, path, first, values = run.split(" ")
            raw = base64.b64decode(values)
            row = self.values.setdefault((int(metric), int(path)),
                                         [0.0] * len(self.processes))
            row[int(first):int(first) + len(raw) // 4] = struct.unpack(
                "<%df" % (len(raw) // 4), raw)

    def lines(self, pane):
        return script(LINES, pane + "-pane")

    def line(self, pane, name):
        for row in browser.find_elements(By.CSS_SELECTOR, "#%s-pane .line" % pane):
            if row.find_element(By.CLASS_NAME, "name").text == name:
                return row
        raise LookupError(name)

    def click(self, pane, name):
        self.line(pane, name).find_element(By.CLASS_NAME, "name").click()

    def twist(self, pane, name):
        self.line(pane, name).find_element(By.CLASS_NAME, "twisty").click()

    def choose(self, name, value):
        script("document.querySelector(`input[name=${arguments[0]}][value=${arguments[1]}]`)"
               ".click()", name, value)

    def below(self, items, index):
        found = [index]
        for i in range(index + 1, len(items)):
            if items[i]["parent"] in found:
                found.append(i)
        return found

    def counted(self, items, line, mode):
        inclusive = mode == "inclusive" or mode == "cube" and not line["open"]
        return self.below(items, line["index"]) if inclusive else [line["index"]]

    def value(self, metrics, paths, processes):
        found = [self.values[m, p][i] for m in metrics for p in paths
                 if (m, p) in self.values for i in processes]
        return (sum if self.metrics[metrics[0]]["is_sum"] else max)(found or [0.0])

    def root(self, metric):
        while self.metrics[metric]["parent"] >= 0:
            metric = self.metrics[metric]["parent"]
        return metric

    def differs(self, mode="cube", scale="absolute"):
        """The first line that shows something else than it should, or ''."""
        everything = range(len(self.paths)), range(len(self.processes))
        panes = {pane: self.lines(pane) for pane in ("metric", "path", "process")}
        metric = next(line for line in panes["metric"] if line["selected"])
        path = next(line for line in panes["path"] if line["selected"])
        metrics = self.counted(self.metrics, metric, mode)
        paths = self.counted(self.paths, path, mode)
        unit = self.metrics[metric["index"]]["unit"]
        root = self.value(self.below(self.metrics, self.root(metric["index"])), *everything)
        for line in panes["metric"]:
            index = line["index"]
            whole = self.value(self.below(self.metrics, self.root(index)), *everything)
            value = self.value(self.counted(self.metrics, line, mode), *everything)
            if not same(line, value, self.metrics[index]["unit"], scale, whole):
                return line, value
        whole = root if scale == "root" else self.value(metrics, *everything)
        for line in panes["path"]:
            value = self.value(metrics, self.counted(self.paths, line, mode), everything[1])
            if not same(line, value, unit, scale, whole):
                return line, value
        whole = root if scale == "root" else self.value(metrics, paths, everything[1])
        for line in panes["process"]:
            at = line["index"] - len(self.nodes)
            of = [at] if at >= 0 else [i for i in everything[1]
                                       if self.processes[i]["node"] == line["index"]]
            value = self.value(metrics, paths, of)
            if not same(line, value, unit, scale, whole):
                return line, value
        return ""

    def selected(self, pane):
        return [line["name"] for line in self.lines(pane) if line["selected"]]

    def is_right(self, what, mode="cube", scale="absolute"):
        differs = self.differs(mode, scale)
        check("%s: %s" % (self.name, what), differs == "", differs)

    def is_quiet(self):
        check(self.name + ": nothing went wrong", script("return wrong") == [],
              script("return wrong"))
        check(self.name + ": the console has no line",
              (log := browser.get_log("browser")) == [], log)
        asked = script("return performance.getEntriesByType('resource').map(e => e.name)")
        check(self.name + ": nothing was asked for", asked == [], asked)
        check(self.name + ": nothing moved by itself", script("return moved") < 0.01,
              script("return moved"))

    def is_wide_enough(self, what):
        check("%s: all fits %s" % (self.name, what), script(
            "return document.documentElement.scrollWidth <= innerWidth"))


def same(line, value, unit, scale, whole):
    """Whether three digits of it are shown."""
    shown = line["shown"].replace(",", "")
    if scale != "absolute":
        value, unit = 100 * value / whole if whole else 0, "%"
        if shown == "< 0.01":
            return value < 0.0101
        return line["unit"] == "%" and abs(float(shown) - value) <= 0.006 * value + 1e-9 + 0.0051
    if line["unit"] == "h" and unit == "s":
        factor = 3600
    elif unit in ("s", "J", "W"):
        if not line["unit"].endswith(unit):
            return False
        factor = PREFIX[line["unit"][:-len(unit)]]
    else:
        factor = 1
    return abs(float(shown) * factor - value) <= 0.006 * abs(value) + 1e-12


def press(*keys):
    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def small():
    resize(1280)
    page = Page("small")
    check("small: the title", browser.title == "Job 482113: lagrange")
    check("small: opens at the metric that was asked for", page.selected("metric") == ["MPI"])
    check("small: opens at the worst path", page.selected("path") == ["MPI_Recv"])
    page.is_right("first sight")
    page.twist("metric", "MPI")
    page.is_right("an open metric counts itself")
    page.click("metric", "Late sender")
    page.is_right("a metric chosen by mouse")
    page.twist("path", "solve")
    check("small: a closed line takes the selection from below", page.selected("path") == ["solve"])
    page.is_right("a closed path counts all below it")
    # Four ranks of 2.9 s, of which samplepage.c makes 0.85, some more and some less.
    check("small: the sample's own sum",
          abs(page.value([2], range(8), range(4)) - 2.9 * 4 * 0.85) < 0.5)

    page.click("path", "main")
    press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    check("small: the arrow keys go to visible lines",
          page.selected("path") == ["MPI_Bcast"], page.selected("path"))
    press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    check("small: left goes to the parent, and closes it",
          page.selected("path") == ["setup"] and
          "MPI_Bcast" not in [line["name"] for line in page.lines("path")])
    page.is_right("a path chosen by keyboard")
    press(Keys.ARROW_RIGHT, Keys.END)
    check("small: end", page.selected("path") == ["MPI_Barrier"])
    press(Keys.HOME, "s", "s")
    check("small: letters", page.selected("path") == ["solve"], page.selected("path"))
    press("*")
    page.is_right("all siblings opened")
    check("small: one line of each tree is reached by Tab", all(
        sum(line["tabIndex"] == 0 for line in page.lines(pane)) == 1
        for pane in ("metric", "path", "process")))

    script("document.querySelector('#path-pane .tools button').click()")
    for metric in ("Time", "MPI", "Energy", "Longest wait"):
        page.click("metric", metric)
        for mode in ("cube", "inclusive", "exclusive"):
            page.choose("mode", mode)
            for scale in ("absolute", "root", "left"):
                page.choose("scale", scale)
                page.is_right("%s, %s, %s" % (metric, mode, scale), mode, scale)
    page.choose("scale", "left")
    page.choose("mode", "exclusive")
    page.click("metric", "MPI")
    script("document.querySelector('#path-pane .tools button').click()")
    whole = sum(float(line["shown"]) if line["shown"] != "< 0.01" else 0
                for line in page.lines("path"))
    page.choose("mode", "inclusive")
    page.choose("scale", "absolute")
    page.choose("mode", "cube")
    check("small: exclusive shares are 100 % together",
          abs(whole - 100) < 0.1 or whole == 0, whole)

    page.click("metric", "MPI")
    search = browser.find_element(By.ID, "search")
    script("document.querySelectorAll('#path-pane .tools button')[1].click()")
    search.send_keys("mpi_")
    check("small: the search finds and opens",
          page.selected("path") == ["MPI_Bcast"] and
          browser.find_element(By.ID, "found").text == "1 of 4",
          (page.selected("path"), browser.find_element(By.ID, "found").text))
    search.send_keys(Keys.ENTER)
    check("small: the next match", page.selected("path") == ["MPI_Recv"])
    check("small: the match is marked", script(
        "return document.querySelector('[aria-selected=true] mark')?.textContent") == "MPI_")
    search.send_keys("zzz")
    check("small: none", browser.find_element(By.ID, "found").text == "none")
    search.clear()

    column = "return [...document.querySelectorAll('#top tbody tr')].map(" \
        "row => row.cells[arguments[0]].querySelector('.link')?.textContent ?? " \
        "row.cells[arguments[0]].textContent)"
    first = script(column, 0)
    browser.find_element(By.CSS_SELECTOR, "th[data-key=total] button").click()
    check("small: the table turns round", script(column, 0) == first[::-1] and len(first) > 2,
          (first, script(column, 0)))
    browser.find_element(By.CSS_SELECTOR, "th[data-key=name] button").click()
    check("small: the table by name", script(column, 0) == sorted(first), script(column, 0))
    check("small: sorted by what it says", script(
        "return document.querySelector('th[aria-sort]').textContent") == "Call path")
    browser.find_element(By.CSS_SELECTOR, "#top .link").click()
    check("small: the table selects path and process",
          page.selected("path") == [sorted(first)[0]] and page.selected("process") == ["rank 3"],
          (page.selected("path"), page.selected("process")))
    page.is_right("chosen in the table")

    bar = browser.find_element(By.CLASS_NAME, "bar")
    width = browser.find_element(By.ID, "metric-pane").size["width"]
    bar.send_keys(Keys.ARROW_RIGHT)
    check("small: the separator obeys the keyboard",
          browser.find_element(By.ID, "metric-pane").size["width"] > width + 10)
    ActionChains(browser).drag_and_drop_by_offset(bar, -60, 0).perform()
    check("small: the separator obeys the mouse",
          browser.find_element(By.ID, "metric-pane").size["width"] < width)

    script("document.querySelector('#power-chart canvas').focus()")
    press(Keys.HOME, Keys.ARROW_RIGHT)
    said = browser.find_element(By.ID, "power-text").text
    check("small: the power is told", re.fullmatch(
        r"At 124\u202fms: node01 2\d\d\u202fW, node02 2\d\d\u202fW", said), said)
    press(*[Keys.PAGE_UP] * 4 + [Keys.ARROW_RIGHT] * 2)
    said = browser.find_element(By.ID, "power-text").text
    check("small: a gap is not known", "node02 not known" in said, said)
    ink = "const c = document.querySelector('#power-chart canvas');" \
        "return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    ink = script(ink)
    check("small: the curves are drawn", ink > 30, ink)
    page.is_quiet()
    check("small: the address has the metric", browser.current_url.endswith("#metric=mpi"))
    page = Page("small", "#metric=waiting")
    check("small: the address says the metric", page.selected("metric") == ["Energy while waiting"])
    page.is_right("of the address")


def numbers():
    Page("small")
    for value, unit, shown in (
            (0, "s", "0 s"), (1.2345e-7, "s", "123 ns"), (0.00099951, "s", "1.00 ms"),
            (0.0123, "s", "12.3 ms"), (0.1, "s", "100 ms"), (99.96, "s", "100 s"),
            (3594, "s", "3594 s"), (3600, "s", "1.00 h"), (1.8e7, "s", "5000 h"),
            (1234, "J", "1.23 kJ"), (999.6, "J", "1.00 kJ"), (5e12, "J", "5000 GJ"),
            (-0.002, "J", "-2.00 mJ"), (1234567, "", "1,234,567"), (12.3456, "K", "12.35 K")):
        found = script("return text(quantity(arguments[0], arguments[1]))", value, unit)
        check("numbers: %s" % shown, found.replace("\u202f", " ") == shown, found)
    for value, shown in ((0, "0 %"), (5e-5, "< 0.01 %"), (0.5, "0.50 %"), (12.34, "12.3 %"),
                         (99.96, "100 %")):
        found = script("return text(percent(arguments[0], 100))", value)
        check("numbers: %s" % shown, found.replace("\u202f", " ") == shown, found)


def keyboard():
    """What Tab comes to, and whether it is seen there."""
    resize(1280)
    Page("large")
    reached, unseen = [], []
    for _ in range(60):
        press(Keys.TAB)
        what, seen = script("""
            const at = document.activeElement, style = getComputedStyle(at);
            const on = at.type === "radio" ? getComputedStyle(at.nextElementSibling) : style;
            return [at.getAttribute("role") ?? at.type ?? at.tagName,
                    on.outlineStyle !== "none"]""")
        if what == "BODY":
            break
        reached.append(what)
        if not seen:
            unseen.append(what)
    for what, count in (("treeitem", 3), ("separator", 2), ("slider", 2), ("search", 1),
                        ("radio", 2), ("checkbox", 8), ("button", 10)):
        check("large: Tab comes to each %s" % what, reached.count(what) >= count, reached)
    check("large: the focus is seen everywhere", unseen == [], unseen)


def closed():
    """Nothing that the page might be brought to do leaves it."""
    Page("small")
    script("""
        document.body.append(Object.assign(document.createElement("script"),
                                           {textContent: "document.title = 'broken'"}));
        new Image().src = "http://127.0.0.1:9/image";
        fetch("http://127.0.0.1:9/fetch").catch(() => 0);
        const link = document.createElement("a");
        link.setAttribute("style", "color: red");""")
    time.sleep(0.3)
    wrong = " ".join(script("return wrong"))
    check("small: the policy forbids other scripts, images, requests and styles",
          browser.title != "broken" and
          all(what in wrong for what in ("script-src", "img-src", "connect-src")), wrong)
    browser.get_log("browser")


def hostile():
    resize(1280)
    page = Page("hostile")
    for pane, items in (("metric", page.metrics), ("path", page.paths)):
        script("document.querySelector(`#${arguments[0]}-pane .tools button`).click()", pane)
        lines = page.lines(pane)
        check("hostile: names of the %s tree are text" % pane,
              len(lines) == len(items) and
              all(line["name"] == items[line["index"]]["name"] for line in lines), lines)
    page.is_right("numbers")
    check("hostile: the title", browser.find_element(By.ID, "title").text ==
          page.data["title"] == "</script><script>document.title = 'broken'</script>")
    check("hostile: no element of theirs", script("""return document.querySelectorAll(
        "main img, main script, main svg:not(#power-nodes svg), h1 *").length""") == 0)
    script("document.querySelectorAll('#metric-pane .line').forEach(row => row.click())")
    page.is_wide_enough("1,280 pixels")
    page.is_quiet()
    picture("hostile")


def states():
    resize(1280)
    page = Page("empty")
    notice = browser.find_element(By.ID, "notice").text
    check("empty: says so", notice == "Nothing waited: no metric has a value.", notice)
    check("empty: no trees", not browser.find_element(By.ID, "panes").is_displayed())
    page.is_quiet()
    page = Page("calm")
    check("calm: says so", browser.find_element(By.ID, "notice").text.startswith("Nothing waited"))
    page.is_right("zeros")
    page.choose("scale", "root")
    page.is_right("zeros in percent", "cube", "root")
    check("calm: no table", browser.find_element(By.ID, "no-top").is_displayed())
    page.is_quiet()
    page = Page("one")
    check("one: says so", "one process" in browser.find_element(By.ID, "notice").text)
    check("one: why there is no power", browser.find_element(By.ID, "no-power").text ==
          page.data["no_power"])
    page.is_right("numbers")
    page.is_quiet()


def click_ms(action):
    """From a click to the frame that shows what came of it, the median of seven."""
    took = browser.execute_async_script("""
        const done = arguments[1], act = new Function("n", arguments[0]), took = [];
        const once = n => {
            if (n === 7)
                return done(took);
            requestAnimationFrame(() => {
                const begin = performance.now();
                act(n);
                requestAnimationFrame(() => setTimeout(() => {
                    took.push(performance.now() - begin);
                    once(n + 1);
                }));
            });
        };
        once(0);""", action)
    return sorted(took)[3]


def every_rank(page):
    """All nodes are open: a line for each rank, wherever the tree stands."""
    tree = "const tree = document.querySelector('#process-pane .tree');"
    height = script(tree + "return tree.scrollHeight")
    check("large: room for a line of each rank", abs(height / 28 - 4096 - 64) < 1, height)
    script(tree + "tree.scrollTop = 28 * 2000")
    frames()
    at = script(tree + """const box = tree.getBoundingClientRect();
        return document.elementFromPoint(box.x + 60, box.y + 20).closest(".line")?.index""")
    # Node n stands before its 64 ranks: line 2000 is that of rank 1969.
    check("large: scrolled to a rank", at == 64 + 1969, at)
    page.is_right("scrolled to a rank")
    script(tree + "document.querySelectorAll('#process-pane .line')[90].click()")
    press(Keys.END)
    check("large: the end", page.selected("process") == ["rank 4095"], page.selected("process"))
    script(tree + "tree.scrollTop = 0")
    frames()
    press(Keys.ARROW_UP)
    check("large: back to what is selected", page.selected("process") == ["rank 4094"],
          page.selected("process"))
    check("large: the focus is there", script("return document.activeElement.index") == 64 + 4094)


def large():
    resize(1280)
    page = Page("large")
    loaded = script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    print("# large: loaded after %.0f ms, seen after %.0f ms" % (loaded, page.load_s * 1000))
    check("large: opens in %d s" % LOAD_S, page.load_s < LOAD_S, page.load_s)
    page.is_right("first sight")
    script("document.querySelector('#path-pane .tools button').click()")
    pick = "const rows = document.querySelectorAll('#%s-pane .line'); " \
        "rows[n %% 2 ? 0 : rows.length - 1].click()"
    twist = "document.querySelector('#%s-pane .tools').children[n %% 2].click()"
    for what, action in (
            ("a metric", pick % "metric"), ("a call path", pick % "path"),
            ("a node", pick % "process"), ("all call paths", twist % "path"),
            ("inclusive", "document.getElementsByName('mode')[n % 3].click()"),
            ("percent", "document.getElementsByName('scale')[n % 3].click()"),
            ("all ranks", twist % "process"),
            ("a path beside 4,096 lines", pick % "path"),
            ("the table by its worst process",
             "document.querySelector('th[data-key=worst] button').click()")):
        took = click_ms(action)
        print("# large: %s: %.0f ms" % (what, took))
        check("large: %s in %d ms" % (what, CLICK_MS), took < CLICK_MS, took)
        if what == "all ranks":
            every_rank(page)
    page = Page("large")
    heat = browser.find_element(By.CSS_SELECTOR, "#heat canvas")
    size = heat.size
    ActionChains(browser).move_to_element_with_offset(
        heat, size["width"] // 2 - 2, size["height"] // 2 - 2).click().perform()
    check("large: the last cell is the last rank", page.selected("process") == ["rank 4095"],
          page.selected("process"))
    said = browser.find_element(By.ID, "heat-text").text
    check("large: the cell is told", said.startswith("rank 4095 on node64: "), said)
    script("document.querySelector('#heat canvas').focus()")
    press(Keys.ARROW_LEFT)
    check("large: cells by keyboard", page.selected("process") == ["rank 4094"],
          page.selected("process"))
    page.is_right("with a rank selected")
    boxes = browser.find_elements(By.CSS_SELECTOR, "#power-nodes input")
    check("large: eight curves at most",
          [box.is_selected() for box in boxes] == [True] * 8 + [False] * 56 and
          not boxes[8].is_enabled())
    boxes[0].click()
    boxes[63].click()
    check("large: another node's curve", boxes[63].is_selected() and not boxes[0].is_enabled())
    page.is_quiet()


def views():
    for name in ("small", "large"):
        for what, width, ratio, scheme in (("light", 1280, 1, "light"), ("dark", 1280, 1, "dark"),
                                           ("narrow", 480, 1, "light"),
                                           ("at 200 %", 640, 2, "light")):
            resize(width, 900, ratio, scheme)
            page = Page(name)
            page.is_wide_enough(what)
            if what != "at 200 %":
                picture(name + "-" + what)
    resize(1280)
    Page("small")
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    raw = base64.b64decode(pdf["data"])
    with open(os.path.join(PICTURES, "waits-page-small.pdf"), "wb") as file:
        file.write(raw)
    check("small: printed", raw.startswith(b"%PDF"))


browser = start()
try:
    for test in (small, numbers, keyboard, closed, hostile, states, large, views):
        test()
finally:
    browser.quit()
print("# end of the browser's tests")
