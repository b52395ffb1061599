"""The leaves: one text, or one document and all texts in it, redacted; how it may stand where it does not matter here.

A call's work is one `Work`: what it replaced, what it may cost, and what it knows of the texts that it was given
together. Nothing here counts or forgives; `engine` does both.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from reenact.redact import decode
from reenact.redact.conversation_cache import CachedEdit, Heads, PriorKnowledge
from reenact.redact.documents import Looks, Undecided, applied, hits, walk
from reenact.redact.fields import BYTES_KEYS, COUNTS, OPAQUE_KEYS, SENSITIVE_KEYS, TOKEN
from reenact.redact.names import finder
from reenact.redact.octets import Octets
from reenact.redact.payloads import ADDRESSES, says_something, whole_address
from reenact.redact.plan import DEFAULT, KEYED, KNOWN, WHOLE, Place, Plan
from reenact.redact.scan import Budget, Detection, Scanner
from reenact.redact.split_secrets import Means, edits_of, is_stream
from reenact.redact.tokens import Tokens, mask
from reenact.redact.whole_document_scan import BETWEEN, DocumentTexts, Glance, found_in, marks_of, places_of
from reenact.values import alarms, locks
from reenact.values.known_secrets import looks_secret

_REMEMBERED: Final = 100_000
_REMEMBERED_CHARACTERS: Final = 8 << 20
_DEEPEST: Final = 16
"""How often JSON is looked into that is inside a string of JSON; each time doubles its backslashes."""
_SCHEMES: Final = frozenset({"", "bearer", "basic", "token"})
"""What may stand beside a token in a value that is all secret."""
LONG: Final = 2048
"""Beyond this length a document is not hashed: what it shares with the one before is known."""
OPENS: Final = frozenset("{[")
_EVENTS: Final = frozenset("deir:")
"""How the lines of server-sent events begin."""
_WHITE: Final = " \n\r\t\ufeff"
_BLANKS: Final = tuple(_WHITE)
_SHORTEST_NUMBER: Final = 7
_PIN: Final = 4
"""So many digits under a key that says so are a secret; fewer are a flag or a count."""
IN_CONTEXT: Final = 256
"""Up to this length a value is searched together with the key that it is under."""
ANYWHERE: Final = Place()


@functools.lru_cache(maxsize=8)
def _scanner(plan: Plan, secrets: tuple[str, ...]) -> Scanner:
    def is_used(name: str) -> bool:
        return not plan.uniform or plan.action(name, ANYWHERE) != "keep"

    used = [each for each in plan.detectors if is_used(each.name)]
    return Scanner(used, secrets if is_used(KNOWN) else (), finder(plan.names))


def compile_patterns(plan: Plan = DEFAULT) -> None:
    """Compile a plan's patterns now, for processes that are forked from this one: 0.1 s of processor time in each."""
    _scanner(plan, ())


def is_quoted(text: str) -> bool:
    """Return True for a JSON string literal with escaped quotes, which may hold a document."""
    return text[:1] == '"' and text[-1:] == '"' and '\\"' in text


class Work:
    """What one call did, and what it may cost."""

    __slots__ = ("budget", "found", "marks", "names", "place")

    def __init__(self, size: int, place: Place) -> None:
        self.budget = Budget(size)
        self.names: list[str] = []
        self.marks: frozenset[str] | None = None
        """One of them is in every text, inside the document that is looked at, in which anything is to be found."""
        self.found: Mapping[str, list[Detection]] = {}
        """What was found in texts that were searched together."""
        self.place = place


