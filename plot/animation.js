"use strict";
// Draws the panes, rows and watermarks of a run up to a step, as SVG. Times are milliseconds after `data.origin`.
// It makes texts out of values, and knows nothing of a browser.

const MOST = 60; // panes of a panel that are drawn as rectangles with values; more are drawn as cells
const CELL = 4; // pixels
const TIMINGS = ["early", "on time", "late"];
const LEFT = 80, TOP = 10, RIGHT = 14, BOTTOM = 50;
const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR, MONTH = 30 * DAY;
const SMALL = [0.001, 0.01, 0.1, 1, 10, 100].flatMap(unit => [unit, 2 * unit, 5 * unit]);
const LENGTHS = [
  ...SMALL, ...[1, 2, 5, 10, 15, 30].map(n => n * 1000), ...[1, 2, 5, 10, 15, 30].map(n => n * MINUTE),
  ...[1, 2, 3, 6, 12].map(n => n * HOUR), ...[1, 2, 7, 14].map(n => n * DAY),
  ...[1, 3, 6, 12, 24, 60, 120, 600].map(n => n * MONTH),
];

const text = words => String(words).replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`);
const short = number => String(Math.round(number * 10) / 10);
const within = (low, value, high) => Math.max(low, Math.min(value, high));

/** The data with what follows from them: the pane before each pane, and the step at which it is no longer shown. */
function model(data) {
  const { window, at, diff, step } = data.panes;
  const before = [], until = at.map(() => Infinity), last = new Map();
  window.forEach((own, pane) => {
    const older = last.get(own);
    if (older !== undefined) until[older] = Math.min(until[older], step[pane]);
    before.push(older === undefined ? null : at[older]);
    if (diff[pane] > 0) last.set(own, pane);
  });
  const newest = [];
  let latest = data.bounds[0], row = 0;
  data.steps.at.forEach((_, place) => {
    for (; row < data.rows.step.length && data.rows.step[row] <= place; row++)
      latest = Math.max(latest, data.rows.event[row]);
    newest.push(latest);
  });
  return { ...data, before, until, newest };
}

/** The times that a picture shows: all of them, or a part around the newest row and the clock of a step. */
function view(run, step, zoom) {
  const part = ([low, high], at, share) => {
    const length = (high - low) / zoom;
    const start = within(low, at - share * length, high - length);
    return [start, start + length];
  };
  return { x: part(run.bounds, run.newest[step], 0.75), y: part(run.heights, run.steps.at[step], 0.85) };
}

/** Even times between two, at most so many, each with a text, and the date where it is another one. */
function ticks(origin, [low, high], most) {
  const length = LENGTHS.find(one => (high - low) / one <= most) ?? LENGTHS.at(-1);
  const from = origin + low, to = origin + high, times = [];
  if (length < MONTH) {
    const zero = length % (7 * DAY) ? 0 : 4 * DAY; // weeks begin on Mondays
    for (let n = Math.ceil((from - zero) / length); n * length + zero <= to; n++) times.push(n * length + zero);
  } else {
    const months = length / MONTH, first = new Date(from);
    for (let n = Math.floor((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months; ; n += months) {
      const time = Date.UTC(Math.floor(n / 12), n % 12, 1);
      if (time > to) break;
      if (time >= from) times.push(time);
    }
  }
  const texts = times.map(time => tick_text(time, length));
  const alike = length >= 1000 && texts.every(([, day]) => day === texts[0][1]); // then the name of the axis has it
  return texts.map(([words, day], n) =>
    ({ at: times[n] - origin, words, day: alike || day === texts[n - 1]?.[1] ? "" : day }));
}

function tick_text(time, length) {
  const iso = new Date(Math.floor(time + 1e-4)).toISOString();
  const day = new Date(time).toLocaleString("en", { month: "short", day: "numeric", timeZone: "UTC" });
  if (length >= MONTH) return [day.split(" ")[0], iso.slice(0, 4)];
  if (length >= DAY) return [day, iso.slice(0, 4)];
  if (length >= MINUTE) return [iso.slice(11, 16), day];
  if (length >= 1000) return [iso.slice(11, 19), day];
  const micros = String(Math.round((time - Math.floor(time + 1e-4)) * 1000)).padStart(3, "0");
  return [iso.slice(17, 23) + (length < 1 ? micros : ""), iso.slice(11, 16)];
}

/** The name of an axis, with the dates that it shows. */
function axis_name(name, origin, [low, high]) {
  const [first, last] = [low, high].map(at => new Date(origin + at).toISOString().slice(0, 10));
  return `${name} (UTC, ${first === last ? first : `${first} to ${last}`})`;
}

/** A time in words, as exact as it is. */
function time_text(origin, at) {
  const time = origin + at, iso = new Date(Math.floor(time + 1e-4)).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, iso.endsWith(".000Z") ? 19 : 23)}`;
}

