// SPDX-License-Identifier: GPL-2.0-or-later
//
// The three trees and what hangs on them.  What is selected in a tree says what the
// values of the next one are of: metric, then call path, then process.
//
// Names come from programs that nobody has checked: they are set as text, never as
// markup.

"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const {metrics, paths, nodes, processes} = data;

const state = {
    scale: "absolute", // or "root", "left": percent of what
    mode: "cube",      // or "inclusive", "exclusive": what a line counts
    sort: {key: "total", down: true},
};

function byId(id) {
    return document.getElementById(id);
}

function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
}

// ---- values ----

// Floats in base64, least byte first, as all browsers' machines have them.
function floats(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++)
        bytes[i] = text.charCodeAt(i);
    return new Float32Array(bytes.buffer);
}

// [metric][path]: the values of all processes; undefined: all are 0.
const values = metrics.map(() => new Array(paths.length));
for (const text of data.values) {
    const [metric, path, first, base64] = text.split(" ");
    values[metric][path] ??= new Float32Array(processes.length);
    values[metric][path].set(floats(base64), Number(first));
}

function add(isSum, a, b) {
    return isSum ? a + b : Math.max(a, b);
}

// [metric][path]: of all processes together.
const totals = metrics.map((metric, m) => Float64Array.from(paths, (path, p) =>
    values[m][p] ? values[m][p].reduce((a, b) => add(metric.is_sum, a, b), 0) : 0));

// The values of each process for these metrics and these paths.
function valuesOfProcesses(ofMetrics, ofPaths) {
    const sum = new Float64Array(processes.length);
    for (const m of ofMetrics)
        for (const p of ofPaths) {
            const row = values[m][p];
            if (row && metrics[m].is_sum)
                for (let i = 0; i < row.length; i++)
                    sum[i] += row[i];
            else if (row)
                for (let i = 0; i < row.length; i++)
                    sum[i] = Math.max(sum[i], row[i]);
        }
    return sum;
}

// What each item has together with those below it; parents stand before children.
function withThoseBelow(own, items, isSum) {
    const sum = Float64Array.from(own);
    for (let i = items.length - 1; i >= 0; i--)
        if (items[i].parent >= 0)
            sum[items[i].parent] = add(isSum(i), sum[items[i].parent], sum[i]);
    return sum;
}

// ---- numbers for people ----

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "\u00b5"],
                  [1e-9, "n"]];

function threeDigits(value) {
    return Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toPrecision(3);
}

// Three digits that count, and the unit.
function quantity(value, unit) {
    if (unit === "")
        return [value.toLocaleString("en", {maximumFractionDigits: 0}), ""];
    if (!["s", "J", "W"].includes(unit))
        return [String(Number(value.toPrecision(4))), unit];
    const rounded = Math.abs(Number(value.toPrecision(3)));
    if (rounded === 0)
        return ["0", unit];
    if (unit === "s" && rounded >= 3600)
        return [threeDigits(value / 3600), "h"];
    const [factor, prefix] = PREFIXES.find(
        ([least]) => rounded >= least && !(unit === "s" && least > 1)) ?? PREFIXES.at(-1);
    return [threeDigits(value / factor), prefix + unit];
}

function percent(value, whole) {
    const share = whole > 0 ? 100 * value / whole : 0;
    if (share === 0 || share >= 99.95)
        return [share.toFixed(0), "%"];
    if (share > 0 && share < 0.01)
        return ["< 0.01", "%"];
    return [share < 1 ? share.toFixed(2) : share.toPrecision(3), "%"];
}

function text([number, unit]) {
    return unit ? `${number}\u202f${unit}` : number;
}

// ---- colours: eight steps of one hue, from the style ----

const STEPS = 8;

function level(share) {
    return share > 0 ? Math.min(STEPS, 1 + Math.floor(share * STEPS)) : 0;
}

