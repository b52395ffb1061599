// One call, whole: what was asked, what came of it, and how the second run differs. Built when it is looked at.

class Detail {
  constructor(list, data) {
    this.list = list;
    this.data = data;
  }

  text(shared) {
    return typeof shared === "number" ? this.data.texts[shared] : shared;
  }

  long(shared, options) {
    const cut = typeof shared === "number" ? this.data.cut[shared] : undefined;
    return longText(this.text(shared), { cut: cut === undefined ? null : cut, ...this.limits, ...options });
  }

  // Show call `place`; `printed` leaves out what is folded away and cuts long texts.
  build(place, printed = false) {
    this.limits = printed ? { grows: false, most: 2500 } : {};
    this.printed = printed;
    const body = this.data.bodies[place];
    const [number, , kind, name, start, took, , , marks] = this.list.rows[place];
    const word = this.list.kinds[kind];
    const title = el("h3", {}, el("span", { class: `kind k-${kindClass(word)}` }, word), " ",
      el("bdi", {}, shown(name)), " ", el("span", { class: "dim" }, `#${number}`));
    const when = `${duration(took)}, ${duration(start)} after the start`;
    const head = el("header", {}, title, el("p", { class: "dim" }, when,
      marks.map((mark) => el("span", { class: "flag bad" }, shown(mark)))));
    if (body.because !== undefined) {
      head.append(el("p", {}, "Asked for by ", this.link(body.because)));
    }
    return el("article", { class: "call" }, head, this.differences(place), this.parts(body, place), this.facts(body));
  }

  parts(body, place) {
    const made = [];
    if (body.http) made.push(this.block("Request", el("p", {}, el("b", {}, shown(body.http[0])), " ", el("bdi", { class: "mono" }, shown(this.text(body.http[1]))))));
    if (body.asked) made.push(...this.asked(body, place));
    if (body.given) made.push(this.block(body.http ? "Body" : "Arguments", this.value(body.given)));
    if (body.documents) made.push(this.block(`Retrieved: ${body.documents.length} ${body.documents.length === 1 ? "document" : "documents"}`, this.documents(body.documents)));
    if (body.said) made.push(...this.said(body));
    if (body.reply) made.push(this.block("Reply", this.value(body.reply)));
    if (body.returned !== undefined) {
      const shape = this.value(body.returned);
      made.push(body.documents && !this.printed ? this.folded("Returned, as it was", () => shape) : body.documents ? null : this.block("Result", shape));
    }
    if (body.yielded) made.push(this.block(`Yielded ${count(body.stream[0])} pieces`, el("ol", { class: "yielded" }, body.yielded.map((each) => el("li", {}, this.value(each))))));
    if (body.raised) made.push(this.block("Raised", this.raised(body.raised)));
    if (body.silent) made.push(this.block("Outcome", el("p", { class: "dim" }, "None was recorded.")));
    const ended = this.ended(body);
    if (ended) made.push(el("p", { class: "dim" }, ended));
    return made.filter(Boolean);
  }

  block(title, ...children) {
    return el("section", { class: "block" }, el("h4", {}, title), children);
  }

  folded(title, build) {
    if (this.printed) return null;
    const box = el("details", {}, el("summary", {}, title));
    box.addEventListener("toggle", () => { if (box.open && box.childElementCount === 1) box.append(el("div", {}, build())); });
    return box;
  }

