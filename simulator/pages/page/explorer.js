"use strict";
// The explorer: sliders, two designs and what follows from them. The state is in the address, after the #.
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const served = page.numbers === "server";
  page.kinds = page.kinds.filter(({ kind }) => served || kind in ClosedForms.MECHANISMS);
  for (const kind of page.kinds) kind.parameters = kind.parameters.filter(({ name }) => served || name !== "form");
  const kinds = new Map(page.kinds.map((kind) => [kind.kind, kind]));
  const LETTERS = ["a", "b"];
  const AT = 1; // the ε at which δ is stated
  const RARE = 1e-3; // the δ up to which a limit is said to fail rarely
  const byId = (id) => document.getElementById(id);
  const within = (letter, selector) => byId(`design-${letter}`).querySelector(selector);
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const draw = (tag, attributes, text = "") => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = text;
    return node;
  };
  const number = (value) => {
    if (!Number.isFinite(value)) return "∞";
    if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e7)) return value.toExponential(2);
    return value.toLocaleString("en", { maximumSignificantDigits: Math.max(3, String(Math.round(value)).length) });
  };
  const up = (value) => { // claims are rounded up
    const step = 10 ** (Math.floor(Math.log10(value)) - 2);
    return number(value > 0 && Number.isFinite(value) ? Math.ceil(value / step - 1e-9) * step : value);
  };
  const usual = (truth) => Math.floor((truth.length - 1) / 2);

  // ---- the state, and the address -----------------------------------------------------------------------------------
  const state = {};
  const specs = (letter) => [...page.design, ...kinds.get(state[letter].kind).parameters];
  const checked = (spec, text) => {
    if (spec.choices) return spec.choices.includes(text) ? text : spec.value;
    const value = Number(text);
    if (text === null || text === "" || !Number.isFinite(value)) return spec.optional && text === "" ? null : spec.value;
    const bounded = Math.min(spec.most, Math.max(spec.least, value));
    return spec.whole ? Math.round(bounded) : bounded;
  };
  const read = (given) => {
    state.seed = checked({ value: 1, least: 0, most: 2 ** 31 - 1, whole: true }, given.get("seed"));
    for (const spec of page.city) state[spec.name] = checked(spec, given.get(spec.name));
    for (const letter of LETTERS) {
      const kind = given.get(`${letter}.kind`);
      state[letter] = { kind: kinds.has(kind) ? kind : new URLSearchParams(page.start).get(`${letter}.kind`) };
      for (const spec of specs(letter)) state[letter][spec.name] = checked(spec, given.get(`${letter}.${spec.name}`));
    }
  };
  const written = () => {
    const text = new URLSearchParams(page.city.map(({ name }) => [name, state[name]]));
    for (const letter of LETTERS) {
      for (const [name, value] of Object.entries(state[letter])) if (value !== null) text.set(`${letter}.${name}`, value);
    }
    text.set("seed", state.seed);
    return `#${text}`;
  };
  // All values that a slider has until it is let go are one step of the browser's history.
  let letGo = true;
  const changed = (lasting) => {
    const address = written();
    if (address !== location.hash) history[letGo ? "pushState" : "replaceState"](null, "", address);
    letGo = lasting;
    show();
  };

  // ---- fields -------------------------------------------------------------------------------------------------------
  const STEPS = 1000;
  const placeOf = ({ from, to, log }, value) =>
    STEPS * (log ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from));
  const valueAt = (spec, place) => {
    const value = spec.log ? spec.from * (spec.to / spec.from) ** (place / STEPS) : spec.from + (spec.to - spec.from) * (place / STEPS);
    return checked(spec, Number(value.toPrecision(3)));
  };
  const chooser = (id, options, chosen, choose) => {
    const made = make("select", { id }, ...options.map(([value, textContent]) =>
      make("option", { value, textContent, selected: value === chosen })));
    made.addEventListener("change", () => choose(made.value));
    return made;
  };
  const field = (spec, holder, prefix) => {
    const id = `${prefix}${spec.name}`;
    const box = make("div", { className: "field", id: `${id}-field` }, make("label", { htmlFor: id, textContent: spec.label }));
    const row = make("div", { className: "row" });
    const set = (value, lasting) => { holder[spec.name] = value; changed(lasting); };
    if (spec.choices) {
      row.append(chooser(id, spec.choices.map((value) => [value, spec.words?.[value] ?? value]), holder[spec.name], (value) => set(value, true)));
    } else {
      const { unit, least: min, most: max } = spec;
      const exact = make("input", { id, type: "number", step: spec.whole ? "1" : "any", min, max, placeholder: spec.optional ? "default" : "" });
      const slide = make("input", { type: "range", min: 0, max: STEPS, step: 1, ariaLabel: spec.label });
      const follow = () => {
        exact.value = holder[spec.name] ?? "";
        slide.value = placeOf(spec, holder[spec.name]);
        slide.ariaValueText = `${exact.value} ${unit}`;
      };
      for (const event of ["input", "change"]) {
        slide.addEventListener(event, () => { set(valueAt(spec, Number(slide.value)), event === "change"); follow(); });
      }
      exact.addEventListener("change", () => { set(checked(spec, exact.value), true); follow(); });
      follow();
      row.append(...(spec.optional ? [] : [slide]), exact, make("span", { className: "note", textContent: unit }));
    }
    row.querySelector("select, [type=number]").setAttribute("aria-describedby", `${id}-about`);
    box.append(row, make("p", { className: "note", id: `${id}-about`, textContent: spec.about }));
    return box;
  };
  const buildDesign = (letter) => {
    const id = `${letter}-kind`;
    const choose = (kind) => {
      const { aggregation, servers, colluding } = state[letter];
      state[letter] = { kind, aggregation, servers, colluding };
      for (const spec of specs(letter)) state[letter][spec.name] ??= spec.value;
      buildDesign(letter);
      byId(id).focus();
      changed(true);
    };
    within(letter, ".choices").replaceChildren(make("label", { htmlFor: id, textContent: "Mechanism" }),
      chooser(id, page.kinds.map(({ kind, title }) => [kind, title]), state[letter].kind, choose),
      make("p", { className: "note", textContent: kinds.get(state[letter].kind).about }));
    within(letter, ".fields").replaceChildren(...specs(letter).map((spec) => field(spec, state[letter], `${letter}-`)));
  };

  // ---- numbers ------------------------------------------------------------------------------------------------------
  const parameters = (letter) => Object.fromEntries(kinds.get(state[letter].kind).parameters
    .map(({ name }) => [name, state[letter][name]]).filter(([, value]) => value !== null));
  const normals = (seed) => () => { // the same for the same seed: mulberry32, then Box and Muller
    const [first, second] = [0, 0].map(() => {
      seed = (seed + 0x6d2b79f5) | 0;
      let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    });
    return Math.sqrt(-2 * Math.log(1 - first)) * Math.cos(2 * Math.PI * second);
  };
  const closed = (letter, truth) => {
    const { kind, form, aggregation, servers } = state[letter];
    if (!(kind in ClosedForms.MECHANISMS) || form === "binary") return null;
    try {
      const mechanism = ClosedForms.MECHANISMS[kind](parameters(letter), truth.length);
      const messages = aggregation === "secret_shared" ? servers : 1;
      const errors = ClosedForms.errors(mechanism, truth, state.participation, state.loss, messages);
      const normal = normals(state.seed + (letter === "b" ? 1 : 0));
      const claims = ClosedForms.claims(mechanism, state[letter], state.queries, AT);
      return { errors, claims, estimates: truth.map((count, i) => count + normal() * errors[i]) };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { fault: `${error.message}.` };
    }
  };
  let turns = 0;
  const pending = {};
  const askServer = async (letter, truth) => {
    const turn = (pending[letter] = turns += 1);
    await new Promise((resume) => { setTimeout(resume, 120); });
    if (pending[letter] !== turn) return;
    const { colluding } = state[letter];
    const asked = { design: letter, turn, toml: scenario(letter, truth).toml, counts: truth, colluding, seed: state.seed };
    const answer = await fetch(`numbers${location.search}`, { method: "POST", body: JSON.stringify(asked) }).catch(() => null);
    const numbers = answer?.ok ? await answer.json() : { fault: "No numbers: start crowdveil explore again." };
    if (pending[letter] !== turn) return;
    pending[letter] = 0;
    present(letter, truth, numbers);
  };

  // ---- the scenario -------------------------------------------------------------------------------------------------
  const scenario = (letter, truth) => {
    const { kind, aggregation, servers } = state[letter];
    const hash = [...written()].reduce((made, sign) => (Math.imul(made, 31) + sign.codePointAt(0)) >>> 0, 7).toString(36);
    const name = `explored-${letter}-${hash}`; // another one for other values
    const values = {
      ...state, kind, aggregation, name, title: kinds.get(kind).title, duration: 60 + 60 * state.queries,
      crowd: Math.max(1, ClosedForms.whole(truth[usual(truth)] * state.participation)),
      servers: aggregation === "secret_shared" ? `servers = ${servers}\n` : "",
      parameters: Object.entries(parameters(letter)).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join(""),
    };
    const toml = page.scenario.join("\n").replace(/\$(\w+)/g, (_, key) => values[key]);
    return { name, toml, csv: `zone,vehicles\n${truth.map((count, i) => `zone-${i + 1},${count}\n`).join("")}` };
  };
  const write = (letter) => {
    const { name, toml, csv } = scenario(letter, ClosedForms.counts(state.people, state.cells));
    for (const [download, text] of [[`${name}.toml`, toml], [`${name}-vehicles.csv`, csv]]) {
      const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/plain" })), download });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }
    byId("status").textContent = `Two files are downloaded. In their folder, crowdveil run ${name}.toml runs the scenario.`;
  };

  // ---- what is shown ------------------------------------------------------------------------------------------------
  const partyWords = (coalition) => {
    if (!coalition.length) return "Readers";
    const servers = coalition.filter((party) => party !== "mixer").map((party) => party.slice("server:".length));
    const many = servers.length > 3 ? `${servers.length} servers` : `Server${servers.length > 1 ? "s" : ""} ${servers.join(" and ")}`;
    return [...(servers.length ? [many] : []), ...(coalition.includes("mixer") ? ["the mixer"] : [])].join(" and ").replace(/^t/, "T");
  };
  const VIEWS = {
    linked_reports: "all answers of a vehicle, linked", shares: "shares of the answers", shuffled: "all answers in random order",
    released_counts: "the counts of every round", released_differences: "the published differences of two rounds’ counts",
  };
  const viewWords = ({ view, queries, crowd }) => {
    if (!view) return "who sends, but no answer";
    const [family, round] = view.split("_round_");
    const words = VIEWS[family] ?? `a vehicle’s answers of round ${round}`;
    const others = crowd && family.startsWith("released") ? `, with at least ${number(crowd)} vehicles in the cell` : "";
    return `${words}${queries > 1 ? `, in ${queries} queries` : ""}${others}`;
  };
  const limitWords = ({ kind, epsilon, delta, delta_kind: deltaKind }) => {
    if (kind === "unknown") return ["no limit is known", ""];
    const sign = kind === "bound" ? "≤" : "=";
    const always = epsilon < Infinity ? `ε ${sign} ${up(epsilon)}` : `no finite ε${kind === "bound" ? " known" : ""}`;
    return [always, delta === null ? "" : `δ ${deltaKind === "bound" ? "≤" : "="} ${up(delta)} at ε = ${AT}`];
  };
  const plain = ({ sentence, epsilon, delta, delta_kind: deltaKind }) => {
    const most = deltaKind === "bound" ? "at most " : "";
    // A great ε at δ = 0 says little where δ at a usual ε is tiny.
    if (epsilon > AT && delta !== null && delta <= RARE) return `Can shift the odds between two places at most ${up(Math.exp(AT))}-fold, except with probability ${most}${up(delta)}.`;
    if (sentence) return `${sentence[0].toUpperCase()}${sentence.slice(1)}.`;
    if (epsilon === 0) return "Learns nothing about where the vehicle is.";
    if (epsilon < Infinity) return `Can shift the odds between two places at most ${up(Math.exp(epsilon))}-fold.`;
    if (delta === null) return "No finite ε holds.";
    return `Learns where the vehicle is with probability ${most}${up(100 * delta)} %.`;
  };
  const claimItem = (row) => {
    const [always, delta] = limitWords(row);
    const kind = row.kind === "bound" && row.epsilon === Infinity ? "open" : row.kind;
    const item = make("li", {}, make("strong", { textContent: partyWords(row.coalition) }),
      ` ${row.coalition.length === 1 ? "sees" : "see"} ${viewWords(row)}. `,
      make("span", { className: `badge ${kind}`, textContent: `${always}${kind === "exact" ? " (exact)" : ""}` }), " ",
      make("span", { className: "delta", textContent: delta || (row.kind === "unknown" ? "" : "δ: the local command has it") }),
      make("p", { textContent: plain(row) }),
      make("details", {}, make("summary", { textContent: "Why" }), make("p", { className: "note", textContent: row.basis })));
    for (const name of ["view", "coalition", "kind", "epsilon", "delta"]) item.dataset[name] = row[name] ?? "";
    return item;
  };
  const picture = (truth, { estimates, errors }, letter) => {
    const [width, height, left] = [520, 220, 52];
    const shown = truth.map((_, i) => i).filter((i) => i % Math.ceil(truth.length / 60) === 0);
    const reach = (i) => (errors[i] < Infinity ? 1.96 * errors[i] : 0);
    const ends = shown.flatMap((i) => [truth[i] + reach(i), truth[i] - reach(i), estimates[i]]).filter(Number.isFinite);
    const [low, high] = [Math.min(0, ...ends), Math.max(1, ...ends)];
    const x = (place) => left + ((place + 0.5) / shown.length) * (width - left - 6);
    const y = (value) => 8 + ((high - value) / (high - low)) * (height - 16);
    const label = `Design ${letter.toUpperCase()}: true counts and one draw of the estimates in ${shown.length} cells`;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "picture-svg", "aria-label": label });
    for (const value of new Set([Math.round(low), 0, Math.round(high)])) {
      svg.append(draw("line", { x1: left, x2: width, y1: y(value), y2: y(value), class: "axis" }));
      if (value >= 0 || value < -0.1 * high) svg.append(draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, number(value)));
    }
    const half = Math.min(7, (width - left) / shown.length / 2.6);
    shown.forEach((i, at) => {
      svg.append(draw("line", { x1: x(at), x2: x(at), y1: y(truth[i] - reach(i)), y2: y(truth[i] + reach(i)), class: "bars" }),
        draw("line", { x1: x(at) - half, x2: x(at) + half, y1: y(truth[i]), y2: y(truth[i]), class: "true" }));
      if (estimates[i] !== null) svg.append(draw("circle", { cx: x(at), cy: y(estimates[i]), r: Math.max(1.6, half / 2), class: "estimate" }));
    });
    return svg;
  };
  const latest = {};
  const present = (letter, truth, numbers) => {
    if (truth.every((count) => Math.floor(count * state.participation + 0.5) === 0)) numbers = { fault: "Nobody takes part: choose more vehicles or a greater participation." };
    const right = numbers?.errors;
    Object.assign(within(letter, ".fault"), { textContent: numbers?.fault ?? "", hidden: !numbers?.fault });
    within(letter, ".results").hidden = !right;
    latest[letter] = right ? numbers : null;
    if (right) {
      numbers.errors = numbers.errors.map((error) => error ?? Infinity);
      for (const row of numbers.claims) row.epsilon ??= Infinity;
      const rows = [["busy", 0], ["usual", usual(truth)], ["quiet", truth.length - 1]].map(([cell, i]) => [cell, truth[i], numbers.errors[i]]);
      const mean = (values) => values.reduce((sum, value) => sum + value, 0) / truth.length;
      rows.push(["mean of all (error: root mean square)", mean(truth), Math.sqrt(mean(numbers.errors.map((error) => error ** 2)))]);
      within(letter, "tbody").replaceChildren(...rows.map(([cell, count, error]) => {
        const texts = [number(count), number(error), count ? `${number((100 * error) / count)} %` : "–"];
        const row = make("tr", {}, make("th", { scope: "row", textContent: cell }), ...texts.map((textContent) => make("td", { textContent })));
        Object.assign(row.dataset, { cell, count, error });
        return row;
      }));
      within(letter, ".picture").replaceChildren(picture(truth, numbers, letter));
      within(letter, ".claims-list").replaceChildren(...numbers.claims.map(claimItem));
    }
    const waiting = served && LETTERS.some((each) => pending[each]);
    byId("status").textContent = waiting ? "The exact numbers are being computed …" : "";
    document.documentElement.dataset.report = waiting ? "waiting" : "ready";
    byId("difference").textContent = latest.a && latest.b ? difference(truth) : "";
  };
  const difference = (truth) => {
    const [a, b] = LETTERS.map((letter) => latest[letter].errors[usual(truth)]);
    const [more, less, ratio] = a > b ? ["A", "B", a / b] : ["B", "A", b / a];
    const worse = ratio >= 1.005 && ratio < Infinity ? `design ${more} errs ${number(ratio)} times as much as design ${less}`
      : a === b || ratio < Infinity ? "both designs err about as much" : `design ${more} errs, and design ${less} does not`;
    const weak = ({ epsilon, delta }) => delta ?? (epsilon <= AT ? 0 : 1);
    const worst = LETTERS.map((letter) => latest[letter].claims.reduce((one, other) => ((weak(other) - weak(one) || other.epsilon - one.epsilon) > 0 ? other : one)));
    const [inA, inB] = worst.map((row) => limitWords(row).filter(Boolean).join(" and "));
    return `In a usual cell ${worse} (${number(a)} and ${number(b)} vehicles). The weakest limit on a party or a reader of the counts: in A ${inA}, in B ${inB}.`;
  };
  const show = () => {
    const truth = ClosedForms.counts(state.people, state.cells);
    for (const letter of LETTERS) {
      for (const { name, only } of page.design) byId(`${letter}-${name}-field`).hidden = only && only !== state[letter].aggregation;
      if (served) askServer(letter, truth);
      present(letter, truth, closed(letter, truth));
    }
  };

  for (const letter of LETTERS) within(letter, ".write").addEventListener("click", () => write(letter));
  byId("redraw").addEventListener("click", () => { state.seed = (state.seed + 1) % 2 ** 31; changed(true); });
  const restore = () => {
    read(new URLSearchParams(location.hash.length > 1 ? location.hash.slice(1) : page.start));
    byId("city").replaceChildren(...page.city.map((spec) => field(spec, state, "")));
    LETTERS.forEach(buildDesign);
    history.replaceState(null, "", written());
    show();
  };
  window.addEventListener("popstate", restore);
  restore();
})();