function styleValue(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// ---- a tree ----

// A line of text and numbers, made when it is first seen.
class Line {
    constructor(tree, index) {
        const item = tree.items[index];
        this.name = element("span", {className: "name", title: item.name});
        this.box = element("span", {className: "box"});
        this.number = new Text();
        this.unit = new Text();
        this.row = element("div", {className: "line"},
                           element("span", {className: "twisty"}), this.box, this.name,
                           element("span", {className: "number"}, this.number), " ",
                           element("span", {className: "unit"}, this.unit));
        this.row.index = index;
        this.row.style.setProperty("--depth", item.depth);
        this.row.setAttribute("role", "treeitem");
        this.row.setAttribute("aria-level", item.depth + 1);
        const siblings = item.parent < 0 ? tree.roots : tree.items[item.parent].children;
        this.row.setAttribute("aria-setsize", siblings.length);
        this.row.setAttribute("aria-posinset", item.place + 1);
        this.setName(item.name, tree.query);
    }

    // Only what is new is written: a browser has work with every line that is touched.
    set(what, value) {
        if (this[what] === value)
            return;
        this[what] = value;
        if (what === "level")
            this.box.dataset.level = value;
        else if (what === "tabIndex")
            this.row.tabIndex = value;
        else if (what === "isZero")
            this.row.classList.toggle("zero", value);
        else
            this.row.setAttribute(what, value);
    }

    setNumber([number, unit]) {
        if (this.number.data !== number)
            this.number.data = number;
        if (this.unit.data !== unit)
            this.unit.data = unit;
    }

    // With what was searched for marked.
    setName(name, query) {
        const at = query ? name.toLowerCase().indexOf(query) : -1;
        if (at < 0)
            this.name.textContent = name;
        else
            this.name.replaceChildren(
                name.slice(0, at),
                element("mark", {textContent: name.slice(at, at + query.length)}),
                name.slice(at + query.length));
    }
}

// Of a tree with more lines only these are in the document, around what is seen.
const LINES_MAX = 240;

class Tree {
    // [list] has names and parents.
    constructor(pane, list) {
        this.pane = byId(pane);
        this.root = this.pane.querySelector(".tree");
        this.items = list.map(({name, parent}) => ({name, parent, children: [], open: false}));
        this.roots = [];
        this.items.forEach((item, i) => {
            const siblings = item.parent < 0 ? this.roots : this.items[item.parent].children;
            item.depth = item.parent < 0 ? 0 : this.items[item.parent].depth + 1;
            item.place = siblings.push(i) - 1;
        });
        this.selected = -1;
        this.query = "";
        this.most = LINES_MAX;
        this.height = 28; // of a line, in pixels
        this.root.addEventListener("scroll", () => this.scrolled());
        addEventListener("beforeprint", () => this.placeAtMost(Infinity));
        addEventListener("afterprint", () => this.placeAtMost(LINES_MAX));
        this.own = this.inclusive = new Float64Array(this.items.length);
        this.root.addEventListener("click", event => this.click(event));
        this.root.addEventListener("dblclick", event => this.doubleClick(event));
        this.root.addEventListener("keydown", event => this.key(event));
        const tool = (label, act) => element("button", {type: "button", textContent: label,
                                                        onclick: act});
        if (this.items.some(item => item.parent >= 0))
            this.pane.querySelector(".tools").append(
                tool("open all", () => this.openAll(true)),
                tool("close all", () => this.openAll(false)));
    }

    isInclusive(i) {
        const {open, children} = this.items[i];
        return state.mode === "inclusive" ||
            state.mode === "cube" && !(open && children.length > 0);
    }

    value(i) {
        return i < 0 ? 0 : this.isInclusive(i) ? this.inclusive[i] : this.own[i];
    }

    // The item and, if it counts them, all below it.
    counted(i) {
        const found = i < 0 ? [] : [i];
        if (i >= 0 && this.isInclusive(i))
            for (let at = 0; at < found.length; at++)
                for (const child of this.items[found[at]].children)
                    found.push(child);
        return found;
    }

    visible() {
        const found = [], left = [...this.roots].reverse();
        while (left.length > 0) {
            const i = left.pop(), {open, children} = this.items[i];
            found.push(i);
            if (open)
                for (let c = children.length - 1; c >= 0; c--)
                    left.push(children[c]);
        }
        return found;
    }

    line(i) {
        return this.items[i].line ??= new Line(this, i);
    }

    // Put the lines in their places; their numbers are painted by paint().
    lay() {
        this.shown = this.visible();
        this.place();
    }

    firstPlaced() {
        const above = Math.floor(this.root.scrollTop / this.height) - this.most / 3;
        const last = Math.max(0, this.shown.length - this.most);
        return last > 0 ? Math.max(0, Math.min(last, above - above % 20)) : 0;
    }

    place() {
        const focused = this.root.contains(document.activeElement);
        const space = lines => {
            const made = element("div", {role: "none"});
            made.style.height = `${lines * this.height}px`;
            return made;
        };
        this.first = this.firstPlaced();
        this.placed = this.shown.slice(this.first, this.first + this.most);
        this.root.replaceChildren(
            space(this.first), ...this.placed.map(i => this.line(i).row),
            space(this.shown.length - this.first - this.placed.length));
        if (focused)
            this.focus();
    }

    placeAtMost(lines) {
        this.most = lines;
        this.place();
        this.paint();
    }

    scrolled() {
        this.height = this.placed.length > 0 && this.line(this.placed[0]).row.offsetHeight ||
            this.height;
        if (this.firstPlaced() === this.first)
            return;
        this.place();
        this.paint();
    }

    scrollTo(i) {
        if (!this.placed.includes(i)) {
            this.root.scrollTop =
                this.shown.indexOf(i) * this.height - this.root.clientHeight / 2;
            this.scrolled();
        }
        this.line(i).row.scrollIntoView({block: "nearest"});
    }

    // Where Tab arrives.
    current() {
        return this.selected >= 0 ? this.selected : this.roots[0] ?? -1;
    }

    // The line, or the tree for it.
    focus() {
        const at = this.placed.includes(this.current()) ? this.line(this.current()).row
            : this.root;
        at.focus({preventScroll: true});
    }

    paint() {
        this.root.tabIndex = this.placed.includes(this.current()) ? -1 : 0;
        for (const i of this.placed) {
            const {line, open, children} = this.items[i], value = this.value(i);
            line.setNumber(this.shownValue(i, value));
            line.set("level", level(this.severity(i, value)));
            line.set("isZero", value === 0);
            line.set("tabIndex", i === this.current() ? 0 : -1);
            line.set("aria-selected", i === this.selected);
            if (children.length > 0)
                line.set("aria-expanded", open);
        }
    }

    shownValue(i, value) {
        return state.scale === "absolute" ? quantity(value, this.unit(i))
            : percent(value, this.whole(i));
    }

    select(i) {
        this.selected = i;
        update(this);
        this.scrollTo(i);
    }

    // Open all above it, so that it is seen.
    reveal(i) {
        let changed = false;
        for (let up = this.items[i].parent; up >= 0; up = this.items[up].parent) {
            changed ||= !this.items[up].open;
            this.items[up].open = true;
        }
        if (changed)
            this.lay();
    }

    setOpen(i, open) {
        const item = this.items[i];
        if (item.children.length === 0 || item.open === open)
            return;
        item.open = open;
        this.keepSelectionSeen();
    }

    openAll(open) {
        for (const item of this.items)
            item.open = open && item.children.length > 0;
        this.keepSelectionSeen();
    }

    // What is selected below a closed line becomes that line.
    keepSelectionSeen() {
        for (let up = this.items[this.selected]?.parent ?? -1; up >= 0;
             up = this.items[up].parent)
            if (!this.items[up].open)
                this.selected = up;
        this.lay();
        update(this);
    }

    click(event) {
        const row = event.target.closest(".line");
        if (!row)
            return;
        if (event.target.closest(".twisty") && this.items[row.index].children.length > 0)
            this.setOpen(row.index, !this.items[row.index].open);
        else
            this.select(row.index);
        this.focus();
    }

    doubleClick(event) {
        const row = event.target.closest(".line");
        if (row && !event.target.closest(".twisty"))
            this.setOpen(row.index, !this.items[row.index].open);
    }

    key(event) {
        if (event.ctrlKey || event.altKey || event.metaKey || this.shown.length === 0)
            return;
        const i = this.current(), item = this.items[i], at = this.shown.indexOf(i);
        const last = this.shown.length - 1;
        const go = to => this.go(this.shown[Math.max(0, Math.min(last, to))]);
        const page = Math.max(1, Math.floor(this.root.clientHeight / this.height) - 1);
        const acts = {
            ArrowDown: () => go(at + 1),
            ArrowUp: () => go(at - 1),
            PageDown: () => go(at + page),
            PageUp: () => go(at - page),
            Home: () => go(0),
            End: () => go(last),
            ArrowRight: () => item.open ? this.go(item.children[0]) : this.setOpen(i, true),
            ArrowLeft: () => item.open ? this.setOpen(i, false)
                : item.parent >= 0 && this.go(item.parent),
            Enter: () => this.go(i),
            " ": () => this.go(i),
            "*": () => {
                for (const c of item.parent < 0 ? this.roots : this.items[item.parent].children)
                    this.items[c].open = this.items[c].children.length > 0;
                this.keepSelectionSeen();
            },
        };
        if (event.key in acts)
            acts[event.key]();
        else if (event.key.length === 1)
            this.goToLetter(event.key.toLowerCase(), at);
        else
            return;
        event.preventDefault();
    }

    go(i) {
        this.select(i);
        this.focus();
    }

    goToLetter(letter, at) {
        const from = [...this.shown.slice(at + 1), ...this.shown.slice(0, at + 1)];
        const found = from.find(i => this.items[i].name.toLowerCase().startsWith(letter));
        if (found !== undefined)
            this.go(found);
    }

    setScale(low, high) {
        const bar = element("span", {className: "scale"});
        for (let i = 1; i <= STEPS; i++) {
            const step = element("span");
            step.dataset.level = i;
            bar.append(step);
        }
        bar.setAttribute("aria-hidden", true);
        this.pane.querySelector("footer").replaceChildren(
            element("span", {textContent: low}), bar, element("span", {textContent: high}));
    }
}

// ---- the three of them ----

const metricTree = new Tree("metric-pane", metrics);
const pathTree = new Tree("path-pane", paths);
const processTree = new Tree("process-pane", [
    ...nodes.map(name => ({name, parent: -1})),
    ...processes.map(({name, node}) => ({name, parent: node})),
]);

function rootOf(m) {
    while (metrics[m].parent >= 0)
        m = metrics[m].parent;
    return m;
}

function selectedUnit() {
    return metrics[metricTree.selected]?.unit ?? "";
}

function selectedIsSum() {
    return metrics[metricTree.selected]?.is_sum ?? true;
}

// What a percentage is of, right of the metrics.
function wholeOfSelection(left) {
    if (metricTree.selected < 0)
        return 0;
    return state.scale === "root" ? metricTree.inclusive[rootOf(metricTree.selected)]
        : left.value(left.selected);
}

metricTree.unit = i => metrics[i].unit;
metricTree.whole = i => metricTree.inclusive[rootOf(i)];
metricTree.severity = (i, value) => value / metricTree.whole(i);
pathTree.unit = processTree.unit = selectedUnit;
pathTree.whole = () => wholeOfSelection(metricTree);
pathTree.severity = (i, value) => value / pathTree.greatest;
processTree.whole = () => wholeOfSelection(pathTree);
// A node has the colour of its worst rank, so that a closed one shows it.
processTree.severity = i => processTree.worst[i] / processTree.greatest;
// It has no value of its own.
processTree.isInclusive = () => true;

function isSumOfMetric(m) {
    return metrics[m].is_sum;
}

function countMetrics() {
    metricTree.own = totals.map(
        (row, m) => row.reduce((a, b) => add(metrics[m].is_sum, a, b), 0));
    metricTree.inclusive = withThoseBelow(metricTree.own, metrics, isSumOfMetric);
    metricTree.setScale("0", "100\u202f% of its root");
}

function countPaths() {
    const counted = metricTree.counted(metricTree.selected), isSum = selectedIsSum();
    pathTree.own = Float64Array.from(
        paths, (path, p) => counted.reduce((sum, m) => add(isSum, sum, totals[m][p]), 0));
    pathTree.inclusive = withThoseBelow(pathTree.own, paths, () => isSum);
}

function countProcesses() {
    const counted = valuesOfProcesses(metricTree.counted(metricTree.selected),
                                      pathTree.counted(pathTree.selected));
    const own = new Float64Array(processTree.items.length);
    own.set(counted, nodes.length);
    processTree.inclusive = withThoseBelow(own, processTree.items, selectedIsSum);
    processTree.worst = withThoseBelow(own, processTree.items, () => false);
    processTree.greatest = counted.reduce((a, b) => Math.max(a, b), 0);
    processTree.setScale("0", `${text(quantity(processTree.greatest, selectedUnit()))} a rank`);
}

// [changed] has another selection, or other lines; null: anything may have changed.
function update(changed) {
    if (changed !== processTree) {
        if (changed !== pathTree) {
            countPaths();
            explain();
            topTable.update();
        }
        countProcesses();
        heatMap.draw();
    }
    if (changed === processTree) {
        heatMap.draw();
        powerChart.select();
    } else
        metricTree.paint();
    if (changed !== processTree) {
        pathTree.greatest = pathTree.shown.reduce(
            (most, i) => Math.max(most, pathTree.value(i)), 0);
        pathTree.setScale("0", text(quantity(pathTree.greatest, selectedUnit())));
        pathTree.paint();
    }
    processTree.paint();
}

const LEGENDS = {
    cube: "A closed line counts all below it (inclusive), an open one itself alone (exclusive).",
    inclusive: "Every line counts itself and all below it (inclusive).",
    exclusive: "Every line counts itself alone (exclusive).",
};

function explain() {
    const metric = metrics[metricTree.selected];
    byId("explain").replaceChildren();
    byId("legend").textContent = `${LEGENDS[state.mode]} A node counts its ranks. ` +
        "What is selected in a tree is what the tree to its right divides.";
    if (!metric)
        return;
    byId("explain").append(element("strong", {textContent: metric.name}), ": ", metric.about);
    history.replaceState(null, "", `#metric=${encodeURIComponent(metric.id)}`);
}

// Draw again when the place has another width: in the next frame, since drawing
// changes the height.
function drawAtWidth(drawing, place) {
    let width = place.clientWidth;
    new ResizeObserver(() => requestAnimationFrame(() => {
        if (place.clientWidth !== width) {
            width = place.clientWidth;
            drawing.draw();
        }
    })).observe(place);
}

// ---- one cell a rank ----

const heatMap = {
    holder: byId("heat"),
    canvas: byId("heat").querySelector("canvas"),
    byRank: processes.map((process, i) => i).sort((a, b) => processes[a].rank - processes[b].rank),
    at: 0, // place in byRank of what the text is of

    prepare() {
        this.holder.hidden = processes.length <= 16;
        byId("panes").classList.toggle("has-heat", !this.holder.hidden);
        if (this.holder.hidden)
            return;
        this.canvas.setAttribute("aria-valuemax", processes.length - 1);
        this.canvas.addEventListener("pointermove", event => this.tell(this.under(event)));
        this.canvas.addEventListener("pointerleave", () => this.tell(this.at));
        this.canvas.addEventListener("click", event => this.choose(this.under(event)));
        this.canvas.addEventListener("keydown", event => this.key(event));
        drawAtWidth(this, this.holder);
    },

    // As large as fits a third of the pane; a row is whole nodes, if it can be.
    fit() {
        const count = processes.length, width = this.holder.clientWidth - 24;
        const onNode = processTree.items[processTree.roots[0]].children.length;
        const square = Math.max(3, Math.min(18, Math.floor(Math.sqrt(width * 170 / count))));
        this.columns = Math.max(1, Math.floor(width / square));
        if (onNode > 1 && this.columns > onNode)
            this.columns -= this.columns % onNode;
        this.rows = Math.ceil(count / this.columns);
        this.wide = Math.min(18, Math.floor(width / this.columns));
        this.high = Math.max(3, Math.min(this.wide, Math.floor(180 / this.rows)));
    },

    draw() {
        if (this.holder.hidden)
            return;
        this.fit();
        const {canvas, columns, rows, wide, high} = this, ratio = devicePixelRatio || 1;
        const gap = high > 5 ? 1 : 0;
        canvas.width = columns * wide * ratio;
        canvas.height = rows * high * ratio;
        canvas.style.width = `${columns * wide}px`;
        canvas.style.height = `${rows * high}px`;
        const context = canvas.getContext("2d");
        const colours = Array.from({length: STEPS + 1}, (_, i) => styleValue(`--s${i}`));
        context.scale(ratio, ratio);
        this.byRank.forEach((process, place) => {
            const share = processTree.inclusive[nodes.length + process] / processTree.greatest;
            context.fillStyle = colours[level(share)];
            context.fillRect(place % columns * wide, Math.floor(place / columns) * high,
                             wide - gap, high - gap);
        });
        const selected = processTree.selected - nodes.length;
        if (selected >= 0) {
            this.at = this.byRank.indexOf(selected);
            context.strokeStyle = styleValue("--accent");
            context.lineWidth = 2;
            context.strokeRect(this.at % columns * wide, Math.floor(this.at / columns) * high,
                               wide - gap, high - gap);
        }
        this.tell(this.at);
    },

    under(event) {
        const column = Math.min(this.columns - 1, Math.floor(event.offsetX / this.wide));
        const place = Math.floor(event.offsetY / this.high) * this.columns + column;
        return Math.max(0, Math.min(processes.length - 1, place));
    },

    tell(place) {
        const process = this.byRank[place], {name, node} = processes[process];
        const value = processTree.inclusive[nodes.length + process];
        const said = `${name} on ${nodes[node]}: ${text(quantity(value, selectedUnit()))}`;
        byId("heat-text").textContent = said;
        this.canvas.setAttribute("aria-valuenow", place);
        this.canvas.setAttribute("aria-valuetext", said);
    },

    choose(place) {
        this.at = place;
        processTree.reveal(nodes.length + this.byRank[place]);
        processTree.select(nodes.length + this.byRank[place]);
    },

    key(event) {
        const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns,
                       ArrowUp: -this.columns, Home: -this.at,
                       End: processes.length - 1 - this.at};
        if (!(event.key in steps))
            return;
        event.preventDefault();
        this.choose(Math.max(0, Math.min(processes.length - 1, this.at + steps[event.key])));
    },
};

