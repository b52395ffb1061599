"""Keys of model providers and of the services that agents call: by the prefixes that these services document."""

from __future__ import annotations

from reenact.contracts.detector import ENDS, Detector, credential

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _drawn(value: str) -> bool:
    """Tell a key from words joined by hyphens: it has a digit, and a piece too long or too mixed for a word."""
    pieces = value.replace("_", "-").split("-")
    mixed = any(
        len(piece) >= 8 and any(c.isdigit() for c in piece) and any(c.isalpha() for c in piece) for piece in pieces
    )
    return mixed or any(len(piece) >= 24 for piece in pieces)


DETECTORS: tuple[Detector, ...] = (
    credential("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{16,256}", order=40),
    credential("openrouter_key", "sk-or-", r"sk-or-v\d-[0-9a-f]{32,128}", order=40),
    credential("langfuse_key", "sk-lf-", rf"sk-lf-{_UUID}", order=40),
    credential("helicone_key", "sk-helicone-", r"sk-helicone-[A-Za-z0-9\-]{16,80}", order=40),
    credential("openai_key", "sk-", r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_\-]{20,256}", check=_drawn, order=45),
    credential("google_ai_key", "AQ.Ab", r"AQ\.Ab[A-Za-z0-9_\-]{40,64}"),
    credential("huggingface_token", "hf_|api_org_", rf"(?:hf_|api_org_)[A-Za-z0-9]{{30,64}}{ENDS}"),
    credential("groq_key", "gsk_", rf"gsk_[A-Za-z0-9]{{40,64}}{ENDS}"),
    credential("xai_key", "xai-", rf"xai-[A-Za-z0-9]{{40,128}}{ENDS}"),
    credential("perplexity_key", "pplx-", rf"pplx-[A-Za-z0-9]{{40,64}}{ENDS}"),
    credential("replicate_token", "r8_", rf"r8_[A-Za-z0-9]{{37,40}}{ENDS}"),
    credential("nvidia_key", "nvapi-", r"nvapi-[A-Za-z0-9_\-]{40,80}"),
    credential("cerebras_key", "csk-", rf"csk-[a-z0-9]{{40,64}}{ENDS}"),
    credential("fireworks_key", "fw_", rf"fw_[A-Za-z0-9]{{22,32}}{ENDS}", check=_drawn),
    credential("together_key", "tgp_v1_", r"tgp_v1_[A-Za-z0-9_\-]{40,64}"),
    credential("tavily_key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9_\-]{20,80}", check=_drawn),
    credential("firecrawl_key", "fc-", rf"fc-[0-9a-f]{{32}}{ENDS}"),
    credential("e2b_key", "e2b_", rf"e2b_[0-9a-f]{{40}}{ENDS}"),
    credential("jina_key", "jina_", r"jina_[0-9a-f]{32}[A-Za-z0-9_\-]{20,40}"),
    credential("voyage_key", "pa-|al-", rf"(?:pa|al)-[A-Za-z0-9_\-]{{43}}{ENDS}", check=_drawn),
    credential("pinecone_key", "pcsk_", rf"pcsk_[A-Za-z0-9]{{4,8}}_[A-Za-z0-9]{{50,72}}{ENDS}"),
    credential("llama_cloud_key", "llx-", rf"llx-[A-Za-z0-9]{{40,64}}{ENDS}"),
    credential("elevenlabs_key", "sk_", rf"sk_[0-9a-f]{{48}}{ENDS}"),
    credential("cartesia_key", "sk_car_", rf"sk_car_[A-Za-z0-9]{{20,64}}{ENDS}"),
    credential("wandb_key", "wandb_v1_", r"wandb_v1_[A-Za-z0-9_]{40,128}"),
    credential("runpod_key", "rpa_", rf"rpa_[A-Za-z0-9]{{40,60}}{ENDS}"),
    credential("anyscale_key", "esecret_|aph0_", rf"(?:esecret|aph0)_[A-Za-z0-9]{{24,80}}{ENDS}"),
    credential("apify_token", "apify_api_", rf"apify_api_[A-Za-z0-9]{{34,40}}{ENDS}"),
    credential("browserbase_key", "bb_live_", r"bb_live_[A-Za-z0-9_\-]{20,48}"),
    credential("context7_key", "ctx7sk-", rf"ctx7sk-{_UUID}"),
    credential("mem0_key", "m0-", rf"m0-[A-Za-z0-9]{{36,48}}{ENDS}"),
    credential("modal_token", "ak-|as-", rf"a[ks]-[A-Za-z0-9]{{22}}{ENDS}", check=_drawn),
    credential("arize_key", "ak-", rf"ak-{_UUID}-[A-Za-z0-9_\-]{{16,64}}", order=45),
    credential("nomic_key", "nk-", rf"nk-[A-Za-z0-9_\-]{{43}}{ENDS}", check=_drawn),
    credential("friendli_token", "flp_", rf"flp_[A-Za-z0-9]{{40,80}}{ENDS}"),
    credential(
        "langsmith_key", "lsv2_|ls__", rf"(?:lsv2_(?:pt|sk)_[0-9a-f]{{32}}_[0-9a-f]{{10}}|ls__[0-9a-f]{{32}}){ENDS}"
    ),
    credential("logfire_token", "pylf_v", rf"pylf_v\d{{1,2}}_[a-z]{{2,12}}_[A-Za-z0-9]{{40,64}}{ENDS}"),
    credential("posthog_key", "phx_|phs_", rf"ph[xs]_[A-Za-z0-9_]{{40,64}}{ENDS}"),
    credential("cursor_key", "key_", rf"key_[0-9a-f]{{28,64}}{ENDS}"),
    credential("dify_key", "app-|dataset-", rf"(?:app|dataset)-[A-Za-z0-9]{{24}}{ENDS}", check=_drawn),
    credential("fastgpt_key", "fastgpt-", rf"fastgpt-[A-Za-z0-9]{{40,64}}{ENDS}"),
    credential("coze_token", "pat_", rf"pat_[A-Za-z0-9]{{64}}{ENDS}"),
    credential("you_key", "ydc-sk-", r"ydc-sk-[0-9a-f\-]{16,80}", order=40),
    credential("daytona_key", "dtn_", rf"dtn_[0-9a-f]{{64}}{ENDS}"),
)