/** Labels that do not cover each other: each goes to its first place that is free, or is left out. */
function labels(width, height) {
  const boxes = [];
  const free = box => box[0] >= -2 && box[2] <= width + 2 && box[1] >= -2 && box[3] <= height + 2 &&
    boxes.every(one => box[2] <= one[0] || box[0] >= one[2] || box[3] <= one[1] || box[1] >= one[3]);
  return {
    block(x, y, size) { boxes.push([x - size, y - size, x + size, y + size]); },
    write(words, size, name, places) {
      const long = [...words].reduce((sum, sign) => sum + (sign > "\u1100" ? 1.05 : 0.62), 0) * size + 4;
      for (const [x, y, anchor] of words ? places : []) {
        const start = { start: x - 2, middle: x - long / 2, end: x - long + 2 }[anchor];
        const box = [start, y - size * 0.65, start + long, y + size * 0.65];
        if (!free(box)) continue;
        boxes.push(box);
        const at = `x="${short(x)}" y="${short(y + size * 0.35)}" text-anchor="${anchor}" font-size="${size}"`;
        return `<text class="${name}" ${at}>${text(words)}</text>`;
      }
      return "";
    },
  };
}

/** The picture of one panel up to a step. `has` says of the number of a key if the panel shows it. */
function draw(run, has, step, part, width, height) {
  const wide = width - LEFT - RIGHT, high = height - TOP - BOTTOM;
  const x = at => within(-90, (at - part.x[0]) / (part.x[1] - part.x[0]) * wide, wide + 90);
  const y = at => within(-90, high - (at - part.y[0]) / (part.y[1] - part.y[0]) * high, high + 90);
  const { panes, windows, rows } = run;
  const sides = pane => {
    const own = panes.window[pane];
    return [windows.start[own] ?? part.x[0] - 1, windows.end[own] ?? part.x[1] + 1];
  };
  const numbers = (column, own) => column.map((_, n) => n).filter(own);
  const all = numbers(panes.at, pane => has(windows.key[panes.window[pane]]));
  const seen = all.filter(pane => {
    const [start, end] = sides(pane), at = panes.at[pane], from = panes.diff[pane] < 0 ? at : run.before[pane];
    return start < part.x[1] && end > part.x[0] && at >= part.y[0] && (from ?? part.y[0]) <= part.y[1];
  });
  const every = numbers(rows.at, row => has(rows.key[row]));
  const near = every.filter(row => {
    const event = rows.event[row], at = rows.at[row];
    return event >= part.x[0] && event <= part.x[1] && at >= part.y[0] && at <= part.y[1];
  });
  const until_now = (column, some) => some.filter(n => column.step[n] <= step);
  const shown = until_now(panes, seen), dots = until_now(rows, near);
  // Marks keep their size from step to step.
  const size = near.length <= 60 ? 4.5 : near.length <= 200 ? 3 : near.length <= 1000 ? 1.8 : 1;
  const frame = { run, step, x, y, wide, high, part, sides, size, names: labels(wide, high) };
  const [marks, values] = seen.filter(pane => panes.diff[pane] > 0).length > MOST ? cells(frame, shown) : rectangles(frame, shown, dots);
  const clock = `<path class="now" d="M0 ${short(y(run.steps.at[step]))}h${wide}"/>`;
  const inside = [grid_lines(frame), marks, watermarks(frame), points(frame, dots), values, clock];
  const words = summary(run, until_now(panes, all), until_now(rows, every), step);
  return `<svg class="picture" role="img" aria-label="${text(words)}" width="${width}" height="${height}">` +
    `<svg x="${LEFT}" y="${TOP}" width="${wide}" height="${high}">${inside.join("")}</svg>${axes(frame)}</svg>`;
}

