"use strict";
// Plots as SVG, from figures in the format of plotly.js, of which this draws the parts that the pages use: lines, markers,
// areas, bars, heat maps and error bars on linear, logarithmic and category axes.
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
  const tint = (colour) => (!dark() || !colour ? colour : DARK[colour] || colour.replace("rgba(61,72,82", "rgba(195,204,213"));
  const ink = () => tint("#1f2933"), soft = () => (dark() ? "#aab6c2" : "#52606d"), grid = () => (dark() ? "#2b343d" : "#e4e9ed"), edge = () => (dark() ? "#5b6875" : "#9aa5b1");

  const node = (tag, attributes, ...children) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== "") made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  // Names are escaped for HTML where the page is made; here they are text.
  const plain = (text) => new DOMParser().parseFromString(String(text), "text/html").body.textContent;
  const label = (x, y, text, attributes = {}) => node("text", { x, y, fill: soft(), ...attributes }, text);
  const width = (text) => CHARACTER * text.length;

  // ---- numbers -------------------------------------------------------------------------------------------------
  const minus = (text) => text.replace(/-(?=[\d.])/g, "\u2212");
  const fixed = (value, digits) => Math.abs(value) >= 1e12 ? short(value) : minus(value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  const power = (exponent) => "10" + minus(String(exponent)).replace(/./g, (sign) => "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["\u22120123456789".indexOf(sign)]);
  const short = (value) => {
    const size = Math.abs(value);
    if (!Number.isFinite(value)) return value > 0 ? "\u221e" : value < 0 ? "\u2212\u221e" : "\u2013";
    if (size && (size < 1e-3 || size >= 1e7)) {
      const [factor, exponent] = value.toExponential(2).split("e").map(Number);
      return (factor === 1 ? "" : minus(String(factor)) + " \u00d7 ") + power(exponent);
    }
    return minus(Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 }));
  };
  const formatted = (value, format) => {
    if (typeof value !== "number") return plain(value);
    const [, sign, digits, kind] = /^(\+?),?(?:\.(\d))?([fg%]?)$/.exec(format || "") || [];
    const plus = sign && value > 0 ? "+" : "";
    if (kind === "%") return plus + fixed(100 * value, Number(digits)) + "%";
    if (kind === "f") return plus + fixed(value, Number(digits));
    if (kind === "g") return plus + short(Number(value.toPrecision(Number(digits))));
    return plus + short(value);
  };

  // ---- axes ----------------------------------------------------------------------------------------------------
  const steps = (low, high, most) => {
    const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
    return unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough * 0.999);
  };
  // An axis places values between 0 and 1, and has ticks: [place, text].
  const axisOf = (options, values, { pad, most }) => {
    if (options.type === "category" || (!options.type && values.some((value) => typeof value === "string"))) {
      const names = [...new Set(values.map(String))];
      const at = (value) => (names.indexOf(String(value)) + 0.5) / names.length;
      return { at, names, title: options.title, ticks: names.map((name) => [at(name), plain(name)]), zero: null };
    }
    const log = options.type === "log";
    const shown = values.filter((value) => Number.isFinite(value) && (!log || value > 0)).map((value) => (log ? Math.log10(value) : value));
    let [low, high] = options.range || [shown.reduce((a, b) => Math.min(a, b), Infinity), shown.reduce((a, b) => Math.max(a, b), -Infinity)];
    if (!(low <= high)) [low, high] = [0, 1];
    if (!options.range) {
      if (low === high) [low, high] = log ? [low - 0.5, high + 0.5] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
      const margin = pad * (high - low), bottom = low;
      [low, high] = [low - margin, high + margin];
      if (options.rangemode === "tozero" && bottom >= 0) low = 0;
    }
    const at = (value) => ((log ? (value > 0 ? Math.log10(value) : -Infinity) : value) - low) / (high - low);
    let ticks = [];
    if (options.tickvals) ticks = options.tickvals.map((value, i) => [at(value), plain(options.ticktext ? options.ticktext[i] : short(value))]);
    else if (log) {
      const every = options.dtick || Math.max(1, Math.ceil((high - low) / most));
      for (let exponent = Math.ceil(low); exponent <= high; exponent += 1) {
        if (exponent % every === 0) ticks.push([at(10 ** exponent), options.exponentformat === "power" && Math.abs(exponent) > 3 ? power(exponent) : short(10 ** exponent)]);
      }
      if (ticks.length < 2) {
        ticks = [];
        for (let exponent = Math.floor(low); exponent <= high; exponent += 1) for (const factor of [1, 2, 5]) ticks.push([at(factor * 10 ** exponent), short(factor * 10 ** exponent)]);
      }
    } else {
      const step = options.dtick || steps(low, high, most);
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      const first = Math.ceil(low / step - 1e-9);
      // At most so many: beside a large number, a step may be too small to count by.
      for (let i = 0; (first + i) * step <= high + 1e-9 * step && i < 1000; i += 1) {
        const value = (first + i) * step || 0; // not -0
        ticks.push([at(value), options.tickformat === ".0%" ? fixed(100 * value, Math.max(0, digits - 2)) + "%" : digits > 6 ? short(value) : fixed(value || 0, digits)]);
      }
    }
    ticks = ticks.filter(([place]) => place > -1e-6 && place < 1 + 1e-6);
    return { at, title: options.title, ticks, zero: !log && low < 0 && high > 0 ? at(0) : null, base: log ? 0 : Math.max(0, at(0)) };
  };

  // ---- marks ---------------------------------------------------------------------------------------------------
  const OUTLINES = {
    circle: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    square: (r) => `M${-r * 0.9} ${-r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}Z`,
    diamond: (r) => `M0 ${-r * 1.3}L${r * 1.3} 0L0 ${r * 1.3}L${-r * 1.3} 0Z`,
    "triangle-up": (r) => `M0 ${-r * 1.2}L${r * 1.15} ${r * 0.8}L${-r * 1.15} ${r * 0.8}Z`,
    x: (r) => crossed(r, Math.PI / 4),
    cross: (r) => crossed(r, 0),
    star: (r) => "M" + Array.from({ length: 10 }, (_, i) => [i % 2 ? r * 0.5 : r * 1.3, (i * Math.PI) / 5]).map(([size, turn]) => `${size * Math.sin(turn)} ${-size * Math.cos(turn)}`).join("L") + "Z",
    "line-ew": (r) => `M${-r} 0H${r}`,
  };
  const crossed = (r, turn) => {
    const arm = 1.2 * r, half = 0.4 * r;
    const corners = [[-half, -arm], [half, -arm], [half, -half], [arm, -half], [arm, half], [half, half], [half, arm], [-half, arm], [-half, half], [-arm, half], [-arm, -half], [-half, -half]];
    return "M" + corners.map(([x, y]) => `${x * Math.cos(turn) - y * Math.sin(turn)} ${x * Math.sin(turn) + y * Math.cos(turn)}`).join("L") + "Z";
  };
  const symbol = (name, size, colour, line, opacity) => {
    const open = name.endsWith("-open"), outline = OUTLINES[name.replace(/(-open)+$/, "")];
    const stroke = open || name === "line-ew" ? tint((line && line.color) || colour) : line && line.width ? tint(line.color || colour) : "none";
    return { d: outline(size / 2), fill: open ? tint("#fff") : tint(colour) || "none", stroke, "stroke-width": (line && line.width) || (open ? 1.5 : 0), opacity };
  };
  const each = (value, i) => (Array.isArray(value) ? value[i] : value);
  const has = (trace, mode) => (trace.mode || "lines").split("+").includes(mode);
  const colourOf = (trace) => (trace.line && trace.line.color) || (trace.marker && typeof trace.marker.color === "string" && trace.marker.color) || "#3d4852";

  // ---- one plot ------------------------------------------------------------------------------------------------
  const build = (figure, total) => {
    const { data, layout } = figure, asked = layout.height || 330;
    const heat = data.find((trace) => trace.type === "heatmap");
    const grouped = [...new Set(data.map((trace, i) => trace.offsetgroup || (trace.type === "bar" ? "bar " + i : null)).filter((name) => name !== null))];
    const keys = (layout.showlegend ? data : []).filter((trace) => trace.name && trace.showlegend !== false && trace.type !== "heatmap");
    const upper = (trace) => trace.y.map((y, i) => (trace.error_y ? y + trace.error_y.array[i] : y));
    const lower = (trace) => trace.y.map((y, i) => (trace.error_y ? y - (trace.error_y.arrayminus || trace.error_y.array)[i] : y));
    const xs = data.flatMap((trace) => trace.x), ys = data.flatMap((trace) => (heat ? trace.y : [...upper(trace), ...lower(trace), ...(trace.type === "bar" && (layout.yaxis || {}).type !== "log" ? [0] : [])]));
    const marked = data.some((trace) => has(trace, "markers"));
    const y = axisOf(layout.yaxis || {}, ys.filter((value) => value !== null && !Number.isNaN(value)), { pad: 0.06, most: asked / 55 });
    const left = Math.min(total * 0.4, Math.max(30, ...y.ticks.map(([, text]) => width(text))) + 38), right = heat ? 84 : 16;
    const x = axisOf(layout.xaxis || {}, xs.filter((value) => value !== null), { pad: marked ? 0.05 : 0, most: Math.max(5, (total - left) / 85) });
    const inner = total - left - right;
    const places = x.ticks.map(([place]) => place * inner).sort((a, b) => a - b);
    const room = Math.min(inner, ...places.slice(1).map((place, i) => place - places[i]));
    const longest = Math.max(0, ...x.ticks.map(([, text]) => width(text)));
    const even = !x.names && !(layout.xaxis || {}).ticktext && longest > room - 6;
    if (even) x.ticks = x.ticks.filter((_, i) => i % Math.ceil((longest + 6) / room) === 0);
    const turned = !even && longest > room - 4;

    const rows = [[]];
    let filled = 0;
    for (const trace of keys) {
      const text = plain(trace.name), size = 40 + width(text);
      if (filled && filled + size > total - 16) { rows.push([]); filled = 0; }
      rows[rows.length - 1].push([filled, trace, text]);
      filled += size;
    }
    const top = 12 + (keys.length ? 20 * rows.length + 6 : 0), bottom = 46 + (turned ? Math.min(110, 0.6 * longest) : 0);
    const tall = Math.max(asked - top - bottom, 140), height = top + tall + bottom; // a long legend needs room of its own
    const px = (value) => left + x.at(value) * inner, py = (value) => top + (1 - y.at(value)) * tall;
    const shift = (trace) => {
      const index = grouped.indexOf(trace.offsetgroup || "bar " + data.indexOf(trace));
      if (index < 0 || !x.names) return 0;
      const share = 1 - (layout.bargap || 0.2);
      return ((index + 0.5) / grouped.length - 0.5) * share * (inner / x.names.length);
    };
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
    if (y.zero !== null && (layout.yaxis || {}).zeroline) svg.append(node("path", { d: `M${left} ${top + (1 - y.zero) * tall}h${inner}`, stroke: edge(), "stroke-width": 1.4 }));
    svg.append(node("path", { d: `M${left} ${top}v${tall}h${inner}`, stroke: edge(), fill: "none" }));
    const title = (axis) => plain((axis.title && axis.title.text) || "");
    svg.append(label(left + inner / 2, height - 6, title(x), { "text-anchor": "middle", fill: ink() }));
    svg.append(label(0, 0, title(y), { "text-anchor": "middle", fill: ink(), transform: `translate(14 ${top + tall / 2}) rotate(-90)` }));

    const clip = "clip-" + Math.random().toString(36).slice(2);
    svg.append(node("clipPath", { id: clip }, node("rect", { x: left - 8, y: top - 8, width: inner + 16, height: tall + 16 })));
    const marks = node("g", { "clip-path": `url(#${clip})` });
    svg.append(marks);
    for (const trace of data) {
      const colour = colourOf(trace), offset = trace.type === "heatmap" ? 0 : shift(trace);
      const spot = (i) => [px(trace.x[i]) + offset, py(trace.y[i])];
      const hover = (i, more = {}) => {
        if (!trace.hovertemplate) return;
        const parts = trace.hovertemplate.replace(/<extra>(.*)<\/extra>/, (_, name) => (name ? "<br>" + name : ""));
        const words = parts.replace(/%\{(x|y|text)(?::([^}]*))?\}/g, (_, what, format) => (what === "text" ? trace.text[i] : formatted(trace[what][i], format)));
        const [across, down] = spot(i);
        points.push({ x: across, y: down, text: words.split("<br>").map(plain).join("\n"), ...more });
      };
      if (trace.type === "heatmap") {
        const values = trace.z.flat().filter((value) => value !== null), low = Math.min(...values), high = Math.max(...values);
        const mix = (share) => `color-mix(in srgb, ${tint(trace.colorscale[1][1])} ${(100 * share).toFixed(1)}%, ${tint(trace.colorscale[0][1])})`;
        const wide = inner / x.names.length, deep = tall / y.names.length;
        trace.z.forEach((row, j) => row.forEach((value, i) => {
          if (value === null) return;
          const share = high > low ? (value - low) / (high - low) : 0.5, across = px(trace.x[i]), down = py(trace.y[j]);
          marks.append(node("rect", { x: across - wide / 2, y: down - deep / 2, width: wide, height: deep, style: `fill:${mix(share)}` }));
          marks.append(label(across, down + 4.5, trace.text[j][i], { "text-anchor": "middle", fill: share > 0.5 ? tint("#fff") : ink() }));
          const words = trace.hovertemplate.replace(/<extra>.*/, "").replace("%{x}", trace.x[i]).replace("%{y}", trace.y[j]).replace("%{text}", trace.text[j][i]);
          points.push({ x: across, y: down, text: plain(words), box: [wide / 2, deep / 2] });
        }));
        for (let i = 0; i < 40; i += 1) svg.append(node("rect", { x: left + inner + 14, y: top + (tall * i) / 40, width: 12, height: tall / 40 + 0.5, style: `fill:${mix(1 - (i + 0.5) / 40)}` }));
        svg.append(label(left + inner + 30, top + 8, short(Number(high.toPrecision(3)))), label(left + inner + 30, top + tall, short(Number(low.toPrecision(3)))));
        svg.append(label(left + inner + 14, top - 2, plain(trace.colorbar.title.text), { "font-size": 11 }));
        continue;
      }
      if (trace.type === "bar") {
        const share = 1 - (layout.bargap || 0.2), half = (share * inner) / x.names.length / grouped.length / 2;
        trace.x.forEach((_, i) => {
          if (trace.y[i] === null) return;
          const [across, down] = spot(i), base = top + (1 - y.base) * tall, line = trace.marker.line;
          marks.append(node("rect", { x: across - half, y: Math.min(down, base), width: 2 * half, height: Math.abs(base - down), fill: trace.marker.color.startsWith("rgba") ? "none" : tint(trace.marker.color), stroke: tint(line.color), "stroke-width": line.width }));
          hover(i, { box: [half, Math.abs(base - down)] });
        });
      } else {
        if (has(trace, "lines")) {
          let path = "", joined = false;
          trace.x.forEach((_, i) => {
            const [across, down] = spot(i);
            if (trace.y[i] === null || !Number.isFinite(across + down)) { joined = false; return; }
            path += (joined ? "L" : "M") + across.toFixed(2) + " " + down.toFixed(2);
            joined = true;
          });
          const line = trace.line || {};
          if (trace.fill) marks.append(node("path", { d: path + "Z", fill: tint(trace.fillcolor), stroke: line.width ? tint(line.color) : "none", "stroke-width": line.width }));
          else marks.append(node("path", { d: path, fill: "none", stroke: tint(colour), "stroke-width": line.width || 2, "stroke-dasharray": DASHES[line.dash], "stroke-linejoin": "round" }));
        }
        trace.x.forEach((_, i) => {
          const [across, down] = spot(i);
          if (trace.y[i] === null || !Number.isFinite(across + down)) return;
          if (has(trace, "markers")) {
            const marker = trace.marker || {}, made = symbol(each(marker.symbol, i) || "circle", each(marker.size, i) || 7, each(marker.color, i), marker.line, marker.opacity);
            marks.append(node("path", { ...made, transform: `translate(${across.toFixed(2)} ${down.toFixed(2)})` }));
          }
          hover(i);
        });
      }
      if (trace.error_y) {
        const bars = trace.error_y, half = bars.width || 4;
        const drawn = trace.x.map((_, i) => {
          const [across] = spot(i), high = py(trace.y[i] + bars.array[i]), reach = trace.y[i] - (bars.arrayminus || bars.array)[i];
          const low = Math.min(py(reach), top + tall + 8);
          return trace.y[i] === null || !Number.isFinite(across + high + low) ? "" : `M${across - half} ${high}h${2 * half}m${-half} 0V${low}m${-half} 0h${2 * half}`;
        });
        marks.append(node("path", { d: drawn.join(""), fill: "none", stroke: tint(bars.color || colour), "stroke-width": bars.thickness }));
      }
    }
    rows.forEach((row, i) => row.forEach(([start, trace, text]) => {
      const across = 8 + start, down = 14 + 20 * i, colour = colourOf(trace);
      if (trace.type === "bar") svg.append(node("rect", { x: across + 4, y: down - 6, width: 18, height: 11, fill: trace.marker.color.startsWith("rgba") ? "none" : tint(trace.marker.color), stroke: tint(trace.marker.line.color) }));
      else if (trace.fill) svg.append(node("rect", { x: across + 2, y: down - 6, width: 22, height: 11, fill: tint(trace.fillcolor) }));
      else if (has(trace, "lines")) svg.append(node("path", { d: `M${across} ${down}h26`, stroke: tint(colour), "stroke-width": Math.min(3, trace.line.width || 2), "stroke-dasharray": DASHES[trace.line.dash] }));
      if (has(trace, "markers") && trace.marker && trace.type !== "bar") svg.append(node("path", { ...symbol(each(trace.marker.symbol, 0) || "circle", 8, each(trace.marker.color, 0), trace.marker.line), transform: `translate(${across + 13} ${down})` }));
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
    tip.hidden = !found;
    ring.remove();
    if (!found) return;
    tip.textContent = found.text;
    ring.setAttribute("cx", found.x);
    ring.setAttribute("cy", found.y);
    ring.setAttribute("stroke", ink());
    svg.append(ring);
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
  const table = ({ data }) => {
    const rows = [["series", "x", "y", "lower", "upper"]];
    for (const trace of data) {
      if (trace.type === "heatmap") trace.z.forEach((row, j) => row.forEach((value, i) => rows.push([trace.x[i], trace.y[j], value, "", ""])));
      else trace.x.forEach((x, i) => {
        const bars = trace.error_y, y = trace.y[i];
        rows.push([plain(trace.name || ""), typeof x === "string" ? plain(x) : x, y, bars && y !== null ? y - (bars.arrayminus || bars.array)[i] : "", bars && y !== null ? y + bars.array[i] : ""]);
      });
    }
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
    const { figure } = places.get(place), made = build(figure, Math.max(240, Math.min(place.clientWidth, printing ? 680 : Infinity))); // as wide as paper, so that its text is as large
    places.get(place).made = made;
    place.replaceChildren(made.svg);
  };
  const add = (place, figure, name) => {
    places.set(place, { figure });
    draw(place);
    const svg = () => places.get(place).made.svg;
    place.addEventListener("pointermove", (event) => point(event, places.get(place).made));
    place.addEventListener("pointerleave", hide);
    place.after(tools(place.getAttribute("aria-label") || name, {
      SVG: () => saveSvg(svg(), name),
      PNG: () => savePng(svg(), name),
      CSV: () => saveCsv(table(figure), name),
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
  const cut = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const box = target.closest(".scroll");
      box.previousElementSibling.hidden = box.scrollWidth <= box.clientWidth + 1;
    }
  });
  for (const one of document.querySelectorAll(".folds > .scroll, .folds > .scroll table")) cut.observe(one);
  document.body.append(tip);
  const saveSvg = (svg, name) => save(name + ".svg", new Blob([source(svg)], { type: "image/svg+xml" }));
  const savePng = (svg, name) => png(svg, name + ".png");
  return { add, draw, dark, fixed, node, saveSvg, savePng, saveCsv, tools, onLooks: (listener) => listeners.push(listener), figures: places };
})();