  asked(body, place) {
    const asked = body.asked;
    const made = [];
    const title = asked.inputs ? "Embedded" : "Sent to the model";
    const box = this.block(title, asked.model ? el("p", { class: "dim" }, "model ", el("bdi", {}, shown(asked.model))) : null);
    if (asked.settings) box.append(this.folded("Settings", () => this.value(asked.settings)) || "");
    if (asked.tools !== undefined) {
      const tools = this.data.tools[asked.tools];
      box.append(this.folded(`${tools.length} ${tools.length === 1 ? "tool" : "tools"} offered`, () => tools.map(([name, schema]) =>
        el("div", { class: "schema" }, el("b", {}, shown(name)), this.long(schema, { mono: true })))) || "");
    }
    if (asked.as) {
      const [from, kept] = asked.as;
      const what = `${count(kept)} earlier ${kept === 1 ? "message" : "messages"}, as in #${this.list.rows[from][0]}`;
      if (this.printed) box.append(el("p", { class: "gap" }, `${what}, not printed again`));
      else box.append(this.folded(what, () => this.prefix(from, kept).map((each) => this.message(each))));
    }
    box.append(...asked.new.map((each) => this.message(each)));
    if (asked.inputs) box.append(...asked.inputs.slice(0, 100).map((each) => el("div", { class: "msg" }, this.long(each))));
    made.push(box);
    return made;
  }

  // Give the first `kept` messages of the conversation that call `place` sent.
  prefix(place, kept) {
    const parts = [];
    let from = place;
    let left = kept;
    while (left > 0) {
      const asked = this.data.bodies[from].asked;
      const before = asked.as ? asked.as[1] : 0;
      if (left > before) parts.unshift(asked.new.slice(0, left - before));
      left = Math.min(left, before);
      if (asked.as) from = asked.as[0];
    }
    return parts.flat();
  }

  said(body) {
    const said = body.said;
    const told = [];
    if (said.finish.length) told.push(`finished: ${said.finish.join(", ")}`);
    if (said.usage.in !== undefined || said.usage.out !== undefined) told.push(`${count(said.usage.in || 0)} tokens in, ${count(said.usage.out || 0)} out`);
    if (said.usage.cached) told.push(`${count(said.usage.cached)} of them cached`);
    if (said.usage.reasoning) told.push(`${count(said.usage.reasoning)} for reasoning`);
    if (said.vectors) told.push(`${count(said.vectors[0])} vectors of ${count(said.vectors[1])} numbers`);
    return [el("section", { class: "block answer" }, el("h4", {}, "The model answered"),
      said.model ? el("p", { class: "dim" }, "model ", el("bdi", {}, shown(said.model))) : null,
      said.messages.map((each) => this.message(each, body.led)),
      told.length ? el("p", { class: "dim" }, shown(told.join(" · "))) : null)];
  }

  message(number, led) {
    const said = this.data.messages[number];
    const role = el("div", { class: "role" }, shown(said.role), said.name ? el("span", { class: "dim" }, " ", shown(said.name)) : "");
    const parts = said.parts.map((part) => this.part(part, led));
    return el("div", { class: `msg r-${/^(system|developer|user|assistant|tool)$/.test(said.role) ? said.role : "other"}` },
      role, el("div", { class: "parts" }, parts.length ? parts : el("p", { class: "dim" }, "(nothing)")));
  }

  part(part, led) {
    switch (part[0]) {
      case "text": return this.long(part[1]);
      case "reasoning": return el("div", { class: "reasoning" }, el("span", { class: "tag" }, "reasoning"), this.long(part[1]));
      case "sealed": return el("p", { class: "dim" }, "Reasoning, sealed by the provider.");
      case "call": {
        const went = (led || []).find(([id]) => id === part[1]);
        return el("div", { class: "toolcall" }, el("p", {}, el("span", { class: "tag" }, "calls"), " ", el("b", {}, shown(part[2])),
          went ? [" ", this.link(went[1], "see the call")] : ""), this.value(part[3]));
      }
      case "media": return this.media(part);
      default: return this.value(part[1]);
    }
  }

  // A picture or sound is named and never loaded.
  media([, modality, type, name, address, size, digest]) {
    const told = [modality, type, name, address, size === null ? "" : `${count(size)} bytes`].filter(Boolean).join(" · ");
    return el("p", { class: "media" }, el("span", { class: "tag" }, "not shown"), " ", el("bdi", {}, shown(told)),
      digest ? el("span", { class: "dim mono" }, ` sha256 ${digest.slice(0, 16)}…`) : "");
  }