// ---- where it is worst ----

const TOP = 20;

const topTable = {
    body: byId("top").querySelector("tbody"),

    prepare() {
        for (const head of byId("top").querySelectorAll("th"))
            head.querySelector("button").addEventListener("click", () => {
                const {key} = head.dataset;
                const down = state.sort.key === key ? !state.sort.down
                    : head.classList.contains("number");
                state.sort = {key, down};
                this.show();
            });
    },

    // The paths that have any of the metric that is selected, each for itself.
    update() {
        this.metrics = metricTree.counted(metricTree.selected);
        this.rows = [];
        pathTree.own.forEach((total, path) => {
            if (total > 0)
                this.rows.push({path, total, name: paths[path].name});
        });
        this.show();
    },

    findWorst(row) {
        if (row.process !== undefined)
            return;
        const of = valuesOfProcesses(this.metrics, [row.path]);
        row.process = of.reduce((best, value, i) => value > of[best] ? i : best, 0);
        row.worst = of[row.process];
    },

    show() {
        const {down} = state.sort, key = state.sort.key === "share" ? "total" : state.sort.key;
        if (key === "worst" || key === "process")
            this.rows.forEach(row => this.findWorst(row));
        this.rows.sort((a, b) => {
            const order = key === "name" ? a.name.localeCompare(b.name)
                : key === "process" ? processes[a.process].rank - processes[b.process].rank
                : a[key] - b[key];
            return (down ? -order : order) || a.path - b.path;
        });
        for (const head of byId("top").querySelectorAll("th"))
            if (head.dataset.key === state.sort.key)
                head.setAttribute("aria-sort", down ? "descending" : "ascending");
            else
                head.removeAttribute("aria-sort");
        this.body.replaceChildren(...this.rows.slice(0, TOP).map(row => this.line(row)));
        const metric = metrics[metricTree.selected], count = this.rows.length;
        byId("no-top").hidden = count > 0;
        byId("top").querySelector("table").hidden = count === 0;
        byId("top-metric").textContent = !metric ? "" : metric.name + (count > TOP
            ? `, ${TOP} of ${count} call paths` : "");
    },

    line(row) {
        this.findWorst(row);
        const {name, node} = processes[row.process], unit = selectedUnit();
        const names = [];
        for (let up = paths[row.path].parent; up >= 0; up = paths[up].parent)
            names.unshift(paths[up].name);
        const above = names.join(" \u203a ");
        const link = element("button", {type: "button", className: "link name",
                                        textContent: row.name, title: row.name});
        link.addEventListener("click", () => {
            pathTree.reveal(row.path);
            pathTree.select(row.path);
            heatMap.choose(heatMap.byRank.indexOf(row.process));
        });
        const number = ([digits, of]) => element(
            "td", {className: "number"}, digits,
            element("span", {className: "unit", textContent: of}));
        return element(
            "tr", {},
            element("td", {}, link,
                    element("span", {className: "above muted", title: above, textContent: above})),
            number(quantity(row.total, unit)),
            number(percent(row.total, metricTree.value(metricTree.selected))),
            element("td", {className: "name", textContent: `${name}, ${nodes[node]}`}),
            number(quantity(row.worst, unit)));
    },
};

