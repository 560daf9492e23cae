"use strict";
// The map of a run: its controls, its cells by truth, estimate and error, and its vehicles.
(async () => {
  const { page, byId, make } = await Page;

  // ---- colours: quiet where there is nothing; red for too many, blue for too few --------------------------------
  const RAMPS = {
    light: {
      many: ["#f3f5f7", "#d3e5e3", "#a3cdc9", "#68b1b3", "#3592a1", "#1d6f8c", "#1b4d72", "#16294b"],
      error: ["#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b"],
      missing: "#c9ced3", road: "#26323d", edge: "#ffffff", water: "#c0d2f0", name: "#1f2933",
    },
    dark: {
      many: ["#1b2229", "#1f3b45", "#20555f", "#24717a", "#2f9094", "#54b0a4", "#93cfb2", "#e4f3cc"],
      error: ["#6db3f2", "#4f8fcb", "#37648f", "#2a4258", "#252c33", "#573a31", "#8f4f3b", "#cd6f52", "#ff9d7a"],
      missing: "#3a434c", road: "#d5dde5", edge: "#14191f", water: "#203766", name: "#e6ebf0",
    },
  };
  const ramps = () => RAMPS[Charts.dark() ? "dark" : "light"];
  const parts = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
  const STEPS = 1023, mixed = new Map(); // the colours of a ramp, mixed once
  const colourOf = (ramp, share) => {
    if (!mixed.has(ramp)) mixed.set(ramp, Array.from({ length: STEPS + 1 }, (_, step) => mix(ramp, step / STEPS)));
    return mixed.get(ramp)[Math.round(STEPS * Math.min(1, Math.max(0, share)))];
  };
  const mix = (ramp, share) => {
    const place = share * (ramp.length - 1);
    const index = Math.min(ramp.length - 2, Math.floor(place));
    const from = parts(ramp[index]), to = parts(ramp[index + 1]);
    return "rgb(" + from.map((value, i) => Math.round(value + (to[i] - value) * (place - index))).join(",") + ")";
  };

  // ---- words -------------------------------------------------------------------------------------------------
  const digits = (value, number) => (value === null ? "\u2013" : Charts.fixed(value, number));
  const whole = (value) => digits(value, 0), tenth = (value) => digits(value, 1);
  const clock = (seconds) => {
    const s = Math.round(seconds), two = (value) => String(value).padStart(2, "0");
    if (page.clock) {
      const parts = page.clock.parts, [, face, offset] = parts.findLast(([first]) => first <= s) || parts[0];
      const [date, time] = new Date((face + s) * 1000).toISOString().split("T"), ofDay = time.slice(0, 8);
      const day = Math.floor((face + s) / 86400) - Math.floor(face / 86400) + 1;
      return page.clock.dated ? date + " " + ofDay + offset : (day === 1 ? "" : "day " + day + " ") + ofDay;
    }
    return Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
  };
  // ---- the map -------------------------------------------------------------------------------------------------
  const city = page.city, panels = ["truth", "estimate", "error"];
  const label = (name) => page.campaigns[state.campaign].labels[name] || name;
  // Counts are whole; speeds are not.
  const amount = (value) => (current.campaign.counts ? whole(value) : fine(value));
  const fine = (value) => digits(value, current.campaign.counts ? 1 : 2);
  const signed = (value) => (value !== null && value > 0 ? "+" : "") + fine(value);
  const cellName = (i) => "Cell " + city.cells[i] + (city.names[i] && city.names[i] !== String(city.cells[i]) ? " (" + city.names[i] + ")" : "");
  const state = { campaign: 0, query: 0, mechanism: "", same: false, asked: false, time: 0 };
  const shapes = {};
  let current = null, partition = page.campaigns[0].partition;

  const shape = Charts.node;
  const WIDTHS = { major: 2.2, middle: 1.3, minor: 0.7 };
  // A scale bar of a round length, at most a third as wide as the map, and where north is.
  const legend = () => {
    if (!city.metres) return [];
    const most = (city.metres * city.width) / 3, unit = 10 ** Math.floor(Math.log10(most));
    const length = unit * [5, 2, 1].find((factor) => factor * unit <= most), long = length / city.metres, down = city.height + 26;
    const words = length >= 1000 ? length / 1000 + " km" : length + " m", ink = { fill: "currentColor", "font-size": 24 };
    return [
      shape("path", { d: `M0 ${down - 8}v8h${long}v-8`, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }),
      shape("text", { x: long + 10, y: down + 4, ...ink }, words),
      shape("text", { x: city.width, y: down + 4, "text-anchor": "end", ...ink }, "N \u2191"),
    ];
  };
  const surroundings = () => {
    const water = shape("path", { class: "water", d: city.water, "fill-rule": "evenodd", "pointer-events": "none" });
    const names = shape("g", { class: "names", "font-size": 24, "text-anchor": "middle", "paint-order": "stroke", "stroke-width": 5, "stroke-linejoin": "round", "pointer-events": "none" });
    for (const [x, y, text] of city.labels) names.append(shape("text", { x, y: y + 8 }, text));
    return { water, names };
  };
  const tinted = ({ water, names }) => {
    water.setAttribute("fill", ramps().water);
    names.setAttribute("fill", ramps().name);
    names.setAttribute("stroke", ramps().edge);
  };
  const maps = {};
  let raster = null, many = false;
  const draw = () => {
    many = city.paths.length > Cells.MANY;
    if (!city.paths.length) {
      byId("panels").hidden = true;
      byId("values-box").open = true;
      return;
    }
    byId("panels").classList.toggle("wide", city.width > 2.4 * city.height);
    const edge = city.kind === "point" ? 40 : 8; // points are as large on paper whatever they stand for
    const wide = { area: 0.6, line: 3, point: 11 }[city.kind];
    const box = [-edge, -edge, city.width + 2 * edge, city.height + edge + (city.metres ? 44 : edge)];
    if (many) raster = Cells.raster(city, box);
    for (const panel of panels) {
      const canvas = document.querySelector('[data-panel="' + panel + '"]');
      if (maps[panel]) { // of another partition
        canvas.replaceChildren();
        canvas.nextSibling.remove();
        canvas.classList.remove("area", "line", "point");
      }
      canvas.classList.add(city.kind);
      const svg = shape("svg", { viewBox: box.join(" "), role: "img", "font-family": "sans-serif" });
      shapes[panel] = (many ? [""] : city.paths).map((path, i) => {
        const node = shape("path", { d: path, "vector-effect": "non-scaling-stroke", "stroke-width": wide, "stroke-linecap": "round" });
        if (many || city.kind !== "area") node.setAttribute("fill", "none");
        if (many) node.setAttribute("pointer-events", "none"); // the outline of the cell pointed at
        else node.dataset.i = i;
        return node;
      });
      const dense = city.roads.reduce((sum, [, path]) => sum + path.length, 0) > 60000 ? 0.45 : 1; // thinner, so that cells show
      const roads = shape("g", { class: "roads", fill: "none", "pointer-events": "none", "stroke-linejoin": "round" });
      for (const [name, path] of city.roads) roads.append(shape("path", { d: path, "stroke-width": WIDTHS[name] * dense, "vector-effect": "non-scaling-stroke" }));
      // Lines and points of cells lie on the roads; areas beneath them.
      const cells = document.createDocumentFragment(); // one by one: too many to be arguments of one call
      for (const node of shapes[panel]) cells.append(node);
      const { water, names } = surroundings();
      svg.append(water, ...(city.kind === "area" ? [cells, roads] : [roads, cells]), names, ...legend());
      const picture = many ? raster.canvas() : null, saved = () => (many ? raster.whole(svg, picture) : svg);
      maps[panel] = { svg, roads, water, names, picture };
      canvas.append(svg);
      if (many) (city.kind === "area" ? svg.before(picture) : svg.after(picture));
      canvas.after(Charts.tools("map of the " + panel, {
        SVG: () => Charts.saveSvg(saved(), panel),
        PNG: () => Charts.savePng(saved(), panel),
        CSV: () => Charts.saveCsv([["cell", "name", "truth", "estimate", "lower", "upper", "error"], ...city.cells.map((cell, i) => [cell, city.names[i], current.truth[i], current.estimate[i], current.lower[i], current.upper[i], current.errors[i] === null ? null : Number(current.errors[i].toFixed(6))])], "cells"),
      }));
    }
  };

  const paint = (node, colour) => {
    if (city.kind !== "area") node.setAttribute("stroke", colour);
    else node.setAttribute("fill", colour);
  };
  const look = () => {
    for (const panel of panels) {
      tinted(maps[panel]);
      maps[panel].roads.setAttribute("stroke", ramps().road);
      maps[panel].roads.setAttribute("stroke-opacity", Charts.dark() ? 0.3 : 0.5);
      if (!many && city.kind === "area") for (const node of shapes[panel]) node.setAttribute("stroke", ramps().edge);
    }
  };

  const view = () => {
    const campaign = (state.asked ? page.asked : page.campaigns)[state.campaign];
    const mechanism = campaign.mechanisms[state.mechanism], asked = campaign.asked[state.query], at = campaign.times[state.query];
    return {
      campaign,
      mechanism,
      truth: campaign.truths[mechanism.truth][state.query],
      estimate: mechanism.estimate[state.query],
      lower: mechanism.lower[state.query],
      upper: mechanism.upper[state.query],
      reach: Math.max(campaign.counts ? 1 : 0.1, state.same ? campaign.error : mechanism.error),
      title: "query " + campaign.queries[state.query] + (asked < at ? ", asked at " + clock(asked) + ", with the truth at " : " at ") + clock(at),
    };
  };

  const ramp = (panel, colours, ends) => {
    const node = document.querySelector('[data-scale="' + panel + '"]');
    const bar = make("div", { className: "ramp" });
    bar.style.background = "linear-gradient(90deg," + colours.join(",") + ")";
    node.replaceChildren(bar, make("div", { className: "ends" }, ...ends.map((text) => make("span", { textContent: text }))));
  };

  const show = () => {
    const now = (current = view());
    const error = (now.errors = now.truth.map((truth, i) => (truth === null || now.estimate[i] === null ? null : now.estimate[i] - truth)));
    let below = 0, above = 0, squares = 0, seen = 0, sumTruth = 0, sumEstimate = 0, covered = 0, bounded = 0;
    now.truth.forEach((truth, i) => {
      if (error[i] === null) return;
      const estimate = now.estimate[i];
      seen += 1;
      squares += error[i] ** 2;
      sumTruth += truth;
      sumEstimate += estimate;
      below += estimate < 0;
      above += estimate > now.campaign.top;
      if (now.lower[i] !== null && now.upper[i] !== null) {
        bounded += 1;
        covered += now.lower[i] <= truth && truth <= now.upper[i];
      }
    });
    if (city.paths.length) {
      look();
      const { many: MANY, error: RDBU, missing: MISSING } = ramps();
      // A crowded cell would leave all others pale: colours of counts go by the square root.
      const share = (value) => (now.campaign.counts ? Math.sqrt(Math.max(0, value) / now.campaign.top) : value / now.campaign.top);
      const half = amount(now.campaign.top / (now.campaign.counts ? 4 : 2)) + (now.campaign.counts ? " (square-root scale)" : "");
      const colours = {
        truth: (i) => (now.truth[i] === null ? MISSING : colourOf(MANY, share(now.truth[i]))),
        estimate: (i) => (now.estimate[i] === null ? MISSING : colourOf(MANY, share(now.estimate[i]))),
        error: (i) => (error[i] === null ? MISSING : colourOf(RDBU, 0.5 + error[i] / (2 * now.reach))),
      };
      for (const panel of panels) {
        if (many) raster.paint(maps[panel].picture, colours[panel]);
        else shapes[panel].forEach((node, i) => paint(node, colours[panel](i)));
        const words = { truth: "Truth, ", estimate: "Estimate by " + label(state.mechanism) + ", ", error: "Error of " + label(state.mechanism) + ", " };
        maps[panel].svg.setAttribute("aria-label", words[panel] + now.title + ", map of " + city.cells.length + " cells");
      }
      const top = amount(now.campaign.top), counts = now.campaign.counts;
      document.querySelector('[data-words="truth"]').textContent = now.campaign.words;
      ramp("truth", MANY, ["0", half, top + " " + now.campaign.unit]);
      ramp("estimate", MANY, ["0 or below", half, top + " or more"]);
      ramp("error", RDBU, ["\u2212" + fine(now.reach) + (counts ? " too few" : " too slow"), "0", "+" + fine(now.reach) + (counts ? " too many" : " too fast")]);
      const cut = [];
      if (below) cut.push(below + (below === 1 ? " estimate is" : " estimates are") + " below 0");
      if (above) cut.push(above + (above === 1 ? " is" : " are") + (counts ? " above the most " + now.campaign.unit + " any cell ever held" : " above the highest speed of any cell"));
      byId("clipped").textContent = cut.length ? "An unbiased estimate may fall outside what is possible: " + cut.join(" and ") + "; they are drawn in the colour at the scale\u2019s end." : "";
    }
    const rmse = seen ? Math.sqrt(squares / seen) : null;
    byId("status").textContent =
      label(state.mechanism) + ", " + now.title + ": error of " + fine(rmse) + " " + now.campaign.unit + " in a cell (RMSE over " + seen + " cells)" +
      (now.campaign.counts ? "; " + now.campaign.unit + " in all cells: " + whole(sumTruth) + ", estimated: " + tenth(sumEstimate) : "") +
      (bounded ? "; the interval contains the truth in " + covered + " of " + bounded + " cells" : "") + ".";
    Object.assign(byId("map").dataset, {
      query: now.campaign.queries[state.query],
      mechanism: state.mechanism,
      campaign: now.campaign.name,
      polygons: city.paths.filter((path) => path).length,
      truth: sumTruth,
      estimate: sumEstimate.toFixed(2),
    });
    drawVehicles();
    if (byId("values-box").open) fillTable(now);
  };

  const ROWS = 5000; // a browser takes many seconds to lay out 100,000
  const fillTable = (now) => {
    const error = now.errors, size = (i) => (error[i] === null ? -1 : Math.abs(error[i])), all = city.cells.map((_, i) => i);
    const chosen = all.length > ROWS ? all.sort((i, j) => size(j) - size(i)).slice(0, ROWS) : all;
    const part = all.length > ROWS ? ": the " + whole(ROWS) + " of " + whole(all.length) + " cells with the largest errors; the CSV file of a map has all" : "";
    const cell = (text) => make("td", { textContent: text });
    const heads = ["Cell", "Truth", "Estimate", "Interval from", "to", "Error"].map((text) => make("th", { scope: "col", textContent: text }));
    const body = make("tbody");
    chosen.forEach((i) => body.append(
      make("tr", {}, make("th", { scope: "row", textContent: cellName(i) }), cell(amount(now.truth[i])), cell(fine(now.estimate[i])),
        cell(fine(now.lower[i])), cell(fine(now.upper[i])), cell(signed(error[i])))));
    byId("values").replaceChildren(
      make("table", {}, make("caption", { textContent: label(state.mechanism) + ", " + now.title + part }), make("thead", {}, make("tr", {}, ...heads)), body));
  };

  // ---- pointing at a cell ------------------------------------------------------------------------------------
  let pointed = null;
  const point = (i, event) => {
    const outlines = (i) => Object.values(shapes).map((nodes) => nodes[many ? 0 : i]);
    if (pointed !== null) for (const outline of outlines(pointed)) outline.classList.remove("on");
    if (many) for (const outline of outlines(0)) outline.setAttribute("d", i === null ? "" : city.paths[i]);
    pointed = i;
    const box = byId("hover");
    box.hidden = i === null;
    if (i === null) return;
    for (const outline of outlines(i)) {
      outline.classList.add("on");
      if (!many && outline !== event.target) outline.parentNode.append(outline); // above its neighbours, so that its whole edge shows
    }
    const now = current;
    const error = now.truth[i] === null || now.estimate[i] === null ? null : now.estimate[i] - now.truth[i];
    box.textContent = [cellName(i), "Truth " + amount(now.truth[i]), "Estimate " + fine(now.estimate[i]),
      "95 % interval " + fine(now.lower[i]) + " to " + fine(now.upper[i]), "Error " + signed(error)].join("\n");
    const left = Math.min(event.clientX + 16, window.innerWidth - box.offsetWidth - 8);
    const top = event.clientY + 18 + box.offsetHeight > window.innerHeight ? event.clientY - box.offsetHeight - 12 : event.clientY + 18;
    box.style.left = Math.max(8, left) + "px";
    box.style.top = top + "px";
  };
  const pointing = (event) => {
    const svg = event.target.closest(".canvas svg");
    if (many) return point(svg && raster.at(svg, event), event);
    const i = event.target.dataset ? event.target.dataset.i : undefined;
    return point(i === undefined ? null : Number(i), event);
  };

  // ---- the vehicles ------------------------------------------------------------------------------------------
  const STATES = [["waiting to enter", 1], ["driving", 2], ["standing in a queue", 3], ["parked", 4], ["asked now", 5]];
  const LOOKS = {
    light: { guessed: "#8a2f9e", right: "#0b5c45", wrong: "#b86e1d", states: ["#000000", "#6b7785", "#12324f", "#c0392b", "#8a94a0", "#e08a00"], quiet: "#d3dae0", ramp: ["#cfe0ea", "#b5d6d0", "#c7dfa5", "#f1dd7e", "#f4b95a", "#ea8a45", "#d9573f", "#a81f3a"] },
    dark: { guessed: "#d9a0f0", right: "#7fd6b5", wrong: "#e0a96d", states: ["#ffffff", "#8d99a6", "#cfe3f7", "#ff7d6b", "#77838f", "#ffc247"], quiet: "#38434e", ramp: ["#2c4250", "#2f5a5a", "#4b6b3d", "#7c6f2b", "#96682a", "#ad5730", "#c34a3f", "#e8475f"] },
  };
  const MEASURES = { density: ["vehicles on each link", "vehicles per km and lane"], queue: ["queues at the end of each link", "vehicles standing"], volume: ["volume of each link in the interval", "vehicles per hour"], lost: ["speed lost on each link in the interval", "% of the free-flow speed"], none: ["the roads alone", ""] };
  let motion = null, lit = null, pulse = 0;
  const stage = {};
  const timeBox = make("input", { type: "range", id: "choose-time", min: "0", step: "1", ariaLabel: "Time" }), timeWords = make("output", { id: "time-words" });
  const speedBox = make("select", { id: "choose-speed", ariaLabel: "Speed" }), roadsBox = make("select", { id: "choose-roads" }), guessBox = make("select", { id: "choose-guess" });

  // The cells over the vehicles, which have no colour and can be pointed at.
  const pointable = () => {
    for (const node of shapes.vehicles || []) node.remove();
    delete shapes.vehicles;
    if (city.kind !== "area" || many) return;
    shapes.vehicles = city.paths.map((path, i) => {
      const node = shape("path", { d: path, class: "cell", fill: "transparent", "vector-effect": "non-scaling-stroke" });
      node.dataset.i = i;
      return node;
    });
    stage.svg.prepend(...shapes.vehicles);
  };
  const prepare = async () => {
    if (!page.motion) return;
    stage.canvas = make("canvas", { id: "vehicles", role: "img" });
    const box = [-8, -8, city.width + 16, city.height + (city.metres ? 52 : 16)];
    const layer = () => shape("svg", { viewBox: box.join(" "), "font-family": "sans-serif", "aria-hidden": "true" });
    Object.assign(stage, surroundings(), { below: layer(), svg: layer() });
    stage.below.append(stage.water);
    byId("stage").append(stage.below, stage.canvas, stage.svg);
    byId("stage").style.aspectRatio = box[2] + " / " + box[3];
    byId("stage").style.maxHeight = "min(85vh, 760px)";
    motion = Motion.shown = await Motion.open(stage.canvas, page.motion, box);
    motion.end = Math.max(motion.end, ...page.campaigns.flatMap((campaign) => campaign.times)); // vehicles may have parked before
    pointable();
    stage.marks = shape("g", { "pointer-events": "none" });
    stage.svg.append(stage.marks, stage.names, ...legend());
    const whole = () => {
      const copy = stage.svg.cloneNode(true), [x, y, width, height] = box;
      drawVehicles();
      copy.querySelectorAll(".cell").forEach((cell) => cell.remove());
      copy.prepend(stage.water.cloneNode(), shape("image", { href: stage.canvas.toDataURL("image/png"), x, y, width, height }));
      return copy;
    };
    const places = () => motion.places(state.time).map(([vehicle, x, y, kind]) => [vehicle, x.toFixed(2), y.toFixed(2), STATES[kind - 1][0]]);
    byId("motion-status").after(Charts.tools("vehicles at this time", {
      SVG: () => Charts.saveSvg(whole(), "vehicles"),
      PNG: () => Charts.savePng(whole(), "vehicles"),
      CSV: () => Charts.saveCsv([["vehicle", "x", "y", "state"], ...places()], "vehicles"),
    }));
    timeBox.max = Math.ceil(motion.end);
    for (const factor of [1, 5, 15, 60, 240]) speedBox.append(make("option", { value: factor, textContent: factor === 1 ? "real time" : factor + " \u00d7 as fast" }));
    speedBox.value = motion.end > 1800 ? 60 : 15;
    for (const name of [...motion.measures, "none"]) roadsBox.append(make("option", { value: name, textContent: MEASURES[name][0] }));
    byId("stage").before(make("div", { className: "controls" },
      ...(motion.measures.length ? [field("Colour of the roads", "choose-roads", roadsBox)] : []),
      ...(page.motion.guesses.length ? [field("A coalition\u2019s guess about one vehicle", "choose-guess", guessBox)] : [])));
    roadsBox.addEventListener("change", drawVehicles);
    guessBox.addEventListener("change", drawVehicles);
    timeBox.addEventListener("input", () => choose({ time: Number(timeBox.value) }));
    new ResizeObserver(() => drawVehicles()).observe(stage.canvas);
  };

  // The coalitions that guess in this campaign from reports of this mechanism; one that was chosen stays chosen.
  const offer = () => {
    const before = guessBox.value, campaign = page.campaigns[state.campaign].name;
    stage.guesses = new Map(page.motion.guesses.filter((one) => one.campaign === campaign && one.mechanism === state.mechanism).map((one) => [one.coalition + " (" + one.name + ")", one]));
    guessBox.replaceChildren(...["none", ...stage.guesses.keys()].map((name) => make("option", { value: name, textContent: name })));
    guessBox.value = stage.guesses.has(before) ? before : "none";
  };
  // A route from cell to cell through the middles of their outlines, with a gap where it is outside every cell.
  const middle = (cell) => {
    const points = [...(city.paths[city.cells.indexOf(cell)] || "").matchAll(/(-?[\d.]+) (-?[\d.]+)/g)];
    const along = (axis) => points.map((point) => Number(point[axis]));
    return points.length ? [along(1), along(2)].map((values) => (Math.min(...values) + Math.max(...values)) / 2) : null;
  };
  const ROUTES = [["true cells", -3, "none"], ["guessed cells", 3, "2 7"]]; // each moved aside by some pixels, with its dashes
  const routeColours = () => [ramps().name, LOOKS[Charts.dark() ? "dark" : "light"].guessed];
  const route = (cells, pixels, dash, stroke, name) => {
    const aside = (pixels * city.width) / Math.max(1, stage.svg.clientWidth);
    let path = "", dots = "", joined = false;
    for (const at of cells.map(middle)) {
      const place = at && (at[0] + aside).toFixed(1) + " " + (at[1] + aside).toFixed(1);
      if (at) path += (joined ? "L" : "M") + place;
      if (at) dots += "M" + place + "h0";
      joined = at !== null;
    }
    const line = (d, colour, width, more) => stage.marks.append(shape("path", { d, fill: "none", stroke: colour, "stroke-width": width, "stroke-linejoin": "round", "stroke-linecap": "round", "vector-effect": "non-scaling-stroke", ...more }));
    line(path, stroke, 3.5, { class: name.replace(" ", "-"), "stroke-dasharray": dash });
    line(dots, stroke, 8);
  };
  // Of the chosen vehicle: its true place, and the cell that the coalition takes for its own at this query.
  const mark = () => {
    stage.marks.replaceChildren();
    const one = stage.guesses.get(guessBox.value);
    if (!one) return "";
    if (one.queries.length > 1) ROUTES.forEach(([name, aside, dash], i) => route(i ? one.cells : one.truths, aside, dash, routeColours()[i], name));
    const at = one.queries.indexOf(page.campaigns[state.campaign].queries[state.query]), place = motion.where(one.vehicle, state.time);
    const hits = one.cells.filter((cell, i) => cell === one.truths[i]).length;
    const mine = (one.queries.length > 1 ? "Of the route, " + one.coalition + " guesses " + hits + " of " + one.queries.length + " cells right. " : "") + "Vehicle " + one.vehicle + (place ? "" : ", which is not on the road now") + ": ";
    if (at < 0) return mine + "no guess at this query, which did not ask it.";
    const guess = city.cells.indexOf(one.cells[at]), right = one.cells[at] === one.truths[at];
    const colour = LOOKS[Charts.dark() ? "dark" : "light"][right ? "right" : "wrong"], line = { "stroke-width": 2.5, "vector-effect": "non-scaling-stroke" };
    if (guess >= 0) {
      stage.marks.append(shape("path", { d: city.paths[guess], class: "guess", fill: colour, "fill-opacity": 0.3, stroke: colour, ...line }));
      if (place && !right) {
        const box = stage.marks.firstChild.getBBox();
        stage.marks.append(shape("path", { d: `M${place.x} ${place.y}L${box.x + box.width / 2} ${box.y + box.height / 2}`, stroke: colour, "stroke-dasharray": "5 4", ...line }));
      }
    }
    if (place) stage.marks.append(shape("circle", { cx: place.x, cy: place.y, r: 11, class: "chosen", fill: "none", stroke: ramps().name, ...line }));
    const named = (cell) => (cell === 0 ? "outside every cell" : "in " + cellName(city.cells.indexOf(cell)).replace("Cell", "cell"));
    const sure = one.sure[at] === null ? "" : ", " + (100 * one.sure[at]).toFixed(0) + " % sure";
    return mine + "at this query it was " + named(one.truths[at]) + "; " + one.coalition + (right ? " guesses right" : " guesses it " + named(one.cells[at])) + sure + ".";
  };

  const drawVehicles = () => {
    if (!motion) return;
    const campaign = page.campaigns[state.campaign], at = campaign.asked[state.query], looks = LOOKS[Charts.dark() ? "dark" : "light"];
    const shines = pulse > 0 || (state.time >= at && state.time <= campaign.times[state.query]);
    if (shines && lit !== at) stage.asked = motion.ask((lit = at));
    tinted(stage);
    motion.draw(state.time, { lit: shines, pulse, measure: roadsBox.value, looks });
    const words = mark(), [, waiting, driving, queued, parked] = [...motion.totals].map((number) => number * motion.every);
    const said = [whole(driving) + (motion.hasLinks ? " driving" : " on the road")];
    if (motion.hasLinks) said.push(whole(queued) + " standing in queues", whole(waiting) + " waiting to enter");
    if (parked) said.push(whole(parked) + " parked");
    if (shines) said.push(whole(stage.asked * motion.every) + " asked by query " + campaign.queries[state.query]);
    byId("motion-status").textContent = clock(state.time) + ": " + said.join(", ") + ". " + words + (motion.drawn ? "" : " This browser has no WebGL 2, so they are not drawn.");
    stage.canvas.setAttribute("aria-label", "Map of the vehicles. " + byId("motion-status").textContent);
    timeBox.value = state.time;
    timeWords.textContent = clock(state.time);
    timeBox.setAttribute("aria-valuetext", timeWords.textContent);
    const key = STATES.filter(([, kind]) => (kind === 5 ? shines : motion.totals[kind] > 0)).map(([name, kind]) => {
      const sign = make("span", { className: "sign", textContent: motion.hasLinks || kind === 5 ? name : "on the road" });
      sign.style.setProperty("--dot", looks.states[kind]);
      return sign;
    });
    if (stage.marks.querySelector(".true-cells")) ROUTES.forEach(([name], i) => {
      const sign = make("span", { className: "sign route", textContent: name });
      sign.style.setProperty("--dot", routeColours()[i]);
      sign.style.setProperty("--line", i ? "dotted" : "solid");
      key.push(sign);
    });
    const bar = make("div", { className: "ramp" }), measure = roadsBox.value;
    bar.style.background = "linear-gradient(90deg," + looks.ramp.join(",") + ")";
    byId("motion-scale").replaceChildren(make("div", {}, ...key), ...(motion.tops[measure] ? [bar, make("div", { className: "ends" }, make("span", { textContent: "0" }), make("span", { textContent: motion.tops[measure] + " or more " + MEASURES[measure][1] }))] : []));
  };

  // ---- the controls, and the same choice in the address: #query=3&mechanism=randomized -------------------------
  const campaignBox = make("select", { id: "choose-campaign" }), mechanismBox = make("select", { id: "choose-mechanism" });
  const queryBox = make("input", { type: "range", id: "choose-query", min: "0", step: "1" });
  const queryWords = make("output", { id: "query-words" });
  const before = make("button", { type: "button", textContent: "\u2039", ariaLabel: "Previous query" });
  const after = make("button", { type: "button", textContent: "\u203a", ariaLabel: "Next query" });
  const play = make("button", { type: "button", textContent: "\u25b6", ariaLabel: "Play the queries", id: "play" });
  let playing = null;
  const stop = () => {
    clearInterval(playing);
    cancelAnimationFrame(playing);
    playing = null;
    pulse = 0;
    play.textContent = "\u25b6";
    play.ariaLabel = "Play the queries";
  };
  const start = () => {
    if (motion) return drive();
    const last = () => page.campaigns[state.campaign].queries.length - 1;
    if (state.query === last()) choose({ query: 0 });
    playing = setInterval(() => (state.query < last() ? choose({ query: state.query + 1 }) : stop()), 800);
    play.textContent = "\u2016";
    play.ariaLabel = "Stop";
  };
  // Time passes; each query shows itself when it asks.
  const drive = () => {
    if (state.time >= motion.end) choose({ query: 0, time: 0 });
    const passedAt = (time) => page.campaigns[state.campaign].asked.findLastIndex((asked) => asked <= time);
    let before = performance.now(), due = passedAt(state.time);
    const frame = (now) => {
      const passed = Math.min(0.1, (now - before) / 1000);
      before = now;
      state.time = Math.min(motion.end, state.time + passed * Number(speedBox.value));
      pulse = Math.max(0, pulse - passed / 1.5);
      if (passedAt(state.time) !== due) {
        due = passedAt(state.time);
        pulse = 1;
        choose({ query: due, time: state.time });
      } else drawVehicles();
      if (state.time < motion.end) playing = requestAnimationFrame(frame);
      else stop();
    };
    playing = requestAnimationFrame(frame);
    play.textContent = "\u2016";
    play.ariaLabel = "Stop";
  };
  const sameBox = make("input", { type: "checkbox", id: "same-error" }), askedBox = make("input", { type: "checkbox", id: "asked-only" });
  const field = (text, forId, ...nodes) => make("div", { className: "field" }, make("label", { htmlFor: forId, textContent: text }), make("div", { className: "row" }, ...nodes));

  const controls = () => {
    page.campaigns.forEach((campaign, i) => campaignBox.append(make("option", { value: i, textContent: campaign.name })));
    const nodes = [];
    if (page.campaigns.length > 1) nodes.push(field("Campaign", "choose-campaign", campaignBox));
    nodes.push(field("Mechanism", "choose-mechanism", mechanismBox));
    if (page.asked) nodes.push(make("label", {}, askedBox, " only the " + page.campaigns[0].unit + " asked"));
    const times = field("Query", "choose-query", before, queryBox, after, play, queryWords);
    if (motion) times.lastChild.append(make("span", { className: "row" }, timeBox, timeWords, speedBox));
    nodes.push(times);
    // Beside the map that it is about.
    if (city.paths.length) document.querySelector('[data-scale="error"]').after(make("div", { className: "controls" }, make("label", {}, sameBox, " one error scale for all mechanisms")));
    byId("controls").append(...nodes);
  };

  const refresh = () => {
    const campaign = page.campaigns[state.campaign];
    if (campaign.partition !== partition && page.partitions[campaign.partition]) {
      point(null);
      partition = campaign.partition;
      Object.assign(city, page.partitions[partition]);
      draw();
      if (motion) pointable();
    }
    const names = Object.keys(campaign.mechanisms);
    if (!names.includes(state.mechanism)) {
      state.mechanism = page.mechanisms.map((mechanism) => mechanism.name).find((name) => names.includes(name)) || names[0];
    }
    state.query = Math.min(Math.max(0, state.query), campaign.queries.length - 1);
    mechanismBox.replaceChildren(...names.map((name) => make("option", { value: name, textContent: label(name) })));
    mechanismBox.value = state.mechanism;
    if (motion) offer();
    campaignBox.value = state.campaign;
    queryBox.max = campaign.queries.length - 1;
    queryBox.value = state.query;
    before.disabled = state.query === 0;
    after.disabled = state.query === campaign.queries.length - 1;
    play.hidden = campaign.queries.length === 1 && !motion;
    queryWords.textContent = state.query + 1 + " of " + campaign.queries.length + (motion ? "" : ", " + clock(campaign.times[state.query]));
    queryBox.setAttribute("aria-valuetext", queryWords.textContent);
    show();
  };

  const remember = () => {
    const campaign = page.campaigns[state.campaign];
    const words = new URLSearchParams({ query: campaign.queries[state.query], mechanism: state.mechanism });
    if (page.campaigns.length > 1) words.set("campaign", campaign.name);
    try {
      history.replaceState(null, "", "#" + words);
    } catch (error) {
      // Some viewers forbid it for files; the controls work all the same.
    }
  };

  const obey = () => {
    if (!location.hash.includes("=")) return;
    const words = new URLSearchParams(location.hash.slice(1));
    const campaign = page.campaigns.findIndex((item) => item.name === words.get("campaign"));
    if (campaign >= 0) state.campaign = campaign;
    const query = page.campaigns[state.campaign].queries.indexOf(Number(words.get("query")));
    if (words.has("query") && query >= 0) state.query = query;
    if (words.has("mechanism")) state.mechanism = words.get("mechanism");
  };

  const choose = (change) => {
    const before = state.query;
    Object.assign(state, change);
    const campaign = page.campaigns[state.campaign];
    if (!("time" in change)) state.time = campaign.times[Math.min(state.query, campaign.times.length - 1)];
    else if (!("query" in change)) state.query = Math.max(0, campaign.asked.findLastIndex((time) => time <= state.time));
    if ("time" in change && !("query" in change) && state.query === before) drawVehicles();
    else refresh();
    remember();
  };

  state.mechanism = page.first || "";
  state.query = Math.max(0, page.campaigns[0].queries.findIndex((_, query) => page.campaigns[0].truths[0][query].some((value) => value > 0)));
  draw();
  await prepare();
  controls();
  obey();
  state.time = page.campaigns[state.campaign].times[state.query];
  refresh();
  campaignBox.addEventListener("change", () => choose({ campaign: Number(campaignBox.value) }));
  mechanismBox.addEventListener("change", () => choose({ mechanism: mechanismBox.value }));
  queryBox.addEventListener("input", () => choose({ query: Number(queryBox.value) }));
  play.addEventListener("click", () => (playing === null ? start() : stop()));
  before.addEventListener("click", () => choose({ query: state.query - 1 }));
  after.addEventListener("click", () => choose({ query: state.query + 1 }));
  sameBox.addEventListener("change", () => choose({ same: sameBox.checked }));
  askedBox.addEventListener("change", () => choose({ asked: askedBox.checked }));
  byId("values-box").addEventListener("toggle", show);
  Charts.onLooks(show);
  window.addEventListener("hashchange", () => { obey(); refresh(); });
  if (city.paths.length) {
    for (const maps of [byId("panels"), byId("stage")]) {
      if (maps === null) continue;
      maps.addEventListener("pointermove", pointing);
      maps.addEventListener("pointerdown", pointing);
      maps.addEventListener("pointerleave", (event) => point(null, event));
    }
    window.addEventListener("scroll", () => point(null, null), { passive: true });
  }
  document.documentElement.dataset.report = "ready";
})();