class Leaves:
    """Redacts texts by a plan, and remembers what it has looked at."""

    def __init__(
        self,
        plan: Plan = DEFAULT,
        *,
        key: bytes | None = None,
        salt: str = "",
        known_secrets: Mapping[str, str] | None = None,
        shared: bool = True,
    ) -> None:
        self.plan = plan
        self._tokens = Tokens(plan, key=key, salt=salt, shared=shared)
        secrets = {value for value in (known_secrets or {}).values() if looks_secret(value)}
        self._scanner = _scanner(plan, tuple(sorted(secrets)))
        self._heads = Heads()
        self._fast = plan.uniform
        self.replaced: Counter[str] = Counter()
        self._clean: set[int] = set()
        self._memo: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._memo_size = 0
        self._same = ("", "", ())
        self._keys: set[str] = set()
        self._contexts: dict[str, bool] = {}
        self._openings_by_name: dict[str, int] = {}
        self._glance = Glance(self._clean, self._is_context)
        self._lock = locks.lock()
        self._local = threading.local()

    def _redact(self, text: str, depth: int, work: Work) -> str:
        is_json = text[:1] in OPENS or (text[:1] in _WHITE and text.lstrip(_WHITE)[:1] in OPENS) or is_quoted(text)
        remembered = self._fast and not (is_json and depth == 0 and len(text) > LONG)  # `heads` remembers those
        if remembered:
            if hash(text) in self._clean:
                return text
            if (memo_entry := self._memo.get(text)) is not None:
                work.names += memo_entry[1]
                return memo_entry[0]
        elif not self._fast and self.plan.takes_whole and self.plan.whole(work.place) is not None:
            return self._taken_whole(text, depth, work)
        if work.marks is not None and not any(mark in text for mark in work.marks) and "\\u00" not in text:
            remember(self._clean, hash(text))
            return text
        before = len(work.names)
        new = self._document(text, depth, work) if is_json else None
        if new is None and text[:1] in _EVENTS and is_stream(text):
            edits = edits_of(text, self._means(depth, work))
            new = applied(text, edits) if edits else text
        if new is None:
            new = self._plain(text, work)
        if remembered:
            if new is text:
                remember(self._clean, hash(text))
            else:
                self._memorise(text, new, tuple(work.names[before:]))
        return new

    def _memorise(self, text: str, new: str, names: tuple[str, ...]) -> None:
        if self._memo_size > _REMEMBERED_CHARACTERS:
            self._memo, self._memo_size = {}, 0
        self._memo[text] = new, names
        self._memo_size += len(text) + len(new)

    def _plain(self, text: str, work: Work) -> str:
        findings = self._find(text, work)
        return self._rendered(text, findings, work) if findings else text

    def _find(self, text: str, work: Work) -> list[Detection]:
        if (earlier_findings := work.found.get(text)) is not None:  # it was searched together with others
            return self._scanner.resolved(text, earlier_findings)
        return self._scanner.find(text, work.budget, keep=self._keep(work))

    def _keep(self, work: Work) -> Callable[[str], bool] | None:
        if self._fast:
            return None
        plan, place = self.plan, work.place
        return lambda name: plan.action(name, place) == "keep"

    def _rendered(self, text: str, findings: Sequence[Detection], work: Work) -> str:
        out: list[str] = []
        at = 0
        for each in findings:
            out += (text[at : each.start], self._replacement(each, work))
            at = each.end
        out.append(text[at:])
        return "".join(out)

    def _replacement(self, finding: Detection, work: Work) -> str:
        inner = finding.inner
        if inner is not None and inner.encode is not None:
            return inner.encode(self._rendered(inner.text, inner.found, work))
        work.names.append(finding.name)
        return self._stands_for(finding.name, finding.secret, work.place)

    def _stands_for(self, name: str, secret: str, place: Place) -> str:
        action = self.plan.action(name, place)
        if action == "drop":
            return ""
        return mask(name) if action == "mask" else self._tokens.token(name, secret)

    def _taken_whole(self, text: str, depth: int, work: Work) -> str:
        how = self.plan.whole(work.place)
        if how == "pseudonymise":
            if depth < _DEEPEST and text.lstrip(_WHITE)[:1] in OPENS:
                new = self._document(text, depth, work)
                if new is not None:
                    return new
            if is_stream(text):
                return applied(text, edits_of(text, self._means(depth, work)))
            if work.place.attribute in ADDRESSES:
                return whole_address(text, lambda part: self._whole_part(part, work))
            if not says_something(text) or TOKEN.fullmatch(text):
                return text
        if how == "keep" or not text:
            return text
        work.names.append(WHOLE)
        if how == "drop":
            return ""
        return mask(WHOLE) if how == "mask" else self._tokens.token(WHOLE, text)

    def _whole_part(self, text: str, work: Work) -> str:
        if TOKEN.fullmatch(text):
            return text
        work.names.append(WHOLE)
        return self._tokens.token(WHOLE, text)

    # Documents

    def _document(self, text: str, depth: int, work: Work) -> str | None:
        if depth >= _DEEPEST:
            return None
        marks, earlier_findings = work.marks, work.found
        try:
            return self._edited(text, depth, work)
        finally:
            work.marks, work.found = marks, earlier_findings

    def _edited(self, text: str, depth: int, work: Work) -> str | None:  # noqa: C901 - one way after another
        head_knowledge: PriorKnowledge | None = None
        begin, cached_edits = 0, ()
        if not self.plan.takes_whole:
            if self._fast and depth == 0 and (head_knowledge := self._heads.known(text)) is not None:
                begin, cached_edits = head_knowledge.begin, head_knowledge.edits
            places = self._at_a_glance(text, depth, work) if self._fast and begin == 0 else None
            if places is None:
                work.marks = None
                places = self._scanner.places(text[begin:] if begin else text)
            if places is not None and not places and not cached_edits:
                if head_knowledge is not None:
                    self._heads.looked_at(text, head_knowledge, ())
                return text
            if self._fast and places is not None:
                try:
                    cached_edits = self._hits(text, begin, places, cached_edits, depth, work)
                except Undecided:
                    pass
                else:
                    if head_knowledge is not None:
                        self._heads.looked_at(text, head_knowledge, cached_edits)
                    return applied(text, [each.edit for each in cached_edits]) if cached_edits else text
        before = len(work.names)
        work.marks = None
        edits = walk(text, self._looks(depth, work, []))
        if edits is None:
            del work.names[before:]
            return None
        return applied(text, edits) if edits else text

    def _at_a_glance(self, text: str, depth: int, work: Work) -> list[int] | None:
        """Give the places in a document that are to be looked at, none where it is clean; None where it is not told."""
        if work.marks is not None:
            return places_of(text, work.marks, inside=True)
        glimpse = self._glance.of(text, depth)
        if glimpse is None:
            return None
        joined = BETWEEN.join([*glimpse.texts, ""])
        findings = self._scanner.all_in(joined, work.budget)
        if findings:
            work.marks = marks_of(joined, findings)
            if work.marks is None:
                return None
            work.found = found_in(glimpse.texts, findings)
            return places_of(text, work.marks)
        self._was_clean(glimpse)
        return []

    def _nothing_in(self, texts: Sequence[str]) -> bool:
        """Tell that nothing is to be found in some texts, opened and searched together; False says nothing."""
        plain: list[str] = []
        glimpses: list[DocumentTexts] = []
        for text in texts:
            if text[:1] in OPENS:
                if (glimpse := self._glance.of(text, 0)) is None:
                    return False
                glimpses.append(glimpse)
                plain += glimpse.texts
            elif (
                text.startswith(_BLANKS)
                or is_quoted(text)
                or is_stream(text)
                or ("+" in text and decode.of_form(text) is not None)
            ):
                return False
            else:
                plain.append(text)
        joined = BETWEEN.join([*plain, ""])
        if self._scanner.all_in(joined, Budget(len(joined))):
            return False
        for glimpse in glimpses:
            self._was_clean(glimpse)
        return True

    def _was_clean(self, glimpse: DocumentTexts) -> None:
        self._glance.was_clean(glimpse)
        for each in glimpse.long:
            remember(self._clean, hash(each))

    def _hits(
        self, text: str, begin: int, places: list[int], cached_edits: tuple[CachedEdit, ...], depth: int, work: Work
    ) -> tuple[CachedEdit, ...]:
        """Look at what is new in a document. Raises `Undecided`, and then has counted nothing."""
        before = len(work.names)
        marks: list[int] = []
        try:
            edits = hits(text, begin, places, self._looks(depth, work, marks)) if places else []
        except Undecided:
            del work.names[before:]
            raise
        own = work.names[before:]
        starts = [0, *(mark - before for mark in marks)]
        for each in cached_edits:
            work.names += each.names
        edits_noted = (CachedEdit(edit, tuple(own[starts[i] : starts[i + 1]])) for i, edit in enumerate(edits))
        return (*cached_edits, *edits_noted)

    def _looks(self, depth: int, work: Work, marks: list[int]) -> Looks:
        """Bind what is done to the values of a document. `marks` gets how many were counted after each change."""

        def leaf(value: str, key: str, path: tuple[str | int, ...]) -> str | None:
            return changed_text(value, at(path, lambda: self._leaf(value, key, depth + 1, work)))

        def number(spelled: str, key: str, path: tuple[str | int, ...]) -> str | None:
            return changed_text(spelled, at(path, lambda: self._number(spelled, key, work)))

        def name(key: str, path: tuple[str | int, ...]) -> str | None:
            return changed_text(key, at(path, lambda: self._name(key, work)))

        def changed_text(before: str, after: str) -> str | None:
            if after == before:
                return None
            marks.append(len(work.names))
            return after

        base = entered(work.place) if depth else work.place

        def at(path: tuple[str | int, ...], redact: Callable[[], str]) -> str:
            if self._fast:
                return redact()
            work.place = below(base, path)
            try:
                return redact()
            finally:
                work.place = base

        def whole(path: tuple[str | int, ...], opens: bool) -> Any:  # noqa: FBT001 - a callback
            how = self.plan.whole(below(base, path)) if path else None
            if how in {"drop", "mask"}:
                work.names.append(WHOLE)
            del opens
            return how

        return Looks(
            leaf=leaf,
            number=number,
            key=name,
            whole=whole if self.plan.takes_whole else None,
            mask=mask(WHOLE),
        )

    def _leaf(self, value: str, key: str, depth: int, work: Work) -> str:
        """Redact a string in JSON, under a key."""
        if key:
            lowered = key.lower()
            if lowered in OPAQUE_KEYS:
                return value
            if lowered in SENSITIVE_KEYS:
                return self._under_sensitive_key(value, work)
            if key in BYTES_KEYS and (content := decode.unpacked(value)) is not None:
                new = self._bytes_in(content, depth, work)
                return value if new == content else decode.pack(content, new, value)
            if len(value) <= IN_CONTEXT and value[:1] not in {"{", "["} and self._is_context(key):
                findings = self._in_context(key, value, work)
                if findings:
                    return self._rendered(value, findings, work)
        return self._redact(value, depth, work)

    def _name(self, key: str, work: Work) -> str:
        if self._fast and hash(key) in self._clean:
            return key
        new = self._plain(key, work)
        if new is key and self._fast:
            remember(self._clean, hash(key))
        return new

    def _is_context(self, key: str) -> bool:
        """Tell whether a key says what kind of value it is that stands under it, as far as any detector knows."""
        is_context_key = self._contexts.get(key)
        if is_context_key is None:
            if len(self._contexts) > _REMEMBERED:
                self._contexts.clear()
            try:
                is_context_key = self._contexts[key] = len(key) <= IN_CONTEXT and self._scanner.is_context(key)
            except Exception:  # noqa: BLE001 - what stands under it is looked at, and fails closed
                alarms.pass_on()
                return True
        return is_context_key

    def _in_context(self, key: str, value: str, work: Work) -> list[Detection]:
        shift = len(key) + 2
        places = self._find(f"{key}: {value}", work)
        return [each._replace(start=each.start - shift, end=each.end - shift) for each in places if each.start >= shift]

    def _number(self, spelled: str, key: str, work: Work) -> str:
        """Redact a number in JSON; one that is to go becomes a string."""
        digits, _, rest = spelled.lstrip("-").partition(".")
        lowered = key.lower()
        if lowered in SENSITIVE_KEYS and digits.isdigit() and len(digits) >= _PIN:
            if self.plan.action(KEYED, work.place) == "keep":
                return spelled
            work.names.append(KEYED)
            return self._stands_for(KEYED, spelled, work.place)
        if not digits.isdigit() or len(digits) < _SHORTEST_NUMBER or rest.strip("0"):
            return spelled
        findings = self._in_context(key, digits, work) if key and self._is_context(key) else []
        if not findings and not COUNTS.search(key):
            findings = self._scanner.find(digits, work.budget, keep=self._keep(work))
        return self._replacement(findings[0], work) if findings else spelled

    def _under_sensitive_key(self, value: str, work: Work) -> str:
        before = len(work.names)
        scanned = self._plain(value, work)
        if not value or TOKEN.sub("", scanned).strip().lower() in _SCHEMES:
            return scanned
        if self.plan.action(KEYED, work.place) == "keep":
            return scanned
        del work.names[before:]
        work.names.append(KEYED)
        return self._stands_for(KEYED, value, work.place)

    def _bytes_in(self, value: bytes, depth: int, work: Work) -> bytes:
        octets = Octets(value)
        new = self._redact(octets.text, depth, work)
        return value if new == octets.text else octets.spelled(new)

    def _means(self, depth: int, work: Work) -> Means:
        base = work.place

        def joined(text: str, path: tuple[str | int, ...]) -> str:
            work.place = below(base, path)
            try:
                return self._redact(text, depth + 1, work)
            finally:
                work.place = base

        def whole(path: tuple[str | int, ...]) -> bool:
            return self.plan.whole(below(base, path)) == "pseudonymise"

        return Means(
            find=lambda text: self._scanner.find(text, work.budget, keep=self._keep(work)),
            stand=lambda finding: self._replacement(finding, work),
            is_clean=self._scanner.is_clean,
            looks=self._looks(depth, work, []),
            joined=joined if self.plan.takes_whole else None,
            whole=whole if self.plan.takes_whole else None,
        )


def entered(place: Place) -> Place:
    """Give the place of a text, as that of the JSON in it."""
    return replace(place, inside=len(place.path)) if place.path else place


def below(place: Place, path: tuple[str | int, ...]) -> Place:
    """Give the place of what stands in JSON at a place."""
    return Place(
        attribute=place.attribute,
        path=(*place.path, *path),
        tool=place.tool,
        kind=place.kind,
        boundary=place.boundary,
        inside=place.inside,
    )


def remember(memory: set[Any], item: object) -> None:
    """Put an item into a set that is emptied when it is full."""
    if len(memory) > _REMEMBERED:
        memory.clear()
    memory.add(item)