// ---- power over time ----

const CURVES = 8;
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 2", "9 3 2 3 2 3"];

const powerChart = {
    canvas: byId("power-chart").querySelector("canvas"),
    cursor: byId("power-cursor"),
    curves: data.powers.map(({node, s, watts}) =>
        ({node, s: floats(s), watts: floats(watts), slot: -1})),
    slots: new Array(CURVES).fill(null),
    seconds: data.seconds > 0 ? data.seconds : 1,
    at_s: 0,
    node: -1, // of the process that is selected
    left: 64,
    right: 12,
    height: 220,

    prepare() {
        const none = this.curves.every(curve => curve.s.length === 0);
        byId("no-power").hidden = !none;
        byId("no-power").textContent = data.no_power ?? "No power was recorded.";
        byId("power-chart").hidden = none;
        if (none)
            return;
        this.curves.sort((a, b) => a.node - b.node);
        this.curves.forEach(curve => this.addChoice(curve));
        this.curves.slice(0, CURVES).forEach(curve => this.take(curve, true));
        byId("power-nodes").querySelector("legend").textContent =
            this.curves.length > CURVES ? `Nodes, ${CURVES} at once` : "Nodes";
        this.canvas.addEventListener("pointermove", event => this.tell(this.time(event.offsetX)));
        this.canvas.addEventListener("pointerleave", () => { this.cursor.hidden = true; });
        this.canvas.addEventListener("focus", () => this.tell(this.at_s));
        this.canvas.addEventListener("blur", () => { this.cursor.hidden = true; });
        this.canvas.addEventListener("keydown", event => this.key(event));
        drawAtWidth(this, byId("power-chart"));
        this.draw();
    },

    // With a piece of its curve, which tells it from others without colour too.
    addChoice(curve) {
        const svg = (tag, attributes) => {
            const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
            for (const [name, value] of Object.entries(attributes))
                made.setAttribute(name, value);
            return made;
        };
        const sample = svg("svg", {width: 26, height: 10, "aria-hidden": true});
        curve.sample = svg("line", {x1: 0, x2: 26, y1: 5, y2: 5, "stroke-width": 2});
        sample.append(curve.sample);
        curve.box = element("input", {type: "checkbox"});
        curve.box.addEventListener("change", () => {
            this.take(curve, curve.box.checked);
            this.draw();
        });
        byId("power-nodes").append(element("label", {}, curve.box, sample,
            element("span", {className: "name", textContent: nodes[curve.node]})));
    },

    take(curve, wanted) {
        if (wanted)
            curve.slot = this.slots.indexOf(null);
        else
            this.slots[curve.slot] = null;
        if (wanted)
            this.slots[curve.slot] = curve;
        else
            curve.slot = -1;
        curve.box.checked = wanted;
        curve.sample.setAttribute("class", wanted ? `curve${curve.slot}` : "no-curve");
        curve.sample.setAttribute("stroke-dasharray", wanted ? DASHES[curve.slot] : "");
        const full = !this.slots.includes(null);
        for (const other of this.curves)
            other.box.disabled = full && other.slot < 0;
    },

    // A round step, of which [range] has [count] or fewer.
    step(range, count) {
        const least = range / count, power = 10 ** Math.floor(Math.log10(least));
        return [1, 2, 5, 10].find(n => n * power >= least * 0.999) * power;
    },

    place(s) {
        return this.left + (this.width - this.left - this.right) * s / this.seconds;
    },

    time(x) {
        const s = (x - this.left) / (this.width - this.left - this.right) * this.seconds;
        return Math.max(0, Math.min(this.seconds, s));
    },

    draw() {
        if (byId("power-chart").hidden)
            return;
        const drawn = this.slots.filter(curve => curve), ratio = devicePixelRatio || 1;
        const most = Math.max(1, ...drawn.map(({watts}) =>
            watts.reduce((a, b) => b > a ? b : a, 0)));
        this.width = this.canvas.parentElement.clientWidth;
        this.canvas.width = this.width * ratio;
        this.canvas.height = this.height * ratio;
        this.canvas.style.width = `${this.width}px`;
        this.canvas.style.height = `${this.height}px`;
        const context = this.canvas.getContext("2d");
        context.scale(ratio, ratio);
        this.drawAxes(context, most);
        for (const curve of drawn)
            this.drawCurve(context, curve, curve.node === this.node);
    },

    // The curve of the node of the selected process is thicker.
    select() {
        const selected = processTree.selected, {parent} = processTree.items[selected] ?? {};
        const node = parent >= 0 ? parent : selected;
        if (node === this.node)
            return;
        this.node = node;
        this.draw();
    },

    drawAxes(context, most) {
        const watts = this.step(most, 5), top = Math.ceil(most / watts) * watts;
        const bottom = this.height - 26, kilo = top >= 2000;
        this.y = value => bottom - (bottom - 10) * value / top;
        context.font = `12px ${styleValue("--font")}`;
        context.fillStyle = styleValue("--muted");
        context.strokeStyle = styleValue("--edge");
        context.lineWidth = 1;
        context.beginPath();
        context.textAlign = "right";
        context.textBaseline = "middle";
        for (let value = 0; value <= top * 1.001; value += watts) {
            const label = Number((kilo ? value / 1000 : value).toPrecision(6));
            const y = Math.round(this.y(value)) + 0.5;
            context.moveTo(this.left, y);
            context.lineTo(this.width - this.right, y);
            context.fillText(`${label}\u202f${kilo ? "kW" : "W"}`, this.left - 8, y);
        }
        context.textAlign = "center";
        context.textBaseline = "top";
        const factor = this.seconds < 1 ? 1000 : this.seconds < 600 ? 1
            : this.seconds < 7200 ? 1 / 60 : 1 / 3600;
        const unit = factor === 1000 ? "ms" : factor === 1 ? "s" : factor > 0.001 ? "min" : "h";
        const step = this.step(this.seconds * factor, Math.max(2, this.width / 90)) / factor;
        for (let s = 0; s <= this.seconds * 1.0001; s += step) {
            const x = Math.round(this.place(s)) + 0.5;
            context.moveTo(x, 10);
            context.lineTo(x, bottom + 4);
            context.fillText(Number((s * factor).toPrecision(6)),
                             Math.min(x, this.width - this.right - 6), bottom + 9);
        }
        context.stroke();
        byId("power-axes").textContent =
            `${kilo ? "kW" : "W"} over ${unit} since the program began`;
    },

    // Where points are denser than the screen: the mean of every two pixels.
    thinned({s, watts}) {
        const bins = Math.floor((this.width - this.left - this.right) / 2);
        if (s.length <= bins)
            return {s, watts};
        const sum = new Float64Array(bins), count = new Float64Array(bins);
        for (let i = 0; i < s.length; i++) {
            const bin = Math.max(0, Math.min(bins - 1, Math.floor(s[i] / this.seconds * bins)));
            sum[bin] += watts[i];
            count[bin]++;
        }
        const used = [...count.keys()].filter(bin => count[bin] > 0);
        return {s: used.map(bin => (bin + 0.5) / bins * this.seconds),
                watts: used.map(bin => sum[bin] / count[bin])};
    },

    drawCurve(context, curve, isSelected) {
        const {s, watts} = this.thinned(curve), {slot} = curve;
        let drawing = false;
        context.save();
        context.beginPath();
        context.rect(this.left, 0, this.width - this.left - this.right + 1, this.height);
        context.clip();
        context.beginPath();
        for (let i = 0; i < s.length; i++) {
            const known = Number.isFinite(watts[i]);
            if (known && drawing)
                context.lineTo(this.place(s[i]), this.y(watts[i]));
            else if (known)
                context.moveTo(this.place(s[i]), this.y(watts[i]));
            drawing = known;
        }
        context.strokeStyle = styleValue(`--c${slot}`);
        context.lineWidth = isSelected ? 2.75 : 1.5;
        context.lineJoin = "round";
        context.setLineDash(DASHES[slot].split(" ").map(Number));
        context.stroke();
        context.restore();
    },

    // The value nearest to that time.
    valueAt({s, watts}, at_s) {
        let low = 0, high = s.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (s[middle] <= at_s)
                low = middle + 1;
            else
                high = middle;
        }
        const isLater = low === 0 || low < s.length && s[low] - at_s < at_s - s[low - 1];
        return watts[isLater ? low : low - 1];
    },

    tell(at_s) {
        this.at_s = at_s;
        const said = this.slots.filter(curve => curve).map(curve => {
            const watts = this.valueAt(curve, at_s);
            const known = Number.isFinite(watts) ? text(quantity(watts, "W")) : "not known";
            return `${nodes[curve.node]} ${known}`;
        });
        const whole = `At ${text(quantity(at_s, "s"))}: ${said.join(", ")}`;
        byId("power-text").textContent = whole;
        this.canvas.setAttribute("aria-valuenow", Math.round(1000 * at_s / this.seconds));
        this.canvas.setAttribute("aria-valuetext", whole);
        this.cursor.hidden = false;
        this.cursor.style.left = `${this.place(at_s)}px`;
    },

    key(event) {
        const steps = {ArrowRight: 0.01, ArrowUp: 0.01, ArrowLeft: -0.01, ArrowDown: -0.01,
                       PageUp: 0.1, PageDown: -0.1, Home: -1, End: 1};
        if (!(event.key in steps))
            return;
        event.preventDefault();
        const to = this.at_s + steps[event.key] * this.seconds;
        this.tell(Math.max(0, Math.min(this.seconds, to)));
    },
};

