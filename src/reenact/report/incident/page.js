// The page comes alive: its data is read, the list takes the place of the plain one, printing shows every call.

const PRINTED = 100; // calls that are printed whole
const LISTED = 1000; // and those that are printed as a line each

function read(name) {
  const holder = document.getElementById(`data-${name}`);
  const value = JSON.parse(holder.textContent);
  holder.remove(); // its text is held once more as long as it stands in the page
  return value;
}

function lazily(make) {
  let made;
  return () => (made === undefined ? (made = make()) : made);
}

function fromAddress(calls) {
  const found = /^#call-(\d+)$/.exec(location.hash);
  return found !== null && calls.choose(Number(found[1]), { named: false });
}

// Say which calls are printed whole: all of a short run, else those around the place where the runs part.
function whole(list) {
  const first = list.rows.length <= PRINTED ? 0 : Math.max(0, Math.min((list.parting ?? 0) - PRINTED / 2, list.rows.length - PRINTED));
  return [first, Math.min(list.rows.length, first + PRINTED)];
}

function line(list, row) {
  return el("li", { value: row[0] }, el("b", {}, shown(`${list.kinds[row[2]]} ${row[3]}`)), " ", el("bdi", {}, shown(row[6])), " → ", el("bdi", {}, shown(row[7])));
}

function printing(list, data) {
  const show = () => {
    if (document.getElementById("printed")) return;
    const detail = new Detail(list, data());
    const [first, end] = whole(list);
    const others = list.rows.filter((_, place) => place < first || place >= end);
    const box = el("div", { id: "printed" });
    if (others.length) {
      box.append(el("p", { class: "gap" }, `Of ${count(list.rows.length)} calls, ${count(end - first)} are printed whole${list.parting === null ? "" : ", around the first difference"}, and ${count(Math.min(LISTED, others.length))} of the others as a line each.`));
    }
    for (let place = first; place < end; place++) box.append(detail.build(place, true));
    if (others.length) box.append(el("ol", { class: "lines" }, others.slice(0, LISTED).map((row) => line(list, row))));
    document.getElementById("explorer").after(box);
  };
  window.addEventListener("beforeprint", show);
  window.addEventListener("afterprint", () => { const box = document.getElementById("printed"); if (box) box.remove(); });
  for (const folded of document.querySelectorAll("main details")) {
    const was = () => folded.open;
    let before = was();
    window.addEventListener("beforeprint", () => { before = was(); folded.open = true; });
    window.addEventListener("afterprint", () => { folded.open = before; });
  }
}

function saving() {
  const button = document.getElementById("save");
  const holder = document.getElementById("data-trace");
  if (!button || !holder) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const trace = JSON.parse(holder.textContent);
    const bytes = Uint8Array.from(atob(trace.base64), (character) => character.charCodeAt(0));
    const address = URL.createObjectURL(new Blob([bytes], { type: "application/gzip" }));
    el("a", { href: address, download: trace.name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });
}

function begin() {
  const list = read("rows");
  const data = lazily(() => read("bodies"));
  const home = document.getElementById("explorer");
  document.getElementById("plain").remove();
  home.hidden = false;
  const calls = new Calls(list, data, home);
  printing(list, data);
  saving();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.key === "/") { calls.query.focus(); event.preventDefault(); }
    if (event.key === "d" && list.parting !== null) { calls.choose(list.parting); calls.back(); }
  });
  window.addEventListener("hashchange", () => { if (fromAddress(calls)) home.scrollIntoView({ block: "start" }); });
  // The list is there before what was said is read.
  setTimeout(() => {
    if (fromAddress(calls)) { home.scrollIntoView({ block: "start" }); return; }
    const failed = list.rows.findIndex((row) => row[8].length > 0);
    if (list.rows.length) calls.choose(list.parting ?? (failed >= 0 ? failed : 0), { named: false });
    else calls.side.append(el("p", { class: "dim" }, "No call was recorded."));
  }, 0);
}

begin();
