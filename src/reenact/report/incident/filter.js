// Finding calls: by kind, by name, by any text that a call adds to the run. What it repeats of an earlier call is
// looked for there, so that a search leads to where a text first stood.

class Filter {
  constructor(list, data) {
    this.list = list;
    this.data = data; // a function: what was said is read when it is first searched
    this.heads = list.rows.map((row) => `${list.kinds[row[2]]} ${row[3]} #${row[0]} ${row[8].join(" ")} ${row[6]} ${row[7]}`.toLowerCase());
    this.index = null;
    this.last = new Map();
  }

  // Split what was typed: words that must all be there, "phrases", kind:tool, name:delete.
  static terms(typed) {
    return Array.from(typed.matchAll(/(?:(kind|name):)?(?:"([^"]*)"?|(\S+))/gi), (found) => ({
      field: (found[1] || "").toLowerCase(), text: (found[2] ?? found[3] ?? "").toLowerCase(),
    })).filter((term) => term.text);
  }

  // Give the places of the calls that fit, in order.
  matching(typed, kinds, only) {
    const terms = Filter.terms(typed);
    const found = [];
    const hits = terms.filter((term) => !term.field).map((term) => this.hits(term.text));
    for (let place = 0; place < this.list.rows.length; place++) {
      const row = this.list.rows[place];
      if (kinds.size && !kinds.has(row[2])) continue;
      if (only && this.list.signs[place] === undefined) continue;
      if (terms.every((term) => term.field !== "kind" || this.list.kinds[row[2]].startsWith(term.text)) &&
          terms.every((term) => term.field !== "name" || row[3].toLowerCase().includes(term.text)) &&
          hits.every((hit) => hit(place))) found.push(place);
    }
    return found;
  }

  hits(text) {
    const known = this.last.get(text);
    if (known) return known;
    const inTexts = this.textsWith(text);
    const index = this.index;
    const hit = (place) => this.heads[place].includes(text) ||
      (index[place].inline.includes(text) || index[place].pooled.some((number) => inTexts[number]));
    if (this.last.size > 20) this.last.clear();
    this.last.set(text, hit);
    return hit;
  }

  textsWith(text) {
    if (!this.index) this.build();
    const pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"), "iu");
    return Uint8Array.from(this.data().texts, (each) => (pattern.test(each) ? 1 : 0));
  }

  // Note for each call which long texts it adds, and its short ones.
  build() {
    const data = this.data();
    const messages = data.messages.map((message) => {
      const into = { pooled: [], inline: [message.role] };
      for (const part of message.parts) {
        if (part[0] === "call") { into.inline.push(part[2]); this.ofValue(part[3], into); }
        else if (part[0] === "other") this.ofValue(part[1], into);
        else if (part[0] === "media") into.inline.push(part.slice(1, 5).join(" "));
        else this.take(part[1], into);
      }
      return { pooled: into.pooled, inline: into.inline.join("\n") };
    });
    this.index = data.bodies.map((body) => {
      const into = { pooled: [], inline: [] };
      const numbers = [...(body.asked ? body.asked.new : []), ...(body.said ? body.said.messages : [])];
      for (const number of numbers) {
        into.pooled.push(...messages[number].pooled);
        into.inline.push(messages[number].inline);
      }
      for (const text of (body.asked && body.asked.inputs) || []) this.take(text, into);
      for (const value of [body.given, body.returned, body.reply, body.asked && body.asked.settings, ...(body.yielded || [])]) if (value) this.ofValue(value, into);
      for (const each of body.documents || []) { this.take(each.text, into); into.inline.push(String(each.id ?? "")); }
      if (body.raised) for (const text of [body.raised.type, body.raised.message, body.raised.stack]) this.take(text, into);
      if (body.http) this.take(body.http[1], into);
      for (const [, text] of body.facts) this.take(text, into);
      return { pooled: into.pooled, inline: into.inline.join("\n").toLowerCase() };
    });
  }

  take(shared, into) {
    if (typeof shared === "number") into.pooled.push(shared);
    else if (typeof shared === "string") into.inline.push(shared);
  }

  ofValue(value, into) {
    this.take(value.text, into);
    this.take(value.json, into);
    for (const [name, held] of value.fields || []) {
      this.take(name, into);
      for (const each of Array.isArray(held) ? held : [held]) this.take(each, into);
    }
  }
}