// ---- the search for call paths ----

const search = {
    input: byId("search"),
    matches: [],
    at: -1,

    prepare() {
        this.input.addEventListener("input", () => this.start());
        this.input.addEventListener("keydown", event => {
            if (event.key === "Enter")
                this.go(this.at + (event.shiftKey ? -1 : 1));
            else if (event.key === "ArrowDown")
                pathTree.focus();
            else
                return;
            event.preventDefault();
        });
    },

    start() {
        const query = this.input.value.trim().toLowerCase();
        pathTree.query = query;
        this.matches = query ? this.inOrder().filter(
            i => paths[i].name.toLowerCase().includes(query)) : [];
        for (const {line, name} of pathTree.items)
            line?.setName(name, query);
        this.at = -1;
        if (this.matches.length > 0)
            this.go(0);
        else
            byId("found").textContent = query ? "none" : "";
    },

    // As they would stand if all were open.
    inOrder() {
        const found = [], left = [...pathTree.roots].reverse();
        while (left.length > 0) {
            const i = left.pop();
            found.push(i);
            left.push(...[...pathTree.items[i].children].reverse());
        }
        return found;
    },

    go(to) {
        if (this.matches.length === 0)
            return;
        this.at = (to + this.matches.length) % this.matches.length;
        byId("found").textContent = `${this.at + 1} of ${this.matches.length}`;
        pathTree.reveal(this.matches[this.at]);
        pathTree.select(this.matches[this.at]);
    },
};