/** What a panel shows, in words. */
function summary(run, panes, rows, step) {
  const shown = panes.filter(pane => run.panes.diff[pane] > 0);
  const counts = TIMINGS.map((name, timing) => [shown.filter(p => run.panes.timing[p] === timing).length, name]);
  const parts = counts.filter(([count]) => count).map(([count, name]) => `${count} ${name}`);
  const late = rows.filter(row => run.rows.state[row] > 0).length;
  return `After step ${step + 1}: panes: ${parts.join(", ") || "none"}; retracted: ${panes.length - shown.length}; ` +
    `rows: ${rows.length}, of them late: ${late}.`;
}

/** Few panes: a rectangle for each, with its value. */
function rectangles({ run, step, x, y, wide, high, sides, size, names }, panes, rows) {
  const at = row => [x(run.rows.event[row]), y(run.rows.at[row])];
  for (const row of rows) names.block(...at(row), size + 1);
  const boxes = [], lines = [], words = [];
  for (const pane of panes) {
    const [start, end] = sides(pane), left = x(start), right = x(end), top = y(run.panes.at[pane]);
    const value = run.panes.value[pane], fresh = run.panes.step[pane] === step ? " new" : "";
    const [from, to] = [within(0, left, wide), within(0, right, wide)]; // what is seen of its window
    const places = shares => shares.map(share => from + (to - from) * share);
    const said = `${window_text(run, pane)}, at ${time_text(run.origin, run.panes.at[pane])}`;
    if (run.panes.diff[pane] < 0) {
      const line = `M${short(left)} ${short(top)}H${short(right)}`;
      lines.push(`<path class="retracted${fresh}" d="${line}"><title>retracted ${text(value)}, ${said}</title></path>`);
      const spots = places([0.82, 0.5, 0.18, 0.66, 0.34]).map(place => [place, top - 9, "middle"]);
      words.push([pane, () => names.write(`−${value}`, 11, "retraction", spots)]);
      continue;
    }
    const name = TIMINGS[run.panes.timing[pane]].replace(" ", "-");
    const low = run.before[pane] === null ? high + 2 : y(run.before[pane]);
    const corners = `M${short(left)} ${short(low)}V${short(top)}H${short(right)}V${short(low)}z`;
    const title = `<title>${TIMINGS[run.panes.timing[pane]]} pane ${text(value)}, ${said}</title>`;
    boxes.push(`<path class="pane ${name}${fresh}" d="${corners}">${title}</path>`);
    // A value that is still shown and has no room in its rectangle stands above it.
    const under = low - top > 18 ? top + 11 : run.until[pane] > step ? top - 10 : null;
    const spots = under === null ? [] : places([0.5, 0.35, 0.65, 0.2, 0.8]).map(place => [place, under, "middle"]);
    words.push([pane, () => names.write(value, 14, "value", spots)]);
  }
  // What is new or still shown has the first choice of places.
  const rank = pane => (run.panes.step[pane] === step ? 2 : 0) + (run.until[pane] > step ? 1 : 0);
  words.sort(([one], [other]) => rank(other) - rank(one));
  const values = words.map(([, write]) => write());
  for (const row of size < 3 ? [] : [...rows].reverse()) {
    const [left, top] = at(row), far = size + 4;
    const spots = [[left + far, top, "start"], [left - far, top, "end"]];
    spots.push([left, top - far - 4, "middle"], [left, top + far + 4, "middle"]);
    values.push(names.write(run.rows.label[row], 11, "datum", spots));
  }
  return [boxes.join("") + lines.join(""), values.join("")];
}

function window_text(run, pane) {
  const own = run.panes.window[pane], start = run.windows.start[own];
  const words = start === null ? "all of time"
    : `${time_text(run.origin, start)} to ${time_text(run.origin, run.windows.end[own])}`;
  const key = run.keys[run.windows.key[own]];
  return text(key ? `${key}, ${words}` : words);
}

