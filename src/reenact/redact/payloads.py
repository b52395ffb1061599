"""What in a span is payload (what users typed, what models, tools and programs said), and what is its structure.

Structure is a closed list; whatever is not on it counts as payload. It is what a trace is read and replayed by: names
of models and tools, roles and types, ids, the schemas of tools, sampling parameters, status codes, headers of a request
that many clients send, how the program was started. Numbers, booleans and null are no texts, and stay.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence

_KEPT_KEYS = frozenset(
    """
    type role name id object model status index code param kind event phase format encoding detail effort voice
    modality modalities finish_reason finishreason stop_reason stop_sequence stop stop_sequences service_tier
    system_fingerprint created created_at media_type mime_type mimetype encoding_format truncation verbosity
    tool_name server_label server_name span_kind provider system_name language method jsonrpc protocolversion
    version user safety_identifier prompt_cache_key obfuscation signature encrypted_content encrypted_index
    encrypted_stdout thought_signature thoughtsignature reasoning_signature b64_json file_data model_name responseid
    modelversion embedding embeddings reason
    """.split()  # noqa: SIM905 - a list of one a line says no more
)
"""Keys in the JSON of providers, and last parts of attributes' names, whose texts are structure; lower case."""
_KEPT_TREES = frozenset(
    """
    tools functions tool_choice toolconfig tool_config response_format json_schema schema output_config
    generationconfig generation_config safety_ratings safetyratings usage usagemetadata format
    output_format web_search_options
    """.split()  # noqa: SIM905 - a list of one a line says no more
)
"""Keys of the JSON of providers below which all is structure: the program's own schemas and settings."""
_CONTAINERS = frozenset(
    """
    message delta tool_call function function_call functioncall functionresponse function_response part item response
    candidate error data params source cache_control image_url input_audio audio file document image video reasoning
    thinking logprobs top_logprobs event block content_block content_block_delta inlinedata inline_data filedata
    message_content message_delta incomplete_details stream_options conversation kwargs additional_kwargs
    response_metadata tooluse toolresult refusal completion choice body stop_details details status_details
    citation action caller container context_management server_tool_use last_error
    """.split()  # noqa: SIM905 - a list of one a line says no more
)
"""Keys of the JSON of providers that hold an object of theirs; what is in an object below any other is payload."""
_OBJECTS = {("content", "parts"), ("content", "role"), ("text", "format"), ("text", "verbosity"), ("output", "message")}
"""Keys that may hold an object of a provider's, if it has this member."""
_TAGS_OF_TREES = frozenset({"$dataclass", "$attrs", "$model", "$namedtuple", "$subclass", "$exception", "$path"})
_IN_EXCEPTIONS = frozenset({"module", "qualname", "bases"})