// ---- the width of the panes ----

function prepareBars() {
    const panes = byId("panes"), shares = [27, 41];
    const set = (which, share) => {
        const rest = 100 - shares[1 - which] - 15;
        shares[which] = Math.max(12, Math.min(rest, share));
        panes.style.setProperty(which === 0 ? "--first" : "--second", `${shares[which]}fr`);
        panes.style.setProperty("--third", `${100 - shares[0] - shares[1]}fr`);
        bars[which].setAttribute("aria-valuenow", Math.round(shares[which]));
    };
    const bars = [...panes.querySelectorAll(".bar")];
    bars.forEach((bar, which) => {
        const start = shares[which];
        bar.addEventListener("pointerdown", event => {
            const from = event.clientX, before = shares[which];
            const move = to => set(which, before + 100 * (to.clientX - from) / panes.clientWidth);
            bar.setPointerCapture(event.pointerId);
            bar.addEventListener("pointermove", move);
            bar.addEventListener("lostpointercapture",
                                 () => bar.removeEventListener("pointermove", move), {once: true});
        });
        bar.addEventListener("dblclick", () => set(which, start));
        bar.addEventListener("keydown", event => {
            const steps = {ArrowLeft: -2, ArrowRight: 2, Home: -100, End: 100};
            if (!(event.key in steps))
                return;
            event.preventDefault();
            set(which, shares[which] + steps[event.key]);
        });
        bar.setAttribute("aria-valuemin", 12);
        bar.setAttribute("aria-valuemax", 73);
        set(which, start);
    });
}

