"use strict";
// Errors and claims of mechanisms that have closed forms. Pure functions: they read no page, and load nothing.
const ClosedForms = (() => {
  const CERTAIN = { kind: "infinite", epsilon: Infinity, delta_kind: "exact" };
  const atLeastOnce = (chance, queries) =>
    queries === 1 || chance >= 1 ? Math.min(chance, 1) : -Math.expm1(queries * Math.log1p(-chance));
  const expit = (x) => 1 / (1 + Math.exp(-x));
  const total = (values) => values.reduce((left, right) => left + right, 0);

  // ---- privacy: ε that always holds, and δ at another ε; δ is null where it has no closed form ------------------------
  const convolve = (left, right) => {
    const law = new Float64Array(left.length + right.length - 1);
    left.forEach((mass, i) => right.forEach((other, j) => { law[i + j] += mass * other; }));
    return law;
  };
  const summed = (law, times) => {
    if (times === 1) return law;
    const half = summed(law, Math.floor(times / 2));
    return times % 2 ? convolve(convolve(half, half), law) : convolve(half, half);
  };
  // Two truths whose outputs mirror each other: with probability `apart` an output is e^ε times as likely under one.
  const mirrorDelta = (apart, epsilon, queries, at) => {
    const step = (loss) => -Math.expm1(Math.min(at - loss, 0));
    if (queries === 1) return apart * step(epsilon);
    const other = apart * Math.exp(-epsilon);
    const law = summed(Float64Array.of(other, Math.max(0, 1 - apart - other), apart), queries);
    let delta = 0;
    for (let m = queries; m >= 1; m -= 1) delta += law[queries + m] * step(m * epsilon);
    return delta;
  };
  const mirror = (apart, epsilon, queries, at, basis) => ({
    kind: "exact", epsilon: queries * epsilon, delta_kind: "exact", basis,
    delta: at >= queries * epsilon ? 0 : Math.min(1, mirrorDelta(apart, epsilon, queries, at)),
  });
  // The claim from ε and δ of one query; δ over several queries has no closed form.
  const perQuery = (each, delta, queries, at, basis) => {
    const kind = queries === 1 ? "exact" : "bound";
    return { kind, epsilon: queries * each, delta: at >= queries * each ? 0 : queries === 1 ? delta : null, delta_kind: kind, basis };
  };
  // A yes or no about each cell: p if the vehicle is in it, q if not; `no` is 1 − p and `apart` is p − q.
  const answers = ({ p, no, q, apart }, cells, queries, at) => {
    const falseNo = no + apart;
    const basis = "Yes and no about each cell; a move changes two answers, one if there is a single cell";
    if (no === 0 || q === 0) {
      const laws = cells > 1 ? [[p * q, p * falseNo, no * q, no * falseNo], [q * p, q * no, falseNo * p, falseNo * no]]
        : [[p, no], [q, falseNo]];
      const stick = (left, right, factor) =>
        total(left.map((mass, i) => (right[i] > 0 ? Math.max(mass - factor * right[i], 0) : mass)));
      const delta = Math.max(stick(...laws, Math.exp(at)), stick(laws[1], laws[0], Math.exp(at)));
      return { ...CERTAIN, delta: queries === 1 ? delta : null, delta_kind: queries === 1 ? "exact" : "bound", basis };
    }
    const yesLoss = Math.log1p(apart / q);
    const noLoss = Math.log1p(apart / no);
    if (cells > 1) return mirror(p * falseNo, yesLoss + noLoss, queries, at, basis);
    return perQuery(Math.max(yesLoss, noLoss), Math.max(mirrorDelta(p, yesLoss, 1, at), mirrorDelta(falseNo, noLoss, 1, at)), queries, at, basis);
  };
  // Each truth adds `sampling` to the probability of its own output, which others give with at least `least`.
  const ownValue = (sampling, least, queries, at, basis) => {
    if (least === 0) return { ...CERTAIN, delta: atLeastOnce(sampling, queries), basis };
    return perQuery(Math.log1p(sampling / least), Math.max(sampling - Math.expm1(at) * least, 0), queries, at, basis);
  };

  // ---- error: the variance of the estimate of a cell of y vehicles, constant + y(linear + y·square) --------------------
  const proportion = (p, q, devices, counted) => {
    const gap = p - q;
    const spread = q * (1 - q);
    const more = p * (1 - p) - spread;
    const sample = ((devices / counted) * (devices - counted)) / Math.max(devices - 1, 1);
    return {
      constant: (devices * spread + sample * (devices - 1) * spread) / gap ** 2,
      linear: (more + sample * (gap * (1 - 2 * q) - more / devices)) / gap ** 2,
      square: -sample / devices,
    };
  };
  const twoRounds = (sampling, blank, refresh, devices, counted) => {
    const again = sampling < 1 ? blank / (1 - sampling) : 0;
    const kept = refresh ? (1 - refresh + refresh * again - blank) / (1 - blank) : 1;
    const weight = refresh ? (kept * counted) / devices : 1;
    const first = devices * ((weight * weight * devices) / counted + 1 - 2 * weight * kept);
    const loss = (devices - counted) / counted;
    const within = loss / Math.max(devices - 1, 1);
    return {
      constant: ((blank * (1 - blank)) / sampling ** 2) * (first + devices * loss),
      linear: (1 - sampling - 2 * blank * (1 - weight) + loss * (1 - 2 * blank)) / sampling + within,
      square: -(loss + within) / devices,
    };
  };

  // ---- mechanisms ---------------------------------------------------------------------------------------------------
  // One round: the report supports the true cell with p and any other with q; `report` is the claim about it.
  const oneRound = (p, q, report) => ({
    rounds: 1,
    variance: (devices, counted) => proportion(p, q, devices, counted),
    report: (round, queries, at) => report(queries, at),
    linked: report,
  });
  const oracle = (p, q, apart, epsilon, basis) =>
    oneRound(p, q, (queries, at) => mirror(apart, epsilon, queries, at, basis));
  const unary = (bit, cells) => oneRound(bit.p, bit.q, (queries, at) => answers(bit, cells, queries, at));
  const sameBucket = (buckets) => {
    const wider = 2 ** 32 % buckets;
    const width = Math.floor(2 ** 32 / buckets);
    return (wider * (width + 1) ** 2 + (buckets - wider) * width ** 2) / 2 ** 64;
  };
  const bestThreshold = (epsilon) => {
    const c = Math.exp(-epsilon / 2);
    return Math.min(1, (2 * Math.log((1 + c + Math.sqrt(1 - c + c * c)) / (3 * c))) / epsilon);
  };
  const MECHANISMS = {
    no_privacy: () =>
      oneRound(1, 0, () => ({ ...CERTAIN, delta: 1, basis: "The answer is the cell" })),
    sampling_privacy: ({ sampling, blank_zero: zero = null, refresh = 0 }, cells) => {
      const left = 1 - sampling;
      if (zero !== null && zero > left + 1e-9) throw new RangeError("blank_zero must be at most 1 − sampling");
      const blanks = zero === null ? [left / (cells + 1), left / (cells + 1)]
        : [Math.min(zero, left), Math.max(left - zero, 0) / cells];
      const again = blanks.map((blank) => (sampling < 1 ? blank / left : 0));
      return {
        rounds: 2,
        variance: (devices, counted) => twoRounds(sampling, blanks[1], refresh, devices, counted),
        report: (round, queries, at) => (round === 1
          ? { kind: "exact", epsilon: 0, delta: 0, delta_kind: "exact", basis: "Round one is answered without the truth" }
          : ownValue(sampling, Math.min(...blanks), queries, at, "The own cell against the least likely blank")),
        linked: (queries, at) => {
          const least = Math.min(blanks[0] * (1 - refresh + refresh * again[0]), blanks[0] * refresh * again[1]);
          return ownValue(sampling, refresh ? least : 0, queries, at, "The answers 0, then the cell, of a sampled vehicle");
        },
      };
    },
    randomized_response: ({ first_coin: first = 0.8, second_coin: second = 0.2 }, cells) => {
      const q = (1 - first) * second;
      return unary({ p: first + q, no: (1 - first) * (1 - second), q, apart: first }, cells);
    },
    sue: ({ epsilon }, cells) => {
      const flipped = expit(-epsilon / 2);
      return unary({ p: expit(epsilon / 2), no: flipped, q: flipped, apart: Math.tanh(epsilon / 4) }, cells);
    },
    oue: ({ epsilon }, cells) =>
      unary({ p: 0.5, no: 0.5, q: expit(-epsilon), apart: Math.tanh(epsilon / 2) / 2 }, cells),
    the: ({ epsilon, threshold = null }, cells) => {
      const limit = threshold === null ? bestThreshold(epsilon) : threshold;
      const [below, above] = [(epsilon * (limit - 1)) / 2, (-epsilon * limit) / 2];
      const no = Math.exp(below) / 2;
      return unary({ p: 1 - no, no, q: Math.exp(above) / 2, apart: -(Math.expm1(below) + Math.expm1(above)) / 2 }, cells);
    },
    k_randomized_response: ({ epsilon }, cells) => {
      const odds = Math.exp(epsilon);
      return oracle(odds / (odds + cells), 1 / (odds + cells), odds / (odds + cells), epsilon, "The own cell against any other");
    },
    olh: ({ epsilon, buckets = null }) => {
      const odds = Math.exp(epsilon);
      const g = buckets === null ? Math.min(Math.round(odds) + 1, 2 ** 31 - 1) : buckets;
      const p = odds / (odds + g - 1);
      const same = sameBucket(g);
      const q = 1 / (odds + g - 1) + (Math.expm1(epsilon) / (odds + g - 1)) * same;
      return oracle(p, q, (1 - same) * p, epsilon, "Hash function and bucket together");
    },
    subset_selection: ({ epsilon, size = null }, cells) => {
      const odds = Math.exp(epsilon);
      const d = size === null ? Math.max(1, Math.round((cells + 1) / (odds + 1))) : size;
      if (d > cells) throw new RangeError("size must be at most the number of cells");
      const others = cells + 1 - d;
      const p = (d * odds) / (d * odds + others);
      const q = (p * (d - 1) + (others / (d * odds + others)) * d) / cells;
      return oracle(p, q, (p * others) / cells, epsilon, "A set with one cell and not the other");
    },
    hadamard_response: ({ epsilon }) =>
      oracle(expit(epsilon), 0.5, expit(epsilon) / 2, epsilon, "An output of the own cell’s half"),
  };

  // ---- a city and a design --------------------------------------------------------------------------------------------
  // The quietest cell has a twentieth of the vehicles of the busiest one; the counts add up to all vehicles.
  const counts = (people, cells) => {
    const ratio = cells > 1 ? 20 ** (-1 / (cells - 1)) : 1;
    const below = (i) => Math.floor((cells > 1 ? people * (1 - ratio ** i) / (1 - ratio ** cells) : people * i) + 0.5);
    return Array.from({ length: cells }, (_, i) => below(i + 1) - below(i));
  };
  const whole = (value) => Math.floor(value + 0.5);
  // Errors of a cell’s estimate, scaled up to all vehicles: those who take part are a sample, and messages are lost.
  const errors = (mechanism, truth, participation, loss, messages) => {
    const asked = truth.map((count) => whole(count * participation));
    const devices = total(asked);
    const counted = Math.min(devices, Math.max(1, whole(devices * (1 - loss) ** messages)));
    if (!devices) return truth.map(() => Infinity);
    const { constant, linear, square } = mechanism.variance(devices, counted);
    return truth.map((count, i) => {
      const variance = Math.max(constant + asked[i] * (linear + asked[i] * square), 0);
      return Math.sqrt(variance + count * participation * (1 - participation)) / participation;
    });
  };
  const NOTHING = { kind: "exact", epsilon: 0, delta: 0, delta_kind: "exact" };
  // Who learns what at ε = `at`: each party, the first `colluding` of them together, and readers (no party).
  const claims = (mechanism, design, queries, at) => {
    const { aggregation: kind } = design;
    const parties = { trusted: 1, per_round: mechanism.rounds, shuffled: 2, secret_shared: design.servers }[kind];
    const colluding = Math.min(design.colluding, parties);
    const linked = { view: "linked_reports", ...mechanism.linked(queries, at) };
    const row = (coalition, claim) => ({ coalition, queries, ...claim });
    const round = (number) => ({ view: `report_round_${number}`, ...mechanism.report(number, queries, at) });
    const most = (view, basis) => ({ ...linked, view, kind: "bound", delta_kind: "bound", basis });
    const servers = Array.from({ length: colluding }, (_, i) => `server:${i + 1}`);
    const rows = [];
    if (kind === "trusted") rows.push(row(["server:1"], linked));
    if (kind === "per_round") {
      for (let number = 1; number <= mechanism.rounds; number += 1) rows.push(row([`server:${number}`], round(number)));
      if (colluding > 1) rows.push(row(servers, linked));
    }
    if (kind === "shuffled") {
      const view = mechanism.rounds === 1 ? "shuffled_round_1" : "released_counts";
      rows.push(row(["server:1"], most(view, "At most what the answers reveal if they are linked to vehicles")));
      rows.push(row(["mixer"], { view: null, ...NOTHING, basis: "Sealed answers" }));
      if (colluding > 1) rows.push(row(["server:1", "mixer"], linked));
    }
    if (kind === "secret_shared") {
      const shares = { view: "shares", ...NOTHING, basis: "Fewer shares than all of them are uniform numbers" };
      rows.push(row(["server:1"], shares));
      if (colluding > 1) rows.push(row(servers, colluding < design.servers ? shares : linked));
    }
    rows.push(row([], most("released_counts", "What is published is computed from the answers: at most what they reveal")));
    return rows;
  };
  return { MECHANISMS, counts, errors, claims, whole };
})();
