"use strict";
// Vehicles in motion: places on the links, or between two recorded places, at any time, drawn by WebGL2.
const Motion = (() => {
  const FINE = 64, NEVER = 2 ** 31 - 1;
  const WAITING = 1, DRIVING = 2, QUEUED = 3, PARKED = 4;

  // ---- the arrays of the page ------------------------------------------------------------------------------------
  const decode = async (data) => {
    const packed = Uint8Array.from(atob(data.bytes), (sign) => sign.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer()), columns = {};
    let from = 0;
    for (const [name, count, planes] of data.columns) {
      const values = (columns[name] = new Int32Array(count));
      for (let plane = 0; plane < planes; plane += 1, from += count) {
        for (let i = 0; i < count; i += 1) values[i] |= bytes[from + i] << (8 * plane);
      }
    }
    return columns;
  };
  const starts = (counts) => {
    const first = new Int32Array(counts.length + 1);
    counts.forEach((count, i) => { first[i + 1] = first[i] + count; });
    return first;
  };
  const signed = (values) => values.map((value) => (value & 1 ? -(value + 1) / 2 : value / 2));

  // When each entry's vehicle leaves the link, and the entry before it in the same queue, -1 for none.
  const queues = (at, link, lane, tick, arrives) => {
    const size = link.length, leaves = new Int32Array(size), ahead = new Int32Array(size).fill(-1);
    for (let i = 0; i + 1 < at.length; i += 1) {
      for (let k = at[i]; k < at[i + 1]; k += 1) leaves[k] = k + 1 < at[i + 1] ? tick[k + 1] : arrives[i];
    }
    const order = Float64Array.from(tick, (time, k) => time * 2 ** 23 + k).sort(); // by time; entries are below 2^23
    const last = new Map();
    for (const key of order) {
      const k = key % 2 ** 23, queue = link[k] * 64 + lane[k];
      ahead[k] = last.get(queue) ?? -1;
      last.set(queue, k);
    }
    return { leaves, ahead };
  };

  // A fleet tells what a vehicle does at a time: place(i, time, out) returns its state, 0 where there is none, and sets
  // out.x, out.y, and its direction; out.link is -1 where it is unknown.
  const onLinks = (c, { step_s: step, every, parked }) => {
    const vehicles = c.first.length, at = starts(c.entries), from = starts(c.points);
    const departs = new Int32Array(vehicles), arrives = new Int32Array(vehicles).fill(NEVER);
    const link = new Int32Array(at[vehicles]), tick = new Int32Array(at[vehicles]), now = new Int32Array(vehicles);
    let turn = 0, delay = 0, last = 0;
    for (let i = 0; i < vehicles; i += 1) {
      departs[i] = last += c.departs[i];
      let time = last, on = c.first[i];
      for (let k = at[i]; k < at[i + 1]; k += 1) {
        if (k > at[i]) {
          time += c.soonest[on];
          on = c.onward[on] + c.turns[turn++];
        }
        link[k] = on;
        tick[k] = time += c.delays[delay++];
      }
      if (c.arrived[i]) arrives[i] = time + c.soonest[on] + c.delays[delay++];
    }
    const { leaves, ahead } = queues(at, link, c.lane, tick, arrives);
    const reach = new Float32Array(c.x.length); // along the link, from 0 to 1
    for (let l = 0; l < c.points.length; l += 1) {
      for (let p = from[l] + 1; p < from[l + 1]; p += 1) reach[p] = reach[p - 1] + Math.hypot(c.x[p] - c.x[p - 1], c.y[p] - c.y[p - 1]);
      const whole = reach[from[l + 1] - 1] || 1;
      for (let p = from[l]; p < from[l + 1]; p += 1) reach[p] /= whole;
    }
    const along = (l, share, out) => {
      let p = from[l] + 1;
      while (p < from[l + 1] - 1 && reach[p] < share) p += 1;
      const part = Math.min(1, Math.max(0, (share - reach[p - 1]) / (reach[p] - reach[p - 1] || 1)));
      const dx = c.x[p] - c.x[p - 1], dy = c.y[p] - c.y[p - 1], long = Math.hypot(dx, dy) || 1;
      out.x = (c.x[p - 1] + part * dx) / FINE;
      out.y = (c.y[p - 1] + part * dy) / FINE;
      out.dx = dx / long;
      out.dy = dy / long;
      out.link = l;
    };
    const place = (i, time, out) => {
      const t = time / step, begin = at[i], end = at[i + 1];
      if (t < departs[i]) return 0;
      if (begin === end || t < tick[begin]) {
        along(c.first[i], 0, out);
        return WAITING;
      }
      if (t >= arrives[i]) {
        if (!parked || (c.until && c.until[i] > 0 && t >= c.until[i])) return 0; // until its vehicle's next trip
        along(link[end - 1], 1, out);
        return PARKED;
      }
      let k = Math.min(Math.max(now[i], begin), end - 1); // it is where it was, or one link on, nearly always
      while (k < end - 1 && tick[k + 1] <= t) k += 1;
      while (tick[k] > t) k -= 1;
      now[i] = k;
      const l = link[k], free = (t - tick[k]) * step / (c.free[l] / 100), wave = every * c.wave[l] / 1000 / step;
      let before = 0; // vehicles ahead of it whose departure has not reached it
      for (let a = ahead[k]; a >= 0 && leaves[a] > t - (before + 1) * wave; a = ahead[a]) before += 1;
      const queue = Math.max(0, 1 - before * every * c.spacing[l] / 1e6);
      along(l, Math.min(free, queue), out);
      return free >= queue ? QUEUED : DRIVING;
    };
    return { vehicles, place, begins: (i) => departs[i] * step, number: (i) => (c.vehicle ? c.vehicle[i] : i * every), willing: c.willing };
  };
  const betweenPlaces = (c) => {
    const at = starts(c.count), x0 = signed(c.x0), y0 = signed(c.y0), x = signed(c.dx), y = signed(c.dy), times = c.moments;
    for (let i = 0; i < c.count.length; i += 1) {
      x[at[i]] = x0[i];
      y[at[i]] = y0[i];
      for (let k = at[i] + 1; k < at[i + 1]; k += 1) {
        x[k] += x[k - 1];
        y[k] += y[k - 1];
      }
    }
    const order = [...c.start.keys()].sort((a, b) => c.start[a] - c.start[b]); // by when they begin
    const place = (j, time, out) => {
      const i = order[j], ms = time * 1000, begin = c.start[i], end = begin + c.count[i] - 1;
      if (ms < times[begin] || ms > times[end]) return 0;
      let low = begin, high = end;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (times[middle] <= ms) low = middle;
        else high = middle - 1;
      }
      const k = at[i] + low - begin, more = low < end ? 1 : 0, part = more ? (ms - times[low]) / (times[low + 1] - times[low]) : 0;
      const dx = x[k + more] - x[k], dy = y[k + more] - y[k], long = Math.hypot(dx, dy) || 1;
      Object.assign(out, { x: (x[k] + part * dx) / FINE, y: (y[k] + part * dy) / FINE, dx: dx / long, dy: dy / long, link: -1 });
      return DRIVING;
    };
    return { vehicles: order.length, place, begins: (j) => times[c.start[order[j]]] / 1000, number: (j) => c.vehicle[order[j]], willing: c.willing.map((_, j) => c.willing[order[j]]) };
  };

  // ---- drawing ---------------------------------------------------------------------------------------------------
  const POINTS = `#version 300 es
    layout(location=0) in vec2 place; layout(location=1) in vec2 ahead; layout(location=2) in float kind;
    uniform vec4 view; uniform float unit; uniform float small; uniform float pulse; uniform vec3 colours[6]; out vec4 colour; out float hollow;
    void main() {
      int k = int(kind);
      vec2 aside = vec2(-ahead.y, ahead.x) * 1.6 * unit; // vehicles keep to the right
      gl_Position = vec4((place + aside) * view.xy + view.zw, 0, 1);
      gl_PointSize = (k == 5 ? 1.2 + 2.0 * pulse : 1.0) * small;
      colour = vec4(colours[k], 1.0); hollow = k == 1 || k == 4 ? 1.0 : 0.0;
    }`;
  const DOT = `#version 300 es
    precision mediump float; in vec4 colour; in float hollow; out vec4 shown;
    void main() {
      float away = length(gl_PointCoord - 0.5) * 2.0;
      if (away > 1.0 || (hollow > 0.5 && away < 0.45)) discard;
      shown = colour;
    }`;
  const ROADS = `#version 300 es
    layout(location=0) in vec2 corner; layout(location=1) in vec4 ends; layout(location=2) in float link;
    uniform vec4 view; uniform float unit; uniform float thick; uniform sampler2D loads; uniform vec3 ramp[8]; uniform vec3 quiet; uniform float live; out vec4 colour;
    void main() {
      vec2 way = ends.zw - ends.xy; way /= max(length(way), 1e-6);
      vec2 aside = vec2(-way.y, way.x);
      int l = int(link);
      float load = texelFetch(loads, ivec2(l & 1023, l >> 10), 0).r * live;
      float wide = (load > 0.0 ? thick : min(thick, 1.2)) * unit;
      vec2 at = mix(ends.xy, ends.zw, corner.x) + aside * (0.3 * unit + corner.y * wide);
      gl_Position = vec4(at * view.xy + view.zw, 0, 1);
      float step = clamp(load, 0.0, 1.0) * 7.0; int low = min(6, int(step));
      colour = vec4(load > 0.0 ? mix(ramp[low], ramp[low + 1], step - float(low)) : quiet, 1.0);
    }`;
  const FLAT = `#version 300 es
    precision mediump float; in vec4 colour; out vec4 shown; void main() { shown = colour; }`;
  const program = (gl, ...sources) => {
    const made = gl.createProgram();
    sources.forEach((source, i) => {
      const shader = gl.createShader(i ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
    });
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    return made;
  };
  const numbers = (hexes) => hexes.flatMap((hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16) / 255));

  // `size`: width and height of the drawing. What the canvas shows of it is in the `box` of what is returned: left, top, width
  // and height, in the canvas' proportions.
  const open = async (canvas, data, size) => {
    const columns = await decode(data), fleet = (data.kind === "links" ? onLinks : betweenPlaces)(columns, data);
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, preserveDrawingBuffer: true });
    const out = { x: 0, y: 0, dx: 0, dy: 0, link: -1 }, links = columns.points ? columns.points.length : 0, counted = data.kind === "links";
    const on = new Int32Array(links), standing = new Int32Array(links), asked = new Uint8Array(fleet.vehicles);
    const shown = new Float32Array(5 * fleet.vehicles), totals = new Int32Array(5);
    const loads = new Float32Array(1024 * Math.max(1, Math.ceil(links / 1024)));

    // The number of vehicles by state and link, and the arrays to draw; `kinds` says how a state is drawn.
    let now = 0;
    const survey = (time, lit) => {
      let count = 0;
      now = time;
      on.fill(0);
      standing.fill(0);
      totals.fill(0);
      for (let i = 0; i < fleet.vehicles; i += 1) {
        if (fleet.begins(i) > time) break;
        const state = fleet.place(i, time, out);
        if (!state) continue;
        totals[state] += 1;
        if (out.link >= 0 && (state === DRIVING || state === QUEUED)) on[out.link] += 1;
        if (state === QUEUED) standing[out.link] += 1;
        const k = 5 * count++;
        shown[k] = out.x;
        shown[k + 1] = out.y;
        shown[k + 2] = out.dx;
        shown[k + 3] = out.dy;
        shown[k + 4] = lit && asked[i] ? 5 : state;
      }
      return count;
    };
    const density = (l) => (1e4 * data.every * on[l]) / (columns.length[l] * columns.lanes[l]); // vehicles per km and lane
    const queue = (l) => data.every * standing[l];
    const measures = counted ? { density, queue } : {};
    const tops = counted ? { density: 5, queue: 2 } : {};
    for (let part = 1; counted && part <= 12; part += 1) { // the scale's end: one link in a hundred with traffic is above it
      survey((data.end_s * part) / 12, false);
      for (const name of Object.keys(tops)) {
        const values = [...on.keys()].filter((l) => on[l]).map(measures[name]).sort((a, b) => a - b);
        if (values.length) tops[name] = Math.max(tops[name], Math.ceil(values[Math.floor(0.99 * (values.length - 1))]));
      }
    }
    if (data.interval_s) { // what happened on each link in the interval
      const last = columns.volume.length / links - 1, in_ = (values) => (l) => values[Math.min(last, Math.floor(now / data.interval_s)) * links + l];
      const volumes = columns.volume.filter((value) => value > 0).sort();
      Object.assign(measures, { volume: in_(columns.volume), lost: in_(columns.lost) });
      Object.assign(tops, { volume: volumes[Math.floor(0.99 * (volumes.length - 1))] || 1, lost: 80 });
    }
    const ask = (time) => {
      asked.fill(0);
      let number = 0;
      for (let i = 0; i < fleet.vehicles && fleet.begins(i) <= time; i += 1) {
        const state = fleet.willing[i] && fleet.place(i, time, out);
        if (state && (state !== WAITING || data.waiting)) number += asked[i] = 1;
      }
      return number;
    };
    const where = (vehicle, time) => {
      for (let i = 0; i < fleet.vehicles; i += 1) {
        if (fleet.number(i) !== vehicle) continue;
        const state = fleet.place(i, time, out);
        if (state) return { x: out.x, y: out.y, state };
      }
      return null;
    };
    const places = (time) => {
      const found = [];
      for (let i = 0; i < fleet.vehicles; i += 1) {
        const state = fleet.place(i, time, out);
        if (state) found.push([fleet.number(i), out.x, out.y, state]);
      }
      return found;
    };
    const motion = { measures: Object.keys(measures), tops, totals, ask, where, places, end: data.end_s, every: data.every, hasLinks: counted, drawn: gl !== null, box: [0, 0, ...size] };
    if (gl === null) return Object.assign(motion, { draw: (time) => survey(time, false) });

    const dots = program(gl, POINTS, DOT);
    const roads = program(gl, ROADS, FLAT);
    const buffer = (values, usage) => {
      const made = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, made);
      gl.bufferData(gl.ARRAY_BUFFER, values, usage);
      return made;
    };
    const attribute = (place, size, stride, offset, each) => {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 4 * stride, 4 * offset);
      gl.vertexAttribDivisor(place, each ? 1 : 0);
    };
    const dotArray = gl.createVertexArray();
    gl.bindVertexArray(dotArray);
    const dotBuffer = buffer(shown, gl.DYNAMIC_DRAW);
    attribute(0, 2, 5, 0);
    attribute(1, 2, 5, 2);
    attribute(2, 1, 5, 4);
    let long = 0; // of all links, in units of the drawing
    const roadArray = gl.createVertexArray(), pieces = [], first = starts(columns.points || []), { x, y } = columns;
    for (let l = 0; l < links; l += 1) {
      for (let p = first[l] + 1; p < first[l + 1]; p += 1) {
        pieces.push(x[p - 1] / FINE, y[p - 1] / FINE, x[p] / FINE, y[p] / FINE, l);
        long += Math.hypot(x[p] - x[p - 1], y[p] - y[p - 1]) / FINE;
      }
    }
    gl.bindVertexArray(roadArray);
    buffer(new Float32Array([0, 0, 0, 1, 1, 0, 1, 1]), gl.STATIC_DRAW);
    attribute(0, 2, 2, 0);
    buffer(new Float32Array(pieces), gl.STATIC_DRAW);
    attribute(1, 4, 5, 0, true);
    attribute(2, 1, 5, 4, true);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.bindVertexArray(null);

    const draw = (time, { lit = false, pulse = 0, measure = "density", looks }) => {
      const wide = Math.round(canvas.clientWidth * window.devicePixelRatio), tall = Math.round(canvas.clientHeight * window.devicePixelRatio);
      if (!wide || !tall) return survey(time, lit);
      if (canvas.width !== wide || canvas.height !== tall) Object.assign(canvas, { width: wide, height: tall });
      const count = survey(time, lit);
      loads.fill(0);
      for (let l = 0; measures[measure] && l < links; l += 1) {
        const value = measures[measure](l) / tops[measure];
        if (on[l] || value > 0) loads[l] = Math.max(1e-3, value);
      }
      const [left, top, across, down] = motion.box, scale = wide / across;
      const view = [(2 * scale) / wide, (-2 * scale) / tall, (-2 * scale * (left + across / 2)) / wide, (2 * scale * (top + down / 2)) / tall];
      const unit = window.devicePixelRatio / scale; // a CSS pixel in units of the drawing
      const room = (size[0] * size[1]) / unit ** 2; // of all, CSS pixels; signs are smaller where there are more in it
      gl.viewport(0, 0, wide, tall);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      const set = (of, name, value, method) => gl[method](gl.getUniformLocation(of, name), value);
      if (links) {
        gl.useProgram(roads);
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, 1024, loads.length / 1024, 0, gl.RED, gl.FLOAT, loads);
        set(roads, "view", view, "uniform4fv");
        set(roads, "unit", unit, "uniform1f");
        set(roads, "thick", Math.max(0.8, Math.min(3.4, (0.3 * room * unit) / long)), "uniform1f");
        set(roads, "live", measures[measure] ? 1 : 0, "uniform1f");
        set(roads, "ramp", numbers(looks.ramp), "uniform3fv");
        set(roads, "quiet", numbers([looks.quiet]), "uniform3fv");
        gl.bindVertexArray(roadArray);
        gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, pieces.length / 5);
      }
      gl.useProgram(dots);
      set(dots, "view", view, "uniform4fv");
      set(dots, "unit", unit, "uniform1f");
      set(dots, "small", window.devicePixelRatio * Math.min(5, Math.max(1.6, 0.35 * Math.sqrt(room / (count + 1 - totals[PARKED])))), "uniform1f");
      set(dots, "pulse", pulse, "uniform1f");
      set(dots, "colours", numbers(looks.states), "uniform3fv");
      gl.bindVertexArray(dotArray);
      gl.bindBuffer(gl.ARRAY_BUFFER, dotBuffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, 0, shown.subarray(0, 5 * count));
      gl.drawArrays(gl.POINTS, 0, count);
      return count;
    };
    return Object.assign(motion, { draw });
  };
  return { open };
})();