// ---- what is seen first ----

// Without any of the three there is nothing to show but this, and the power.
function setNotice() {
    const nothing = !totals.some(row => row.some(value => value !== 0));
    const notice = nothing ? "Nothing waited: no metric has a value."
        : processes.length === 1 ? "The program had one process, which waits for no other." : "";
    byId("notice").textContent = notice;
    byId("notice").hidden = !notice;
    if (metrics.length === 0 || paths.length === 0 || processes.length === 0)
        for (const id of ["controls", "legend", "panes", "explain", "about", "top"])
            byId(id).hidden = true;
}

function setTexts() {
    document.title = data.title;
    byId("title").textContent = data.title;
    byId("subtitle").textContent = data.subtitle;
    for (const {name, about} of metrics)
        byId("about").querySelector("dl").append(element("dt", {textContent: name}),
                                                 element("dd", {textContent: about}));
}

// Lines are open as far as they are few.
function openFew(tree, most) {
    let lines = tree.roots.length;
    for (let depth = 0; ; depth++) {
        const here = tree.items.filter(item => item.depth === depth && item.children.length > 0);
        lines += here.reduce((sum, item) => sum + item.children.length, 0);
        if (here.length === 0 || lines > most)
            return;
        for (const item of here)
            item.open = true;
    }
}

