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
  // ---- the maps ----------------------------------------------------------------------------------------------
  const city = page.city, panels = ["truth", "estimate", "error"];
  const label = (name) => page.campaigns[state.campaign].labels[name] || name;
  // Counts are whole; speeds are not.
  const amount = (value) => (current.campaign.counts ? whole(value) : fine(value));
  const fine = (value) => digits(value, current.campaign.counts ? 1 : 2);
  const signed = (value) => (value !== null && value > 0 ? "+" : "") + fine(value);
  const cellName = (i) => "Cell " + city.cells[i] + (city.names[i] && city.names[i] !== String(city.cells[i]) ? " (" + city.names[i] + ")" : "");
  const state = { campaign: 0, query: 0, mechanism: "", same: false, asked: false, time: 0, cell: null };
  const shapes = {};
  let current = null, partition = page.campaigns[0].partition;

  const shape = Charts.node;
  const WIDTHS = { major: 2.2, middle: 1.3, minor: 0.7 };
  // On paper and in files: a scale bar of a round length, at most a third as wide as the map, and where north is.
  const legend = () => {
    if (!city.metres) return [];
    const most = (city.metres * city.width) / 3, unit = 10 ** Math.floor(Math.log10(most));
    const length = unit * [5, 2, 1].find((factor) => factor * unit <= most), long = length / city.metres, down = city.height + 26;
    const words = length >= 1000 ? length / 1000 + " km" : length + " m", ink = { fill: "currentColor", "font-size": 24 };
    return [shape("g", { class: "legend" },
      shape("path", { d: `M0 ${down - 8}v8h${long}v-8`, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }),
      shape("text", { x: long + 10, y: down + 4, ...ink }, words),
      shape("text", { x: city.width, y: down + 4, "text-anchor": "end", ...ink }, "N \u2191"))];
  };
  const surroundings = () => {
    const water = shape("path", { class: "water", d: city.water, "fill-rule": "evenodd" });
    const names = shape("g", { class: "names", "font-size": 24, "text-anchor": "middle", "paint-order": "stroke", "stroke-width": 5, "stroke-linejoin": "round" });
    for (const [x, y, text] of city.labels) names.append(shape("text", { x, y, dy: ".33em" }, text));
    return { water, names };
  };
  const tinted = ({ water, names }) => {
    water.setAttribute("fill", ramps().water);
    names.setAttribute("fill", ramps().name);
    names.setAttribute("stroke", ramps().edge);
  };

  // All maps show the same part of the city, `sight`: its middle, and the zoom beyond what shows the whole city.
  const maps = {}, sight = { middle: null, zoom: 0 };
  let box, cells, overview = null, raster = null, many = false, following = false, later = 0, frame = 0, hues = {}, pointed = null; // the colour of a cell, by map; the cell pointed at
  const latLng = (x, y) => L.latLng(-y, x);
  const bounds = ([left, top, width, height]) => L.latLngBounds(latLng(left, top), latLng(left + width, top + height));
  // The part of the drawing, [left, top, width, height], that a map shows.
  const part = ({ map }, { lat, lng }, zoom) => {
    const { x, y } = map.getSize().divideBy(2 ** zoom);
    return [lng - x / 2, -lat - y / 2, x, y];
  };
  // At most one cell of usual size fills the map; roads and vehicles are worth three steps in any case.
  const most = () => Math.max(3, Math.log2(Math.max(box[2], box[3]) / Math.sqrt((city.width * city.height) / city.cells.length)));
  const fit = (one) => {
    const node = one.map.getContainer();
    if (!node.clientWidth || !node.clientHeight) return;
    const { x, y } = one.map.invalidateSize({ animate: false, pan: false }).getSize();
    one.whole = Math.log2(Math.min(x / box[2], y / box[3]));
    Object.assign(one.map.options, { minZoom: one.whole, maxZoom: one.whole + most() });
    one.map.setView(sight.middle, one.whole + sight.zoom, { animate: false });
  };
  const moved = () => {
    following = false;
    byId("map").style.setProperty("--zoom", 2 ** sight.zoom);
    wholeButton.disabled = farther.disabled = sight.zoom < 1e-6;
    nearer.disabled = sight.zoom > most() - 1e-6;
    point(null);
    clearTimeout(later);
    if (many) later = setTimeout(sharpen, 150);
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(drawVehicles);
  };
  const look = (middle, zoom) => {
    following = true;
    Object.assign(sight, { middle, zoom });
    Object.values(maps).forEach(fit);
    moved();
  };
  const follow = (one) => {
    if (following) return;
    following = true;
    Object.assign(sight, { middle: one.map.getCenter(), zoom: one.map.getZoom() - one.whole });
    for (const other of Object.values(maps)) if (other !== one && "whole" in other) other.map.setView(sight.middle, other.whole + sight.zoom, { animate: false });
    moved();
  };
  const resized = new ResizeObserver(() => look(sight.middle, sight.zoom));
  const wholeCity = () => look(bounds(box).getCenter(), 0);
  const button = (textContent, ariaLabel, act) => {
    const made = make("button", { type: "button", textContent, ariaLabel });
    made.addEventListener("click", act);
    return made;
  };
  const nearer = button("+", "Zoom in", () => look(sight.middle, Math.min(most(), sight.zoom + 1)));
  const farther = button("\u2212", "Zoom out", () => look(sight.middle, Math.max(0, sight.zoom - 1))), wholeButton = button("Whole city", "Show the whole city", wholeCity);
  // How far from a line or a point it is pointed at: pixels, as wide as it is drawn; of very many at least one pixel.
  const HALF = { area: 0, line: 4, point: 7 };
  const cellAt = (map, { lat, lng }) => cells.at(lng, -lat, many ? Math.max(cells.half / 2 ** sight.zoom, 1.2 / 2 ** map.getZoom()) : HALF[city.kind] / 2 ** map.getZoom());
  let meant = false; // whether the pointer has moved on a map since the page was scrolled
  window.addEventListener("scroll", () => { meant = false; }, { passive: true });
  const open = (node, name) => {
    const distance = (a, b) => city.metres * Math.hypot(a.lat - b.lat, a.lng - b.lng);
    const map = L.map(node, {
      crs: L.extend({}, L.CRS.Simple, { distance }), maxBounds: bounds(box), maxBoundsViscosity: 1, zoomSnap: 0, wheelPxPerZoomLevel: 150, zoomControl: false, doubleClickZoom: false, attributionControl: false,
      zoomAnimation: false, inertia: false, trackResize: false, dragging: !window.matchMedia("(pointer: coarse)").matches, // one finger scrolls the page
    });
    const one = { map, layers: L.layerGroup().addTo(map) };
    if (city.metres) {
      L.control.scale({ imperial: false }).addTo(map);
      L.control.attribution({ prefix: "N \u2191" }).addTo(map);
    }
    node.setAttribute("role", "application");
    node.setAttribute("aria-label", "Map of the " + name + ": arrow keys move all maps, + and \u2212 zoom, Enter shows the cell in the middle over time");
    map.on({
      move: () => follow(one),
      mousemove: ({ latlng, originalEvent }) => point(cellAt(map, latlng), originalEvent),
      mouseout: () => point(null),
      click: ({ latlng }) => pick(cellAt(map, latlng)),
      keydown: ({ originalEvent: { key, target } }) => { if (key === "Enter" && target === node) pick(cellAt(map, map.getCenter())); },
    });
    // Who moves the pointer on a map means the map. Who scrolls the page goes on scrolling it, also where a map comes
    // below the pointer, and where no map can be farther.
    node.addEventListener("pointermove", (event) => { meant ||= event.movementX !== 0 || event.movementY !== 0; });
    node.addEventListener("wheel", (event) => {
      const zooms = meant || event.ctrlKey || event.metaKey;
      if (zooms && (event.deltaY < 0 || sight.zoom > 0.01)) return;
      event.stopPropagation();
      if (zooms) return;
      node.dataset.say = "Move the pointer, or hold Ctrl (or \u2318), to zoom with the wheel";
      clearTimeout(one.said);
      one.said = setTimeout(() => delete node.dataset.say, 1200);
    }, { capture: true, passive: true });
    resized.observe(node);
    return one;
  };
  // The layers of a map, from below: water and `under`, a canvas, `over`, the outlines of cells, and names.
  const lay = (name, node, canvas, under, over) => {
    const one = (maps[name] = maps[name] || open(node, name)), sheet = (...children) => shape("svg", { viewBox: box.join(" "), "font-family": "sans-serif", "aria-hidden": "true" }, ...children);
    const outline = (kind) => shape("path", { class: kind, fill: "none", "vector-effect": "non-scaling-stroke", "stroke-linecap": "round", "stroke-linejoin": "round" });
    node.classList.remove("area", "line", "point");
    node.classList.add(city.kind);
    Object.assign(one, surroundings(), { node, canvas, on: outline("on"), picked: outline("picked") });
    one.below = sheet(one.water, ...under);
    one.svg = sheet(...over, one.picked, one.on, one.names, ...legend());
    one.layers.clearLayers();
    for (const layer of [one.below, one.svg]) L.svgOverlay(layer, bounds(box)).addTo(one.layers);
    one.below.style.zIndex = 1;
    return one;
  };
  // One SVG of a whole map, to be saved.
  const saved = (one, canvas, [x, y, width, height], more) => {
    const copy = one.svg.cloneNode(true);
    copy.querySelectorAll(".on, .picked, .edges").forEach((node) => node.remove());
    if (canvas) copy.prepend(shape("image", { href: canvas.toDataURL(), x, y, width, height, ...more }));
    copy.prepend(...one.below.cloneNode(true).childNodes);
    return copy;
  };
  const SHOWN = 0.8; // opacity of cells that are areas, so that the roads beneath them are seen
  const draw = () => {
    many = city.paths.length > Cells.MANY;
    if (!city.paths.length) {
      byId("maps").hidden = byId("moves").hidden = true;
      byId("values-box").open = true;
      return;
    }
    byId("panels").classList.toggle("wide", city.width > 2.4 * city.height);
    const edge = city.kind === "point" ? 40 : 8; // points are as large on paper whatever they stand for
    const wide = { area: 0.6, line: 3, point: 11 }[city.kind];
    box = [-edge, -edge, city.width + 2 * edge, city.height + edge + (city.metres ? 58 : edge)];
    byId("maps").style.setProperty("--ratio", box[2] / box[3]);
    sight.middle = sight.middle || bounds(box).getCenter();
    cells = Cells.of(city);
    raster = overview = many ? cells.raster(box, 1, Cells.FEW) : null;
    for (const panel of panels) {
      const node = document.querySelector('[data-panel="' + panel + '"]'), before = maps[panel];
      shapes[panel] = (many ? [] : city.paths).map((path, i) => shape("path", { d: path, "vector-effect": "non-scaling-stroke", "stroke-width": wide, "stroke-linecap": "round", "data-i": i }));
      const dense = city.roads.reduce((sum, [, path]) => sum + path.length, 0) > 60000 ? 0.45 : 1; // thinner, so that cells show
      const roads = shape("g", { class: "roads", fill: "none", "stroke-linejoin": "round" });
      for (const [name, path] of city.roads) roads.append(shape("path", { d: path, "stroke-width": WIDTHS[name] * dense, "vector-effect": "non-scaling-stroke" }));
      const drawn = shape("g", city.kind === "area" ? { "fill-opacity": SHOWN } : { fill: "none" });
      for (const cell of shapes[panel]) drawn.append(cell); // one by one: too many to be arguments of one call
      const one = Object.assign(lay(panel, node, many ? make("canvas") : null, [roads], [drawn]), { roads });
      one.svg.setAttribute("role", "img");
      one.svg.removeAttribute("aria-hidden");
      if (many) one.overlay = L.svgOverlay(one.canvas, bounds(box), { className: "cells" }).addTo(one.layers);
      one.file = () => saved(one, many && cells.raster(box, 1).paint(make("canvas"), hues[panel]), box, city.kind === "area" ? { opacity: SHOWN } : {});
      if (!before) node.after(Charts.tools("map of the " + panel, {
        SVG: () => Charts.saveSvg(one.file(), panel),
        PNG: () => Charts.savePng(one.file(), panel),
        CSV: () => Charts.saveCsv([["cell", "name", "truth", "estimate", "lower", "upper", "error"], ...city.cells.map((cell, i) => [cell, city.names[i], current.truth[i], current.estimate[i], current.lower[i], current.upper[i], current.errors[i] === null ? null : Number(current.errors[i].toFixed(6))])], "cells"),
      }));
    }
  };

  const paint = () => {
    for (const panel of panels) {
      if (many) {
        raster.paint(maps[panel].canvas, hues[panel]);
        maps[panel].overlay.setBounds(bounds(raster.box));
      } else shapes[panel].forEach((node, i) => node.setAttribute(city.kind === "area" ? "fill" : "stroke", hues[panel](i)));
    }
  };
  // Pixels of the part in sight, and some around it, once those at hand are too coarse.
  const sharpen = () => {
    const { map } = maps.truth, [left, top, width, height] = part(maps.truth, map.getCenter(), map.getZoom());
    const fits = (one) => (one.scale >= window.devicePixelRatio * 2 ** map.getZoom() || one.zoom === 2 ** sight.zoom) && [0, 1].every((k) => [left, top][k] >= one.box[k] - 1 && [left + width, top + height][k] <= one.box[k] + one.box[k + 2] + 1);
    if (fits(raster)) return;
    const from = [Math.max(box[0], left - width / 2), Math.max(box[1], top - height / 2)];
    const to = [Math.min(box[0] + box[2], left + 1.5 * width), Math.min(box[1] + box[3], top + 1.5 * height)];
    raster = sight.zoom < 1e-6 || fits(overview) ? overview : cells.raster([...from, to[0] - from[0], to[1] - from[1]], 2 ** sight.zoom);
    paint();
  };
  const tint = () => {
    for (const panel of panels) {
      tinted(maps[panel]);
      maps[panel].roads.setAttribute("stroke", ramps().road);
      if (!many && city.kind === "area") maps[panel].svg.firstChild.setAttribute("stroke", ramps().edge);
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

  // Colours by number: as many steps of colour from 0 to the scale's end, whatever the scale.
  const SCALES = { linear: (value) => value, "square-root": Math.sqrt, logarithmic: Math.log1p };
  const places = (onScale, top) => (value) => onScale(Math.max(0, value)) / onScale(top);
  const shortly = (value) => Charts.fixed(value, Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : Math.abs(value) < 1 ? 2 : 1);
  // Round values at their places on a scale, with room for their words, and the scale's ends.
  const ticks = (place, top, room, least) => {
    const kept = [top];
    for (let unit = 10 ** Math.floor(Math.log10(top)); unit >= Math.max(least, top / 1e6); unit /= 10) for (const factor of [5, 2, 1]) {
      const value = Number((factor * unit).toPrecision(1));
      if (place(kept[0]) - place(value) >= room && place(value) >= room) kept.unshift(value);
    }
    return [0, ...kept];
  };
  const ramp = (colours, words, marks, opacity = 1) => {
    const bar = make("div", { className: "ramp" });
    bar.style.background = "linear-gradient(90deg," + colours.join(",") + ")";
    bar.style.opacity = opacity;
    const ends = make("div", { className: "ends" }, ...marks.map(([place, text]) => {
      const mark = make("span", { textContent: text });
      mark.style.left = 100 * place + "%";
      mark.style.transform = "translateX(" + -100 * place + "%)"; // inside the bar at its ends
      return mark;
    }));
    return [bar, ends, make("div", { textContent: words })];
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
      tint();
      const { many: MANY, error: RDBU, missing: MISSING } = ramps(), { top, scale, unit, counts } = now.campaign;
      const share = places(SCALES[scale], top);
      hues = {
        truth: (i) => (now.truth[i] === null ? MISSING : colourOf(MANY, share(now.truth[i]))),
        estimate: (i) => (now.estimate[i] === null ? MISSING : colourOf(MANY, share(now.estimate[i]))),
        error: (i) => (error[i] === null ? MISSING : colourOf(RDBU, 0.5 + error[i] / (2 * now.reach))),
      };
      paint();
      for (const panel of panels) {
        const words = { truth: "Truth, ", estimate: "Estimate by " + label(state.mechanism) + ", ", error: "Error of " + label(state.mechanism) + ", " };
        maps[panel].svg.setAttribute("aria-label", words[panel] + now.title + ", map of " + city.cells.length + " cells");
      }
      document.querySelector('[data-words="truth"]').textContent = now.campaign.words;
      const marks = ticks(share, top, 0.16, counts ? 1 : 0), away = ticks(places(SCALES.linear, now.reach), now.reach, 0.5, 0);
      const words = scale + " scale, " + unit, signs = counts ? ": blue too few, red too many" : ": blue too slow, red too fast";
      const ends = (value, sign) => (value === (sign ? now.reach : top) ? (sign < 0 ? "\u2264 " : "\u2265 ") : "") + (sign && value ? (sign < 0 ? "\u2212" : "+") : "") + shortly(value);
      const half = (sign) => away.slice(sign > 0 ? 0 : 1).map((value) => [0.5 + (sign * value) / (2 * now.reach), ends(value, sign)]);
      const legends = {
        truth: [MANY, words, marks.map((value) => [share(value), shortly(value)])],
        estimate: [MANY, words, marks.map((value) => [share(value), value ? ends(value, 0) : "\u2264 0"])],
        error: [RDBU, "linear scale, " + unit + signs, [...half(-1), ...half(1)]],
      };
      for (const panel of panels) document.querySelector('[data-scale="' + panel + '"]').replaceChildren(...ramp(...legends[panel], city.kind === "area" ? SHOWN : 1));
      const cut = [];
      if (below) cut.push(below + (below === 1 ? " estimate is" : " estimates are") + " below 0");
      if (above) cut.push(above + (above === 1 ? " is" : " are") + (counts ? " above the most " + unit + " any cell ever held" : " above the highest speed of any cell"));
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
    showCell();
    if (byId("values-box").open) fillTable(now);
  };

  const ROWS = 5000; // a browser takes many seconds to lay out 100,000
  const fillTable = (now) => {
    const error = now.errors, size = (i) => (error[i] === null ? -1 : Math.abs(error[i])), all = city.cells.map((_, i) => i);
    const chosen = all.length > ROWS ? all.sort((i, j) => size(j) - size(i)).slice(0, ROWS) : all;
    const part = all.length > ROWS ? ": the " + whole(ROWS) + " of " + whole(all.length) + " cells with the largest errors; the CSV file of a map has all" : "";
    tabulate(byId("values"), label(state.mechanism) + ", " + now.title + part, ["Cell"],
      chosen.map((i) => [cellName(i), now.truth[i], now.estimate[i], now.lower[i], now.upper[i]]));
  };
  // A table of rows [name, truth, estimate, lower, upper].
  const tabulate = (box, caption, heads, rows) => {
    const head = [...heads, "Truth", "Estimate", "Interval from", "to", "Error"].map((text) => make("th", { scope: "col", textContent: text }));
    const body = rows.map(([name, truth, estimate, lower, upper]) => make("tr", {}, make("th", { scope: "row", textContent: name }),
      ...[amount(truth), fine(estimate), fine(lower), fine(upper), signed(minus(estimate, truth))].map((text) => make("td", { textContent: text }))));
    box.replaceChildren(make("table", {}, make("caption", { textContent: caption }), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
  };
  const minus = (estimate, truth) => (truth === null || estimate === null ? null : estimate - truth);

  // ---- pointing at a cell, and one cell over all queries -------------------------------------------------------
  const outline = (kind, i) => { for (const one of Object.values(maps)) one[kind].setAttribute("d", i === null ? "" : city.paths[i]); };
  const point = (i, event) => {
    if (i !== pointed) outline("on", (pointed = i));
    if (i === null) return Charts.hide();
    const { truth, estimate, lower, upper } = current;
    return Charts.say(event, [cellName(i), "Truth " + amount(truth[i]), "Estimate " + fine(estimate[i]),
      "95 % interval " + fine(lower[i]) + " to " + fine(upper[i]), "Error " + signed(minus(estimate[i], truth[i]))].join("\n"));
  };
  const pick = (i) => {
    state.cell = i === null || city.cells[i] === state.cell ? null : city.cells[i];
    showCell();
    remember();
    byId("series").scrollIntoView({ block: "nearest" });
  };
  const showCell = () => {
    const i = city.cells.indexOf(state.cell), figure = byId("series"), { campaign, mechanism, truth, estimate, lower, upper } = current;
    figure.hidden = i < 0;
    if (city.paths.length) outline("picked", i < 0 ? null : i);
    if (i < 0) return;
    const name = cellName(i) + ", " + label(state.mechanism), truths = campaign.truths[mechanism.truth];
    byId("series-name").textContent = name;
    byId("series-now").textContent = "Q" + current.title.slice(1) + ": truth " + amount(truth[i]) + ", estimate " + fine(estimate[i]) + (lower[i] === null ? "" : ", 95 % interval " + fine(lower[i]) + " to " + fine(upper[i])) + ", error " + signed(minus(estimate[i], truth[i])) + ".";
    byId("series-box").hidden = byId("series-plot").hidden = campaign.queries.length === 1;
    const shown = [campaign.name, state.mechanism, state.asked, state.cell].join("\n");
    if (campaign.queries.length === 1 || figure.dataset.shown === shown) return;
    figure.dataset.shown = shown;
    const rows = campaign.queries.map((query, q) => ["Query " + query + ", " + clock(campaign.times[q]), ...[truths, mechanism.estimate, mechanism.lower, mechanism.upper].map((values) => values[q][i])]);
    const x = campaign.times.map((time) => time / 60), [y, guess, low, high] = [1, 2, 3, 4].map((column) => rows.map((row) => row[column] ?? NaN));
    const style = page.looks[state.mechanism], plain = { colour: "#3d4852", symbol: "circle" }, place = byId("series-chart");
    const chart = { height: 300, x: { title: page.minutes }, y: { title: campaign.unit, from_zero: true }, series: [
      ...(low.some(Number.isFinite) ? [{ name: "95 % interval", mark: "band", style, x, low, high }] : []), { name: "estimate", mark: "points", style, x, y: guess }, { name: "truth", mark: "line", style: plain, x, y }] };
    Charts.add(place, chart, "cell-over-time");
    place.setAttribute("aria-label", name + ": truth, estimate and 95 % interval by query");
    tabulate(byId("series-table"), name, ["Query"], rows);
  };

  // ---- the vehicles ------------------------------------------------------------------------------------------
  const STATES = [["waiting to enter", 1], ["driving", 2], ["standing in a queue", 3], ["parked", 4], ["asked now", 5]];
  const LOOKS = {
    light: { guessed: "#8a2f9e", right: "#0b5c45", wrong: "#b86e1d", states: ["#000000", "#6b7785", "#12324f", "#c0392b", "#8a94a0", "#e08a00"], quiet: "#d3dae0", ramp: ["#cfe0ea", "#b5d6d0", "#c7dfa5", "#f1dd7e", "#f4b95a", "#ea8a45", "#d9573f", "#a81f3a"] },
    dark: { guessed: "#d9a0f0", right: "#7fd6b5", wrong: "#e0a96d", states: ["#ffffff", "#8d99a6", "#cfe3f7", "#ff7d6b", "#77838f", "#ffc247"], quiet: "#38434e", ramp: ["#2c4250", "#2f5a5a", "#4b6b3d", "#7c6f2b", "#96682a", "#ad5730", "#c34a3f", "#e8475f"] },
  };
  const MEASURES = { density: ["vehicles on each link", "vehicles per km and lane"], queue: ["queues at the end of each link", "vehicles standing"], volume: ["volume of each link in the interval", "vehicles per hour"], lost: ["speed lost on each link in the interval", "% of the free-flow speed"], none: ["the roads alone", ""] };
  let motion = null, lit = null, pulse = 0;
  let stage = {};
  const timeBox = make("input", { type: "range", id: "choose-time", min: "0", step: "1", ariaLabel: "Time" }), timeWords = make("output", { id: "time-words" });
  const speedBox = make("select", { id: "choose-speed", ariaLabel: "Speed" }), roadsBox = make("select", { id: "choose-roads" }), guessBox = make("select", { id: "choose-guess" });

  // The outlines of the cells over the vehicles, which have no colour.
  const layStage = (canvas) => {
    const marks = shape("g", {}), edges = shape("path", { class: "edges", d: city.kind === "area" && !many ? city.paths.join("") : "", fill: "none", "vector-effect": "non-scaling-stroke" });
    stage = Object.assign(lay("vehicles", byId("stage"), canvas, [], [edges, marks]), { marks });
  };
  const prepare = async () => {
    if (!page.motion) return;
    layStage(make("canvas", { id: "vehicles", role: "img" }));
    stage.map.getPanes().overlayPane.append(stage.canvas);
    motion = Motion.shown = await Motion.open(stage.canvas, page.motion, [city.width, city.height]);
    motion.end = Math.max(motion.end, ...page.campaigns.flatMap((campaign) => campaign.times)); // vehicles may have parked before
    // All of it, whatever part is in sight.
    const whole = () => {
      paintVehicles(bounds(box).getCenter(), stage.whole);
      const copy = saved(stage, stage.canvas, motion.box);
      drawVehicles();
      return copy;
    };
    const places = () => motion.places(state.time).map(([vehicle, x, y, kind]) => [vehicle, x.toFixed(2), y.toFixed(2), STATES[kind - 1][0]]);
    byId("motion-scale").before(Charts.tools("vehicles at this time", {
      SVG: () => Charts.saveSvg(whole(), "vehicles"),
      PNG: () => Charts.savePng(whole(), "vehicles"),
      CSV: () => Charts.saveCsv([["vehicle", "x", "y", "state"], ...places()], "vehicles"),
    }));
    timeBox.max = Math.ceil(motion.end);
    for (const factor of [1, 5, 15, 60, 240]) speedBox.append(make("option", { value: factor, textContent: factor === 1 ? "real time" : factor + " \u00d7 as fast" }));
    speedBox.value = motion.end > 1800 ? 60 : 15;
    for (const name of [...motion.measures, "none"]) roadsBox.append(make("option", { value: name, textContent: MEASURES[name][0] }));
    byId("motion-scale").after(make("div", { className: "controls" },
      ...(motion.measures.length ? [field("Colour of the roads", "choose-roads", roadsBox)] : []),
      ...(page.motion.guesses.length ? [field("A coalition\u2019s guess about one vehicle", "choose-guess", guessBox)] : [])));
    roadsBox.addEventListener("change", drawVehicles);
    guessBox.addEventListener("change", drawVehicles);
    timeBox.addEventListener("input", () => choose({ time: Number(timeBox.value) }));
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

  // A canvas as large as the map, which stays in its place while what is beneath moves.
  let shines = false;
  const paintVehicles = (middle, zoom) => {
    const { map, canvas } = stage, { x, y } = map.getSize();
    Object.assign(canvas.style, { width: x + "px", height: y + "px" });
    L.DomUtil.setPosition(canvas, map.containerPointToLayerPoint([0, 0]));
    motion.box = part(stage, middle, zoom);
    motion.draw(state.time, { lit: shines, pulse, measure: roadsBox.value, looks: LOOKS[Charts.dark() ? "dark" : "light"] });
  };
  const drawVehicles = () => {
    if (!motion || !current || !("whole" in stage)) return;
    const campaign = page.campaigns[state.campaign], at = campaign.asked[state.query], looks = LOOKS[Charts.dark() ? "dark" : "light"];
    shines = pulse > 0 || (state.time >= at && state.time <= campaign.times[state.query]);
    if (shines && lit !== at) stage.asked = motion.ask((lit = at));
    tinted(stage);
    paintVehicles(stage.map.getCenter(), stage.map.getZoom());
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
    const measure = roadsBox.value, top = motion.tops[measure];
    byId("motion-scale").replaceChildren(...(top ? ramp(looks.ramp, "linear scale, " + MEASURES[measure][1], [[0, "0"], [1, "\u2265 " + whole(top)]]) : []), make("div", {}, ...key));
  };

  // ---- the controls, and the same choice in the address: #query=3&mechanism=randomized -------------------------
  const campaignBox = make("select", { id: "choose-campaign" }), mechanismBox = make("select", { id: "choose-mechanism" });
  const queryBox = make("input", { type: "range", id: "choose-query", min: "0", step: "1" });
  const queryWords = make("output", { id: "query-words" });
  const before = button("\u2039", "Previous query", () => choose({ query: state.query - 1 })), after = button("\u203a", "Next query", () => choose({ query: state.query + 1 }));
  const play = Object.assign(button("\u25b6", "Play the queries", () => (playing === null ? start() : stop())), { id: "play" });
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
    byId("moves").prepend(nearer, farther, wholeButton);
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
      if (motion) layStage(stage.canvas);
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
    if (state.cell !== null) words.set("cell", state.cell);
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
    state.cell = words.has("cell") ? Number(words.get("cell")) : null;
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
  if (city.paths.length) wholeCity();
  obey();
  state.time = page.campaigns[state.campaign].times[state.query];
  refresh();
  campaignBox.addEventListener("change", () => choose({ campaign: Number(campaignBox.value) }));
  mechanismBox.addEventListener("change", () => choose({ mechanism: mechanismBox.value }));
  queryBox.addEventListener("input", () => choose({ query: Number(queryBox.value) }));
  sameBox.addEventListener("change", () => choose({ same: sameBox.checked }));
  askedBox.addEventListener("change", () => choose({ asked: askedBox.checked }));
  byId("values-box").addEventListener("toggle", show);
  Charts.onLooks(show);
  window.addEventListener("hashchange", () => { obey(); refresh(); });
  byId("series-close").addEventListener("click", () => {
    pick(null);
    maps.truth.map.getContainer().focus();
  });
  // Paper shows the whole city, whatever part is in sight.
  let seen = null;
  window.addEventListener("beforeprint", () => {
    if (!city.paths.length) return;
    seen = { ...sight };
    wholeCity();
    if (many) sharpen();
    drawVehicles();
  });
  window.addEventListener("afterprint", () => seen && look(seen.middle, seen.zoom));
  document.documentElement.dataset.report = "ready";
})();