/** Many panes, on a grid of cells: each has the colour of the latest timing in it, strong where one was emitted. */
function cells({ run, step, x, y, wide, high, sides, names }, panes) {
  const columns = Math.ceil(wide / CELL), rows = Math.ceil(high / CELL);
  const shown = new Uint8Array(columns * rows), emitted = new Uint8Array(columns * rows);
  const retracted = new Set(), last = new Map(), fresh = [];
  const column = at => Math.round(x(at) / CELL);
  const row = at => Math.floor(y(at) / CELL);
  for (const pane of panes) {
    const [start, end] = sides(pane), top = row(run.panes.at[pane]);
    const left = within(0, column(start), columns - 1), right = within(left + 1, column(end), columns);
    const inside = top >= 0;
    if (run.panes.diff[pane] < 0) {
      last.delete(run.panes.window[pane]);
      for (let c = left; inside && c < right; c++) retracted.add(top * columns + c);
      continue;
    }
    const state = run.panes.timing[pane] + 1;
    const low = run.before[pane] === null ? rows - 1 : Math.min(row(run.before[pane]), rows - 1);
    for (let r = Math.max(top, 0); r <= low; r++)
      for (let c = left; c < right; c++)
        if (shown[r * columns + c] < state) shown[r * columns + c] = state;
    for (let c = left; inside && c < right; c++)
      emitted[top * columns + c] = Math.max(emitted[top * columns + c], state);
    last.delete(run.panes.window[pane]);
    last.set(run.panes.window[pane], pane); // the newest ones last
    if (run.panes.step[pane] === step) fresh.push(`M${short(x(start))} ${short(y(run.panes.at[pane]))}H${short(x(end))}`);
  }
  const runs = (grid, state, name) => {
    const parts = [];
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < columns; c++) {
        if (grid[r * columns + c] !== state) continue;
        const from = c;
        while (c + 1 < columns && grid[r * columns + c + 1] === state) c++;
        parts.push(`M${from * CELL} ${r * CELL}h${(c + 1 - from) * CELL}v${CELL}h${(from - c - 1) * CELL}z`);
      }
    return parts.length ? `<path class="${name}" d="${parts.join("")}"/>` : "";
  };
  const layers = TIMINGS.map((timing, n) => runs(shown, n + 1, `area ${timing.replace(" ", "-")}`));
  layers.push(...TIMINGS.map((timing, n) => runs(emitted, n + 1, `mark ${timing.replace(" ", "-")}`)));
  const ends = new Set();
  for (const pane of last.values()) {
    const [left, right] = sides(pane).map(x);
    if (right - left > 4 * CELL) for (const end of [left, right]) ends.add(`M${short(end)} ${short(y(run.panes.at[pane]))}V${high}`);
  }
  layers.push(`<path class="end" d="${[...ends].join("")}"/>`);
  const dots = [...retracted].map(cell => `M${(cell % columns + 0.5) * CELL} ${(Math.floor(cell / columns) + 0.5) * CELL}h0`);
  layers.push(`<path class="dots" d="${dots.join("")}"/><path class="fresh" d="${fresh.join("")}"/>`);
  const keys = new Set([...last.keys()].map(own => run.windows.key[own]));
  const several = run.mixed || keys.size > 1; // then a value would not say whose it is
  const values = (several ? [] : [...last.values()].reverse()).map(pane => {
    const [left, right] = sides(pane).map(end => within(0, x(end), wide)), value = run.panes.value[pane];
    // A value that is wider than its window would seem to be one of the windows beside it.
    if (right - left < 7 * value.length && run.panes.timing[pane] < 2) return "";
    const spots = [0.5, 0.35, 0.65].map(share => [left + (right - left) * share, y(run.panes.at[pane]) + 10, "middle"]);
    return names.write(value, 12, "value", spots);
  });
  return [layers.join(""), values.join("")];
}