function selectFirst() {
    const id = new URLSearchParams(location.hash.slice(1)).get("metric");
    const named = id === null ? -1 : metrics.findIndex(metric => metric.id === id);
    metricTree.selected = named >= 0 ? named : metrics.length > 0 ? data.selected_metric : -1;
    for (let up = metricTree.selected; up >= 0; up = metrics[up].parent)
        if (up !== metricTree.selected)
            metricTree.items[up].open = true;
    openFew(pathTree, 40);
    openFew(processTree, 70);
    countMetrics();
    countPaths();
    pathTree.selected = pathTree.own.reduce(
        (best, value, i) => best < 0 || value > pathTree.own[best] ? i : best, -1);
    for (let up = paths[pathTree.selected]?.parent ?? -1; up >= 0; up = paths[up].parent)
        pathTree.items[up].open = true;
}

function start() {
    setTexts();
    setNotice();
    selectFirst();
    for (const tree of [metricTree, pathTree, processTree])
        tree.lay();
    prepareBars();
    heatMap.prepare();
    topTable.prepare();
    search.prepare();
    update(null);
    powerChart.prepare();
    for (const name of ["scale", "mode"])
        for (const choice of document.getElementsByName(name)) {
            choice.checked = choice.value === state[name];
            choice.addEventListener("change", () => {
                state[name] = choice.value;
                update(null);
            });
        }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        heatMap.draw();
        powerChart.draw();
    });
    if (pathTree.selected >= 0)
        pathTree.scrollTo(pathTree.selected);
    scrollTo(0, 0);
    document.body.classList.add("ready");
}

start();
