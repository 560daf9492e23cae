"use strict";
// Charts as SVG, of the values that simulator/pages/charts/spec.py describes: what a value leaves out has the default stated there.
const Charts = (() => {
  const SVG = "http://www.w3.org/2000/svg", FONT = 13, CHARACTER = 7;
  const DASHES = { dot: "2 4", dash: "8 5", dashdot: "8 4 2 4", longdash: "14 6", longdashdot: "14 5 2 5" };
  const DARK = {
    "#0072B2": "#4f9fe0", "#D55E00": "#ff8a3c", "#009E73": "#2fc79a", "#CC79A7": "#e79cc6", "#6E5A00": "#c9ae3a",
    "#56B4E9": "#a5dcff", "#000000": "#f2f2f2", "#7b8794": "#98a4b0", "#3d4852": "#c3ccd5", "#1f2933": "#e6ebf0",
    "#fff": "#14191f", "#f5f7f9": "#1d242c", "#0b5c8a": "#6cb6e0",
  };
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  const dark = () => scheme.matches && !printing;
  const tint = (colour) => (!dark() || !colour ? colour : DARK[colour] || colour);
  const ink = () => tint("#1f2933"), soft = () => (dark() ? "#aab6c2" : "#52606d"), grid = () => (dark() ? "#2b343d" : "#e4e9ed"), edge = () => (dark() ? "#5b6875" : "#9aa5b1");

  const node = (tag, attributes, ...children) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== "") made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const label = (x, y, text, attributes = {}) => node("text", { x, y, fill: soft(), ...attributes }, text);
  const width = (text) => CHARACTER * text.length;

  // ---- numbers -------------------------------------------------------------------------------------------------
  const minus = (text) => text.replace(/-(?=[\d.])/g, "\u2212");
  const formats = new Map(); // making one takes longer than all that it writes
  const written = (value, least, most) => {
    const key = 100 * least + most;
    if (!formats.has(key)) formats.set(key, new Intl.NumberFormat("en", { minimumFractionDigits: least, maximumFractionDigits: most }));
    return minus(formats.get(key).format(value));
  };
  const fixed = (value, digits) => Math.abs(value) >= 1e12 ? short(value) : written(value, digits, digits);
  const power = (exponent) => "10" + minus(String(exponent)).replace(/./g, (sign) => "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["\u22120123456789".indexOf(sign)]);
  const short = (value) => {
    const size = Math.abs(value);
    if (!Number.isFinite(value)) return value > 0 ? "\u221e" : value < 0 ? "\u2212\u221e" : "\u2013";
    if (size && (size < 1e-3 || size >= 1e7)) {
      const [factor, exponent] = value.toExponential(2).split("e").map(Number);
      return (factor === 1 ? "" : minus(String(factor)) + " \u00d7 ") + power(exponent);
    }
    return written(Number(value.toPrecision(6)), 0, 6);
  };
  // As a reader points at it: every digit of a whole number, four of another.
  const precise = (value) => short(Number.isInteger(value) ? value : Number(value.toPrecision(4)));

  // ---- axes ----------------------------------------------------------------------------------------------------
  const steps = (low, high, most) => {
    const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
    return unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough * 0.999);
  };
  // An axis places values between 0 and 1, has ticks, [place, text], and states a value in words.
  const axisOf = (axis, values, { pad, most }) => {
    const { log, share, ticks: given } = axis, onScale = log ? Math.log10 : (value) => value;
    const shown = values.filter((value) => Number.isFinite(value) && (!log || value > 0)).map(onScale);
    let [low, high] = axis.ends ? axis.ends.map(onScale) : [shown.reduce((a, b) => Math.min(a, b), Infinity), shown.reduce((a, b) => Math.max(a, b), -Infinity)];
    if (!Number.isFinite(high - low)) [low, high] = [0, 1];
    if (!axis.ends) {
      if (low === high) [low, high] = log ? [low - 0.5, high + 0.5] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
      const margin = pad * (high - low), bottom = low;
      [low, high] = [low - margin, high + margin];
      if (axis.from_zero && bottom >= 0) low = 0;
    }
    const at = (value) => ((log ? (value > 0 ? Math.log10(value) : -Infinity) : value) - low) / (high - low), span = Math.abs(high - low);
    const told = (value) => {
      const tick = (given || []).find(([place]) => place === (axis.names ? Math.round(value) : value));
      return tick ? tick[1] : share ? fixed(100 * value, 1) + "%" : precise(value);
    };
    let ticks = [];
    if (given) ticks = given.map(([value, text]) => [at(value), text]);
    else if (log) {
      // Over few decades, values between the powers of ten have ticks too.
      const factors = span < 1.2 ? [1, 1.5, 2, 3, 4, 5, 7] : span < 2.5 ? [1, 2, 5] : [1], every = Math.max(1, Math.ceil(span / most));
      for (let exponent = Math.floor(low); exponent <= high; exponent += 1) {
        if (factors.length > 1 || exponent % every === 0) for (const factor of factors) ticks.push([at(factor * 10 ** exponent), short(Number((factor * 10 ** exponent).toPrecision(6)))]);
      }
    } else {
      const step = steps(low, high, most), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), first = Math.ceil(low / step - 1e-9);
      // At most so many: beside a large number, a step may be too small to count by.
      for (let i = 0; (first + i) * step <= high + 1e-9 * step && i < 1000; i += 1) {
        const value = (first + i) * step || 0; // not -0
        ticks.push([at(value), share ? fixed(100 * value, Math.max(0, digits - 2)) + "%" : digits > 6 ? short(value) : fixed(value || 0, digits)]);
      }
    }
    ticks = ticks.filter(([place]) => place > -1e-6 && place < 1 + 1e-6);
    return { at, told, ticks, zero: !log && low < 0 && high > 0 ? at(0) : null, base: log ? 0 : Math.max(0, at(0)) };
  };

  // ---- marks ---------------------------------------------------------------------------------------------------
  const OUTLINES = {
    circle: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    square: (r) => `M${-r * 0.9} ${-r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}Z`,
    diamond: (r) => `M0 ${-r * 1.3}L${r * 1.3} 0L0 ${r * 1.3}L${-r * 1.3} 0Z`,
    triangle: (r) => `M0 ${-r * 1.2}L${r * 1.15} ${r * 0.8}L${-r * 1.15} ${r * 0.8}Z`,
    x: (r) => crossed(r, Math.PI / 4),
    cross: (r) => crossed(r, 0),
    star: (r) => "M" + Array.from({ length: 10 }, (_, i) => [i % 2 ? r * 0.5 : r * 1.3, (i * Math.PI) / 5]).map(([size, turn]) => `${size * Math.sin(turn)} ${-size * Math.cos(turn)}`).join("L") + "Z",
  };
  const crossed = (r, turn) => {
    const arm = 1.2 * r, half = 0.4 * r;
    const corners = [[-half, -arm], [half, -arm], [half, -half], [arm, -half], [arm, half], [half, half], [half, arm], [-half, arm], [-half, half], [-arm, half], [-arm, -half], [-half, -half]];
    return "M" + corners.map(([x, y]) => `${x * Math.cos(turn) - y * Math.sin(turn)} ${x * Math.sin(turn) + y * Math.cos(turn)}`).join("L") + "Z";
  };
  const symbol = ({ symbol: name, colour, hollow }, size) => ({ d: OUTLINES[name](size / 2), fill: hollow ? "none" : tint(colour), stroke: hollow ? tint(colour) : size > 5 ? tint("#fff") : "none", "stroke-width": hollow ? 1.5 : 0.8 });

  // ---- one chart -----------------------------------------------------------------------------------------------
  const has = ({ mark }, ...marks) => marks.includes(mark);
  const finite = (...values) => values.every((value) => value !== null && Number.isFinite(value));
  const end = (series, side, i) => (series[side] ? series[side][i] : null);
  const nameOf = (series) => (series.legend === undefined ? series.name : series.legend);
  // What one point says, where a reader points at it.
  const told = (chart, x, y, series, i) => {
    const value = chart.sideways ? x : y, ends = ["low", "high"].map((side) => end(series, side, i));
    const between = (axis) => (axis === value && finite(...ends) ? ` (${ends.map(axis.told).join(" to ")})` : "");
    const bound = series.bounds && series.bounds[i] ? "\u2264 " : "";
    const lines = [[x, chart.x.title, series.x[i]], [y, chart.y.title, series.y[i]]].map(([axis, title, at]) => `${title}: ${axis === value ? bound : ""}${axis.told(at)}${between(axis)}`);
    return [series.name, ...(series.texts ? [series.texts[i]] : []), ...lines].join("\n");
  };

  const build = (chart, total) => {
    const { series: every, sideways, height: asked = 330, legend = true } = chart;
    const along = (letter) => every.flatMap((series) => {
      const values = [...(series[letter] || [])];
      if ((letter === "x") === Boolean(sideways)) values.push(...(series.low || []), ...(series.high || []));
      if (letter === "y" && has(series, "bars") && !chart.y.log) values.push(0);
      return values.filter((value) => value !== null);
    });
    const marked = every.some((series) => has(series, "points", "linked", "bars"));
    const yAxis = chart.shared_ends && !chart.apart ? { ...chart.y, ends: chart.shared_ends } : chart.y;
    const y = axisOf(yAxis, along("y"), { pad: 0.06, most: asked / 55 });
    const left = Math.min(total * 0.4, Math.max(30, ...y.ticks.map(([, text]) => width(text))) + 38), right = 16;
    const x = axisOf(chart.x, along("x"), { pad: marked ? 0.05 : 0, most: Math.max(5, (total - left) / 85) });
    const inner = total - left - right;
    const places = x.ticks.map(([place]) => place * inner).sort((a, b) => a - b);
    const room = Math.min(inner, ...places.slice(1).map((place, i) => place - places[i]));
    const longest = Math.max(0, ...x.ticks.map(([, text]) => width(text)));
    const even = !chart.x.ticks && longest > room - 6;
    if (even) x.ticks = x.ticks.filter((_, i) => i % Math.ceil((longest + 6) / room) === 0);
    const turned = !even && longest > room - 4;

    const keys = new Map(), rows = [[]];
    for (const series of legend ? every : []) if (nameOf(series)) keys.set(nameOf(series), [...(keys.get(nameOf(series)) || []), series]);
    let filled = 0;
    for (const [text, alike] of keys) {
      const size = 50 + width(text);
      if (filled && filled + size > total - 16) { rows.push([]); filled = 0; }
      rows[rows.length - 1].push([filled, text, alike]);
      filled += size;
    }
    const top = 12 + (keys.size ? 20 * rows.length + 6 : 0), bottom = 46 + (turned ? Math.min(110, 0.6 * longest) : 0);
    const tall = Math.max(asked - top - bottom, 140), height = top + tall + bottom; // a long legend needs room of its own
    const px = (value) => left + x.at(value) * inner, py = (value) => top + (1 - y.at(value)) * tall;
    const wide = (value) => Math.abs(x.at(value) - x.at(0)) * inner;
    const svg = node("svg", { class: "chart", viewBox: `0 0 ${total} ${height}`, width: total, height, "font-size": FONT, "font-family": getComputedStyle(document.body).fontFamily, "aria-hidden": "true" });
    const points = [];

    for (const [place, text] of x.ticks) {
      const across = left + place * inner;
      svg.append(node("path", { d: `M${across} ${top}V${top + tall + 4}`, stroke: grid() }));
      const turn = turned ? { transform: `rotate(-35 ${across} ${top + tall + 16})`, "text-anchor": "end" } : { "text-anchor": "middle" };
      svg.append(label(across, top + tall + 18, text, turn));
    }
    for (const [place, text] of y.ticks) {
      const down = top + (1 - place) * tall;
      svg.append(node("path", { d: `M${left - 4} ${down}H${left + inner}`, stroke: grid() }), label(left - 8, down + 4.5, text, { "text-anchor": "end" }));
    }
    for (const [at, text] of chart.y.headings || []) svg.append(label(left + 6, py(at) + 4.5, text, { fill: ink(), "font-weight": "bold" }));
    if (y.zero !== null) svg.append(node("path", { d: `M${left} ${top + (1 - y.zero) * tall}h${inner}`, stroke: edge(), "stroke-width": 1.4 }));
    svg.append(node("path", { d: `M${left} ${top}v${tall}h${inner}`, stroke: edge(), fill: "none" }));
    svg.append(label(left + inner / 2, height - 6, chart.x.title, { "text-anchor": "middle", fill: ink() }));
    svg.append(label(0, 0, chart.y.title, { "text-anchor": "middle", fill: ink(), transform: `translate(14 ${top + tall / 2}) rotate(-90)` }));

    const clip = "clip-" + Math.random().toString(36).slice(2);
    svg.append(node("clipPath", { id: clip }, node("rect", { x: left - 8, y: top - 8, width: inner + 16, height: tall + 16 })));
    const marks = node("g", { "clip-path": `url(#${clip})` });
    svg.append(marks);
    const line = (spots) => {
      let path = "", joined = false;
      for (const [across, down] of spots) {
        if (finite(across, down)) path += (joined ? "L" : "M") + across.toFixed(2) + " " + down.toFixed(2);
        joined = finite(across, down);
      }
      return path;
    };
    const stroke = ({ style, thin }) => ({ fill: "none", stroke: tint(style.colour), "stroke-width": thin ? 1 : 2.2, "stroke-dasharray": DASHES[style.dash], "stroke-linejoin": "round" });
    const block = ({ colour, hollow }) => ({ fill: hollow ? "none" : tint(colour), stroke: tint(colour), "stroke-width": 1.8 });
    const shade = ({ colour }) => ({ fill: tint(colour), "fill-opacity": 0.12, stroke: tint(colour), "stroke-opacity": 0.5, "stroke-width": 0.8 });
    // A line from one end of an interval to the other, with a short line across each.
    const interval = (series, i) => {
      const [low, high] = ["low", "high"].map((side) => end(series, side, i));
      if (!finite(low, high, sideways ? px(high) : py(high))) return "";
      if (sideways) return `M${Math.max(px(low), left)} ${py(series.y[i]) - 4}v8m0 -4H${px(high)}m0 -4v8`;
      return `M${px(series.x[i]) - 4} ${py(high)}h8m-4 0V${Math.min(py(low), top + tall)}m-4 0h8`;
    };
    const behind = (series) => has(series, "bars", "band"); // drawn first, so that they hide no marks
    for (const series of [...every.filter(behind), ...every.filter((one) => !behind(one))]) {
      const { style, width: breadth } = series, colour = tint(style.colour);
      const spots = series.x.map((at, i) => [px(at), series.y && series.y[i] !== null ? py(series.y[i]) : NaN]);
      const crowded = spots.length > 60; // smaller, and paler where hundreds lie on each other
      const box = (across, down, half, deep, more) => marks.append(node("rect", { x: across - half, y: down, width: 2 * half, height: deep, ...more }));
      if (has(series, "band")) {
        const [low, high] = ["low", "high"].map((side) => series.x.map((at, i) => [px(at), py(series[side][i])]).filter((spot) => finite(...spot)));
        if (low.length) marks.append(node("path", { d: line([...high, ...low.reverse()]) + "Z", ...shade(style) }));
        continue;
      }
      if (has(series, "line", "linked")) marks.append(node("path", { d: line(spots), ...stroke(series) }));
      const gaps = series.x.slice(1).map((at, i) => Math.abs(at - series.x[i])), base = top + (1 - y.base) * tall;
      const half = breadth ? wide(breadth) / 2 : has(series, "bars") ? wide(0.8 * Math.min(...gaps, 1)) / 2 : 8;
      spots.forEach(([across, down], i) => {
        if (!finite(across, down)) return;
        if (has(series, "bars")) box(across, Math.min(down, base), half, Math.abs(base - down), block(style));
        if (has(series, "points", "linked")) marks.append(node("path", { ...symbol(style, crowded ? 5 : 9), opacity: spots.length > 300 ? 0.35 : crowded ? 0.6 : 1, transform: `translate(${across.toFixed(2)} ${down.toFixed(2)})` }));
        if (has(series, "dashes")) marks.append(node("path", { d: sideways ? `M${across} ${py(series.y[i] - (breadth || 0.5) / 2)}V${py(series.y[i] + (breadth || 0.5) / 2)}` : `M${across - half} ${down}h${2 * half}`, ...stroke(series) }));
        if (series.bounds && series.bounds[i]) marks.append(label(across - 7, down + 4.5, "\u2264", { "text-anchor": "end" }));
        points.push({ x: across, y: down, told: () => told(chart, x, y, series, i), ...(has(series, "bars") ? { box: [half, Math.abs(base - down)] } : {}) });
      });
      const ends = series.low ? series.x.map((_, i) => (series.y[i] === null ? "" : interval(series, i))).join("") : "";
      if (ends) marks.append(node("path", { d: ends, fill: "none", stroke: has(series, "bars") ? ink() : colour, "stroke-width": 1.3 }));
    }
    rows.forEach((row, i) => row.forEach(([start, text, alike]) => {
      const across = 8 + start, down = 14 + 20 * i, area = { x: across + 3, y: down - 6, width: 20, height: 11 };
      for (const series of alike) {
        if (has(series, "bars")) svg.append(node("rect", { ...area, ...block(series.style) }));
        if (has(series, "band")) svg.append(node("rect", { ...area, ...shade(series.style) }));
        if (has(series, "line", "linked", "dashes")) svg.append(node("path", { d: `M${across} ${down}h26`, ...stroke(series) }));
        if (has(series, "points", "linked")) svg.append(node("path", { ...symbol(series.style, 8), transform: `translate(${across + 13} ${down})` }));
      }
      svg.append(label(across + 31, down + 4.5, text, { fill: ink() }));
    }));
    return { svg, points };
  };

  // ---- on the page -----------------------------------------------------------------------------------------------
  const tip = Object.assign(document.createElement("div"), { className: "hover", hidden: true });
  const ring = node("circle", { r: 8, fill: "none", "stroke-width": 2, "pointer-events": "none" });
  const point = (event, { svg, points }) => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let found = null, least = 32;
    for (const one of points) {
      const away = one.box ? (Math.abs(one.x - x) <= one.box[0] && Math.abs(one.y - y) <= one.box[1] ? 0 : Infinity) : Math.hypot(one.x - x, one.y - y);
      if (away < least) [found, least] = [one, away];
    }
    hide();
    if (!found) return;
    ring.setAttribute("cx", found.x);
    ring.setAttribute("cy", found.y);
    ring.setAttribute("stroke", ink());
    svg.append(ring);
    say(event, found.told());
  };
  // Words beside the pointer, inside the window.
  const say = (event, text) => {
    tip.hidden = false;
    tip.textContent = text;
    tip.style.left = Math.max(8, Math.min(event.clientX + 16, document.documentElement.clientWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (event.clientY + 20 + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 20) + "px";
  };
  const hide = () => { tip.hidden = true; ring.remove(); };

  const save = (name, blob) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const source = (svg) => {
    const copy = svg.cloneNode(true), { x, y, width: wide, height: tall } = svg.viewBox.baseVal;
    for (const [name, value] of Object.entries({ xmlns: SVG, width: wide, height: tall, color: ink() })) copy.setAttribute(name, value);
    copy.prepend(node("rect", { x, y, width: wide, height: tall, fill: tint("#fff") }));
    return new XMLSerializer().serializeToString(copy);
  };
  const png = (svg, name) => {
    const image = new Image(), scale = 3, { width: wide, height: tall } = svg.viewBox.baseVal;
    image.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: wide * scale, height: tall * scale });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(name, blob), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source(svg));
  };
  const quoted = (value) => (value === null || value === undefined ? "" : /[",\n]/.test(String(value)) ? '"' + String(value).replace(/"/g, '""') + '"' : String(value));
  const table = ({ series: every, x }) => {
    const rows = [["series", "x", "y", "lower", "upper"]], names = new Map(x.names ? x.ticks : []);
    const stated = (at) => (x.names ? names.get(Math.round(at)) : at);
    for (const series of every) series.x.forEach((at, i) => rows.push([series.name, stated(at), ...["y", "low", "high"].map((column) => end(series, column, i))]));
    return rows;
  };
  const saveCsv = (rows, name) => save(name + ".csv", new Blob(["\ufeff" + rows.map((row) => row.map(quoted).join(",") + "\r\n").join("")], { type: "text/csv" }));
  const tools = (words, actions) => {
    const bar = Object.assign(document.createElement("div"), { className: "tools" });
    for (const [name, act] of Object.entries(actions)) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name, ariaLabel: `Save as ${name}: ${words}` });
      button.addEventListener("click", act);
      bar.append(button);
    }
    return bar;
  };

  const places = new Map();
  const draw = (place) => {
    const { chart } = places.get(place), made = build(chart, Math.max(240, Math.min(place.clientWidth, printing ? 680 : Infinity))); // as wide as paper, so that its text is as large
    places.get(place).made = made;
    place.replaceChildren(made.svg);
  };
  // Where there is a chart already, the new one takes its place.
  const add = (place, chart, name) => {
    const known = places.has(place);
    places.set(place, { chart });
    draw(place);
    if (known) return;
    const svg = () => places.get(place).made.svg;
    place.addEventListener("pointermove", (event) => point(event, places.get(place).made));
    place.addEventListener("pointerleave", hide);
    place.after(tools(place.getAttribute("aria-label") || name, {
      SVG: () => saveSvg(svg(), name),
      PNG: () => savePng(svg(), name),
      CSV: () => saveCsv(table(places.get(place).chart), name),
    }));
    observer.observe(place);
  };
  const observer = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const { made } = places.get(target);
      if (contentRect.width && Math.abs(contentRect.width - made.svg.viewBox.baseVal.width) > 1) draw(target);
    }
  });
  const all = () => places.forEach((_, place) => draw(place));
  const listeners = [all];
  const changed = () => listeners.forEach((listener) => listener());
  scheme.addEventListener("change", changed);
  window.addEventListener("beforeprint", () => { printing = true; changed(); });
  window.addEventListener("afterprint", () => { printing = false; changed(); });
  window.addEventListener("scroll", hide, { passive: true });
  // A box that scrolls ends below a whole row.
  const wholeRows = (box) => {
    box.style.maxHeight = "";
    const top = box.getBoundingClientRect().top - box.scrollTop, most = box.clientHeight;
    const ends = [...box.querySelectorAll("tr")].map((row) => row.getBoundingClientRect().bottom - top).filter((end) => end <= most);
    box.classList.toggle("more", box.scrollHeight > most);
    if (ends.length && box.scrollHeight > most) box.style.maxHeight = Math.max(...ends) + box.offsetHeight - most + "px";
  };
  const cut = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const box = target.closest(".scroll");
      if (box.matches(".folds > *")) box.previousElementSibling.hidden = box.scrollWidth <= box.clientWidth + 1;
      if (box.classList.contains("tall")) requestAnimationFrame(() => wholeRows(box)); // not at once: it changes what is observed
    }
  });
  for (const one of document.querySelectorAll(".folds > .scroll, .folds > .scroll table, .scroll.tall")) cut.observe(one);
  document.body.append(tip);
  const saveSvg = (svg, name) => save(name + ".svg", new Blob([source(svg)], { type: "image/svg+xml" }));
  const savePng = (svg, name) => png(svg, name + ".png");
  return { add, draw, say, hide, dark, fixed, node, saveSvg, savePng, saveCsv, tools, onLooks: (listener) => listeners.push(listener), places };
})();
