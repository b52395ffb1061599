"use strict";
// The one way of trace text into the page: text nodes. Nothing here makes markup, an address or a style out of it.

// Characters that would show as nothing or turn what stands beside them; inert.py has the same list.
const HIDDEN = new RegExp(
  "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
    "\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\ufdd0-\\ufdef\\ufffe\\uffff\\u{e0000}-\\u{e01ef}]+", "gu");
const FIRST = 3000; // characters of a long text that are shown at once
const STEP = 20000; // and with each further piece
const SLICE_MS = 12; // how long showing a whole text may hold up the page at a time

function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function escaped(characters) {
  return Array.from(characters, (character) => {
    const code = character.codePointAt(0);
    const hex = code.toString(16);
    return code < 0x100 ? "\\x" + hex.padStart(2, "0")
      : code < 0x10000 ? "\\u" + hex.padStart(4, "0") : "\\U" + hex.padStart(8, "0");
  }).join("");
}

// Give trace text as nodes: hidden characters are spelled out and marked.
function shown(text) {
  const made = document.createDocumentFragment();
  const whole = text.replace(/\r\n?/g, "\n");
  let at = 0;
  for (const found of whole.matchAll(HIDDEN)) {
    if (found.index > at) made.append(whole.slice(at, found.index));
    made.append(el("span", { class: "esc" }, escaped(found[0])));
    at = found.index + found[0].length;
  }
  if (at < whole.length) made.append(whole.slice(at));
  return made;
}

// Say where a piece that begins at `from` ends: at a line's end if there is one, and never inside a character.
function pieceEnd(text, from, size) {
  let end = from + size;
  if (end >= text.length) return text.length;
  const line = text.lastIndexOf("\n", end);
  if (line > from + size / 2) return line + 1;
  const code = text.charCodeAt(end - 1);
  if (code >= 0xd800 && code < 0xdc00) end += 1;
  return end;
}

function count(number) {
  return number.toLocaleString("en");
}

// Show a text of any length: its beginning, and the rest piece by piece when it is asked for.
function longText(text, { cut = null, most = FIRST, grows = true, mono = false } = {}) {
  const box = el("div", { class: mono ? "text mono" : "text", dir: "auto" });
  let at = 0;
  const add = (size) => {
    const end = pieceEnd(text, at, size);
    const piece = text.slice(at, end);
    box.append(el("div", { class: "piece" }, shown(end < text.length && piece.endsWith("\n") ? piece.slice(0, -1) : piece)));
    at = end;
  };
  add(text.length <= most * 1.2 ? text.length : most);
  const notes = [];
  if (cut !== null) notes.push(el("p", { class: "gap" }, `Cut: this page holds ${count(text.length)} of ${count(cut)} characters.`));
  if (at >= text.length) return el("div", {}, box, notes);
  if (!grows) return el("div", {}, box, el("p", { class: "gap" }, `… ${count(text.length - at)} characters more`), notes);
  const more = el("button", { type: "button", class: "small" });
  const whole = el("button", { type: "button", class: "small" });
  const bar = el("p", { class: "more" }, more, " ", whole);
  const label = () => {
    more.textContent = `Show ${count(Math.min(STEP, text.length - at))} more`;
    whole.textContent = `Show whole (${count(text.length)} characters)`;
    if (at >= text.length) bar.remove();
  };
  more.addEventListener("click", () => { add(STEP); label(); });
  whole.addEventListener("click", () => {
    more.disabled = whole.disabled = true;
    const work = () => {
      const until = performance.now() + SLICE_MS;
      while (at < text.length && performance.now() < until) add(STEP);
      if (at < text.length) { whole.textContent = `${Math.floor(100 * at / text.length)} %`; setTimeout(work, 0); }
      else label();
    };
    work();
  });
  label();
  return el("div", {}, box, bar, notes);
}

function duration(microseconds) {
  if (microseconds === null) return "?";
  const ms = microseconds / 1000;
  if (ms < 999.5) return ms >= 1 ? `${Math.round(ms)} ms` : `${Number(ms.toPrecision(1))} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor(whole / 60) % 60).padStart(2, "0")} min`;
}