/** Rows as dots: filled, hollow if late, crossed out if dropped. Those that fall together are drawn once. */
function points({ run, step, x, y, size }, rows) {
  const spots = [new Set(), new Set(), new Set()], fresh = [];
  for (const row of rows) {
    const left = x(run.rows.event[row]), top = y(run.rows.at[row]);
    spots[run.rows.state[row]].add(`${short(left)} ${short(top)}`);
    if (run.rows.step[row] === step) fresh.push([left, top]);
  }
  const dots = (some, name, width) => some.size
    ? `<path class="${name}" stroke-width="${width}" d="${[...some].map(at => `M${at}h0`).join("")}"/>` : "";
  const wide = Math.max(size, 1.8); // a small circle would seem to be full
  const cross = [...spots[2]].map(at => `M${at}m${-wide} ${-wide}l${2 * wide} ${2 * wide}m${-2 * wide} 0l${2 * wide} ${-2 * wide}`);
  const hollow = new Set([...spots[1], ...spots[2]]);
  const rings = fresh.slice(-200).map(([left, top]) => `<circle class="ring" cx="${short(left)}" cy="${short(top)}" r="${size + 3}"/>`);
  return rings.join("") + dots(spots[0], "dot", 2 * size) + dots(hollow, "dot", 2 * wide + 1) +
    dots(hollow, "hole", 2 * wide - (wide > 2 ? 1.6 : 1)) + (cross.length ? `<path class="cross" d="${cross.join("")}"/>` : "");
}

/** Each watermark: up while it stays, to the right when it advances. */
function watermarks({ run, step, x, y, wide }) {
  return run.marks.map(({ at, to, step: places }, number) => {
    const corners = [];
    places.forEach((place, n) => {
      if (place > step) return;
      const next = within(-2, x(to[n]), wide + 2);
      corners.push(`${corners.length ? `V${short(y(at[n]))}H` : `M-2 ${short(y(at[n]))}H`}${short(next)}`);
    });
    if (!corners.length) return "";
    const d = corners.filter((corner, n) => corner !== corners[n - 1]).join("") + `V${short(y(run.steps.at[step]))}`;
    return `<path class="watermark" stroke-dasharray="${4 + 3 * number} 2" d="${d}"/>`;
  }).join("");
}

function axis_ticks({ run, part, wide, high }) {
  return [ticks(run.origin, part.x, wide / 85), run.timed ? ticks(run.origin, part.y, high / 44) : []];
}

function grid_lines(frame) {
  const [across, upwards] = axis_ticks(frame);
  const lines = across.map(({ at }) => `M${short(frame.x(at))} 0V${frame.high}`);
  lines.push(...upwards.map(({ at }) => `M0 ${short(frame.y(at))}H${frame.wide}`));
  return `<path class="grid" d="${lines.join("")}"/>`;
}

function axes(frame) {
  const { run, x, y, part, wide, high } = frame, [across, upwards] = axis_ticks(frame);
  const out = [`<path class="axis" d="M${LEFT} ${TOP}V${TOP + high}H${LEFT + wide}"/>`];
  const word = (left, top, anchor, words, more = "") =>
    out.push(`<text class="tick" x="${short(left)}" y="${short(top)}" text-anchor="${anchor}"${more}>${text(words)}</text>`);
  for (const { at, words, day } of across) {
    const left = within(LEFT + 8, LEFT + x(at), LEFT + wide - 14);
    word(left, TOP + high + 15, "middle", words);
    if (day) word(left, TOP + high + 28, "middle", day);
  }
  for (const { at, words, day } of upwards) {
    word(LEFT - 6, TOP + y(at) + 4, "end", words);
    if (day) word(LEFT - 6, TOP + y(at) + 17, "end", day);
  }
  word(LEFT + wide / 2, TOP + high + 45, "middle", axis_name("event time", run.origin, part.x));
  const name = run.timed ? axis_name("processing time", run.origin, part.y) : "order of arrival";
  const middle = TOP + high / 2;
  word(12, middle, "middle", name, ` transform="rotate(-90 12 ${short(middle)})"`);
  return out.join("");
}

const LENGTH_OF_STEPS = [1, 10, 100, 1000, 1e4, 1e5, 1e6].flatMap(unit => [unit, 2 * unit, 5 * unit]);

/** The steps that have a label under the slider, at most so many. */
function labelled(run, most) {
  const count = run.steps.at.length, every = LENGTH_OF_STEPS.find(length => count / length <= most);
  const places = [...Array(count).keys()].filter(place => place % every === 0);
  const words = place => run.timed ? tick_text(run.origin + run.steps.at[place], 1000)[0] : String(place + 1);
  return places.map(place => ({ place, words: words(place) }));
}

if (typeof module !== "undefined") module.exports = { cells, draw, labelled, model, ticks, time_text, view };