  documents(found) {
    const scores = found.map((each) => each.score).filter((score) => typeof score === "number");
    const unit = scores.length > 0 && scores.every((score) => score >= 0 && score <= 1);
    return el("ol", { class: "documents" }, found.map((each) => {
      const head = el("p", {}, el("b", {}, shown(String(each.id ?? "without id"))));
      if (typeof each.score === "number") {
        head.append(" ", el("span", { class: "dim" }, `score ${each.score}`));
        if (unit) {
          const bar = el("span", { class: "fill" });
          bar.style.width = `${each.score * 100}%`;
          head.append(" ", el("span", { class: "score", "aria-hidden": "true" }, bar));
        }
      }
      const rest = each.metadata ? el("p", { class: "dim mono" }, shown(String(each.metadata).slice(0, 500))) : null;
      return el("li", {}, head, this.long(each.text), rest);
    }));
  }

  value(value) {
    if (value.text !== undefined) return this.text(value.text) === "" ? el("p", { class: "dim" }, "(empty text)") : this.long(value.text);
    if (value.json !== undefined) return this.long(value.json, { mono: true });
    if (value.bytes !== undefined) return el("p", { class: "dim" }, `${count(value.bytes)} bytes, not text`);
    return el("dl", { class: "fields" }, value.fields.map(([name, held, what]) => [
      el("dt", {}, shown(this.text(name))),
      el("dd", {}, what === "l" ? el("ul", { class: "items" }, held.map((each) => el("li", { dir: "auto" }, shown(this.text(each))))) :
        what === "j" ? el("code", { class: "lit" }, shown(this.text(held))) :
          this.text(held) === "" ? el("span", { class: "dim" }, "(empty text)") : this.long(held)),
    ]));
  }

  raised(raised) {
    return [el("p", { class: "error" }, el("b", {}, shown(raised.type))), this.long(raised.message),
      raised.stack ? this.folded("Stack trace", () => this.long(raised.stack, { mono: true })) : null];
  }

  ended(body) {
    const told = [];
    if (body.status !== undefined) told.push(`HTTP status ${body.status}`);
    if (body.stream && !body.yielded) {
      const [pieces, first, end] = body.stream;
      told.push(`streamed in ${count(pieces)} pieces${first === null ? "" : `, the first after ${duration(first)}`}${end === "finished" ? "" : `, ${end}`}`);
    }
    return told.join(" · ");
  }

  differences(place) {
    const found = this.data.differences[place];
    if (!found || !found.length) return null;
    const [left, right] = this.list.names;
    if (found.length === 1 && found[0][0] === "missing") {
      return el("p", { class: "banner" }, `The ${right.toLowerCase()} does not make this call.`);
    }
    const rows = found.slice(0, 50).map(([kind, field, a, b]) => el("tr", {},
      el("th", { scope: "row" }, kind === "missing" ? "the call" : kind === "reordered" ? "the order" : el("bdi", {}, shown(field.replace(/^arguments\./, "")))),
      el("td", {}, a === null ? el("span", { class: "dim" }, "not there") : el("del", {}, this.long(a, { most: 600 }))),
      el("td", {}, b === null ? el("b", {}, kind === "missing" ? "not made" : "not there") : el("ins", {}, this.long(b, { most: 600 })))));
    return el("section", { class: "block differs" }, el("h4", {}, `Differs in the ${right.toLowerCase()}`),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["Field", left, right].map((each) => el("th", { scope: "col" }, each)))), el("tbody", {}, rows))));
  }

  facts(body) {
    const pairs = body.facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, shown(this.text(value)))]);
    return this.printed ? null : this.folded("More about this call", () => el("dl", { class: "fields" }, pairs));
  }

  link(place, words) {
    const row = this.list.rows[place];
    return el("a", { href: `#call-${place}` }, words || shown(`${this.list.kinds[row[2]]} ${row[3]} #${row[0]}`));
  }
}

function kindClass(word) {
  return /^[a-z]+$/.test(word) ? word : "unknown";
}