_KEPT_ATTRIBUTES = re.compile(
    r"name|event|link|trace state|openinference\.span\.kind|tool\.name|tool\.description|tool\.json_schema|tool\.id"
    r"|agent\.name|user\.id|session\.id|tag\.tags|graph\.node\..*|exception\.type|exception\.escaped|error\.type|url\.(?:scheme|path|template)"
    r"|input\.mime_type|output\.mime_type|log\.iostream|event\.name|thread\..*|code\..*"
    r"|llm\.(?:model_name|request\.model_name|response\.model_name|provider|system|finish_reason|invocation_parameters"
    r"|token_count\..*|cost\..*|tools\..*)|embedding\.(?:model_name|invocation_parameters)"
    r"|gen_ai\.(?:system|operation\.name|provider\.name|conversation\.id|request\..*|response\.(?:id|model|finish_reasons)"
    r"|usage\..*|output\.type|tool\.(?:name|type|call\.id|description|definitions)|agent\.(?:id|name)|token\..*|server\..*)"
    r"|http\..*|server\..*|client\..*|network\..*|rpc\..*|messaging\.system|peer\..*|net\..*"
    r"|service\..*|telemetry\..*|process\.(?!command).*|host\..*|os\..*|container\..*|k8s\..*|cloud\..*|deployment\..*"
    r"|reenact\.(?!stream\.chunks$|stream\.result$|exception$|fork\.asked$|fork\.changes$|http\.request\.body$"
    r"|http\.response\.body$|answer\.headers$|inbound$|varied$|undeclared$|written$|output$|input$|original$|unread$|envelope$|recovered$).*"
)
"""Attributes that are structure whole."""
_BODIES = frozenset(
    """
    input.value output.value reenact.fork.asked reenact.http.request.body reenact.http.response.body
    reenact.stream.chunks
    """.split()  # noqa: SIM905 - a list of one a line says no more
)
"""Attributes that hold a body over HTTP, or the arguments and the result of a function."""
_HEADERS = frozenset(
    """
    accept accept-charset accept-encoding accept-language authorization cache-control connection content-encoding
    content-length content-type cookie date dnt expect from host idempotency-key if-match if-modified-since
    if-none-match if-range if-unmodified-since keep-alive last-event-id location max-forwards origin pragma prefer
    priority range referer retry-after te traceparent tracestate trailer transfer-encoding upgrade
    upgrade-insecure-requests user-agent via x-api-key x-correlation-id x-forwarded-for x-forwarded-host
    x-forwarded-port x-forwarded-prefix x-forwarded-proto x-real-ip x-request-id x-requested-with
    """.split()  # noqa: SIM905 - a list of one a line says no more
)
"""Headers of a request that are structure; any other may hold what a user typed."""
ADDRESSES = frozenset({"url.full", "url.query", "http.url", "http.target"})
"""Attributes that hold a URL. Its query is payload, but for a model's provider (`whole_address`)."""
_MODELS = frozenset({"LLM", "EMBEDDING", "RERANKER"})
_NUMERAL = re.compile(r"[-+]?[0-9]{1,5}(?:[.,][0-9]{1,4})?|true|false|null|none", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_SHORTEST_MEDIA = 40


_CHUNKS = "reenact.stream.chunks"
_PIECE = 2
STATUS = "status"
"""Stands for the message of a span's status, which mostly says what an exception said."""


def is_payload(attribute: str, path: Sequence[str | int], kind: str, boundary: str, inside: int = 0) -> bool:
    """Tell whether a value at a place is payload. What is not known to be structure is.

    `inside` says how much of the path leads to a text that holds JSON: that is never the provider's own.
    """
    if (of_ours := _OF_OURS.get(attribute)) is not None:
        return of_ours(path)
    if attribute == _CHUNKS and path and isinstance(path[0], int):  # `[n, 2]` leads to the text of a piece
        return len(path) > _PIECE and is_payload(attribute, path[_PIECE:], kind, boundary, max(0, inside - _PIECE))
    if _KEPT_ATTRIBUTES.fullmatch(attribute):
        return False
    if attribute in ADDRESSES:
        return kind.upper() not in _MODELS
    if not path:
        return attribute in _BODIES or attribute == STATUS or not _is_kept(attribute.rpartition(".")[2])
    if attribute in _BODIES and kind.upper() not in _MODELS:
        return not (_is_exchange(path) if boundary == "http" else _is_tag(path))
    return 0 < inside < len(path) or _in_a_provider_s(path)


def _in_what_came(path: Sequence[str | int]) -> bool:
    if path and path[0] == "headers" and len(path) > 1:
        return path[1] not in _HEADERS and not str(path[1]).startswith("sec-")
    return not path or path[0] in {"query", "args", "kwargs", "request"}


def _in_a_change(path: Sequence[str | int]) -> bool:
    return len(path) > 1 and path[1] in {"from", "to"}


def _in_a_provider_s(path: Sequence[str | int]) -> bool:
    """Tell payload in the JSON of a model's provider, or of messages as other emitters spell them."""
    before = ""
    for at, part in enumerate(path):
        if not isinstance(part, str):
            continue
        lowered = part.lower()
        if lowered in _KEPT_TREES:
            return False
        inside = path[at + 1] if at + 1 < len(path) else None
        if isinstance(inside, str) and not _holds_structure(lowered, inside.lower(), before):
            return True
        before = lowered
    last_key = next((part for part in reversed(path) if isinstance(part, str)), "")
    return not _is_kept(last_key)


def _holds_structure(key: str, member: str, above: str) -> bool:
    is_response = key == "response" and above in {"functionresponse", "function_response"}
    return not is_response and (key in _CONTAINERS or (key, member) in _OBJECTS)


def _is_kept(key: str) -> bool:
    lowered = key.lower()
    is_structural = lowered in _KEPT_KEYS or lowered.endswith(("_id", "_ids", "_at", "uuid", "model_name"))
    return is_structural or key.endswith(("Id", "ID"))


def _is_exchange(path: Sequence[str | int]) -> bool:
    """Tell the envelope of a remote procedure call, in a request to something that we know nothing of."""
    return len(path) == 1 and path[0] in {"jsonrpc", "id", "method", "type", "object"}


def _is_tag(path: Sequence[str | int]) -> bool:
    """Tell what typed JSON says of a value's class from what the value holds, and a scalar that has a form to keep."""
    last = path[-1]
    if isinstance(last, str) and last.startswith("$"):
        return last != "$str"
    if any(part in {"$enum", "$date", "$datetime", "$time", "$range"} for part in path):
        return True
    above = [part for part in path[:-1] if isinstance(part, str)]
    if "$exception" in above:
        return _names_a_class(path)
    return last in {"of", "tz", "class", "name"} and bool(above) and above[-1] in _TAGS_OF_TREES


def _names_a_class(path: Sequence[str | int]) -> bool:
    keys = [part for part in path if isinstance(part, str)]
    return bool(keys) and keys[-1] in _IN_EXCEPTIONS and "args" not in keys and "state" not in keys


_OF_OURS: Mapping[str, Callable[[Sequence[str | int]], bool]] = {
    "reenact.inbound": _in_what_came,
    "reenact.fork.changes": _in_a_change,
    "reenact.exception": lambda path: not _names_a_class(path),
    "reenact.stream.result": lambda path: not path or not _is_tag(path),
    "metadata": lambda path: not path or not _is_tag(path),
    "reenact.output": lambda path: "pieces" in path and path[-1] == 1,
    "reenact.input": lambda path: bool(path) and path[-1] in {"text", "base64"},
    "reenact.written": lambda path: bool(path) and path[-1] == "text",
}
"""Attributes of which a part is payload, and which."""


def says_something(text: str) -> bool:
    """Tell a text that is worth a token from one that is empty, a truth value or small number, or media in base64."""
    return bool(text.strip()) and _NUMERAL.fullmatch(text.strip()) is None and not _is_media(text)


def _is_media(text: str) -> bool:
    """Tell bytes spelled in base64, which are no text."""
    if len(text) < _SHORTEST_MEDIA:
        return False
    spelled = text
    if text.startswith("data:"):
        head, comma, spelled = text.partition(",")
        if not comma or not head.endswith(";base64"):
            return False
    if _BASE64.fullmatch(spelled) is None:
        return False
    try:
        data = base64.b64decode(
            spelled + "=" * (-len(spelled) % 4), altchars=b"-_" if "-" in spelled or "_" in spelled else None
        )
        data.decode()
    except UnicodeDecodeError:
        return True
    except ValueError:
        return False
    return any(c < " " and c not in "\t\r\n" for c in data.decode())


def replace_spoken_words(words: Sequence[str], stands_for: Callable[[str], str]) -> list[str]:
    """Replace the words of a command line that are free text; flags, paths and numbers have to stay what they are."""
    return [stands_for(word) if any(map(str.isspace, word)) else word for word in words]


def whole_address(url: str, token: Callable[[str], str]) -> str:
    """Replace the values of a URL's query, its fragment and its user; where it leads to is structure."""
    head, mark, query = url.partition("?")
    query, hash_mark, fragment = query.partition("#")
    scheme, slashes, rest = head.partition("://")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    head = f"{scheme}{slashes}{token(user) if user else ''}{at}{host}{slash}{path}" if slashes else head
    pairs = [pair.partition("=") for pair in query.split("&")] if query else []
    query = "&".join(f"{name}{sign}{token(value) if says_something(value) else value}" for name, sign, value in pairs)
    return f"{head}{mark}{query}{hash_mark}{token(fragment) if fragment else ''}"
