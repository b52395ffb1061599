"""Who provides models at a host, as OpenInference (`llm.provider`, `llm.system`) and OTel GenAI name them."""

from __future__ import annotations

from typing import Final

_CLOUDS: Final = frozenset({"azure", "google", "aws", "oracle", "databricks", "ibm"})
"""Providers at whose hosts other makers' products answer in those makers' words."""
_HOSTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("api.openai.com", "openai", "openai"),
    ("openai.azure.com", "azure", "azure.ai.openai"),
    ("cognitiveservices.azure.com", "azure", "azure.ai.openai"),
    ("services.ai.azure.com", "azure", "azure.ai.inference"),
    ("models.ai.azure.com", "azure", "azure.ai.inference"),
    ("models.github.ai", "azure", "azure.ai.inference"),
    ("models.inference.ai.azure.com", "azure", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic", "anthropic"),
    ("generativelanguage.googleapis.com", "google", "gcp.gemini"),
    ("aiplatform.googleapis.com", "google", "gcp.vertex_ai"),
    ("amazonaws.com", "aws", "aws.bedrock"),
    ("api.aws", "aws", "aws.bedrock"),
    ("api.mistral.ai", "mistralai", "mistral_ai"),
    ("codestral.mistral.ai", "mistralai", "mistral_ai"),
    ("api.cohere.com", "cohere", "cohere"),
    ("api.cohere.ai", "cohere", "cohere"),
    ("api.groq.com", "groq", "groq"),
    ("api.together.ai", "together", "together"),
    ("api.together.xyz", "together", "together"),
    ("api.deepseek.com", "deepseek", "deepseek"),
    ("api.x.ai", "xai", "x_ai"),
    ("api.fireworks.ai", "fireworks", "fireworks"),
    ("api.moonshot.ai", "moonshot", "moonshot_ai"),
    ("api.moonshot.cn", "moonshot", "moonshot_ai"),
    ("api.cerebras.ai", "cerebras", "cerebras"),
    ("api.perplexity.ai", "perplexity", "perplexity"),
    ("api.llama.com", "meta", "meta"),
    ("api.z.ai", "zai", "zai"),
    ("open.bigmodel.cn", "zai", "zai"),
    ("api.minimax.io", "minimax", "minimax"),
    ("api.minimaxi.com", "minimax", "minimax"),
    ("oraclecloud.com", "oracle", "oracle"),
    ("ml.cloud.ibm.com", "ibm", "ibm.watsonx.ai"),
    ("databricks.com", "databricks", "databricks"),
    ("azuredatabricks.net", "databricks", "databricks"),
    ("openrouter.ai", "openrouter", "openrouter"),
    ("integrate.api.nvidia.com", "nvidia", "nvidia"),
    ("api.sambanova.ai", "sambanova", "sambanova"),
    ("api.hyperbolic.xyz", "hyperbolic", "hyperbolic"),
    ("api.deepinfra.com", "deepinfra", "deepinfra"),
    ("api.novita.ai", "novita", "novita"),
    ("api.studio.nebius.com", "nebius", "nebius"),
    ("api.tokenfactory.nebius.com", "nebius", "nebius"),
    ("inference.baseten.co", "baseten", "baseten"),
    ("api.friendli.ai", "friendli", "friendli"),
    ("api.ai21.com", "ai21", "ai21"),
    ("api.writer.com", "writer", "writer"),
    ("api.upstage.ai", "upstage", "upstage"),
    ("api.reka.ai", "reka", "reka"),
    ("api.stepfun.com", "stepfun", "stepfun"),
    ("dashscope.aliyuncs.com", "alibaba", "alibaba_cloud"),
    ("dashscope-intl.aliyuncs.com", "alibaba", "alibaba_cloud"),
    ("ark.cn-beijing.volces.com", "bytedance", "bytedance"),
    ("api.siliconflow.cn", "siliconflow", "siliconflow"),
    ("api.voyageai.com", "voyageai", "voyageai"),
    ("api.jina.ai", "jina", "jina"),
    ("router.huggingface.co", "huggingface", "huggingface"),
    ("api-inference.huggingface.co", "huggingface", "huggingface"),
    ("endpoints.huggingface.cloud", "huggingface", "huggingface"),
    ("api.replicate.com", "replicate", "replicate"),
    ("api.cloudflare.com", "cloudflare", "cloudflare"),
    ("gateway.ai.cloudflare.com", "cloudflare", "cloudflare"),
    ("ollama.com", "ollama", "ollama"),
)
"""Ending of a host's name, `llm.provider`, `gen_ai.provider.name`. Names that neither convention has are the hosts'."""


def provider_at(host: str) -> tuple[str, str, str]:
    """Give `llm.provider`, `gen_ai.provider.name` and `llm.system` of a host; empty where nobody is known there.

    `llm.system` is empty too where a cloud answers with the product of another, who is told by how it is asked.
    """
    entry = next((row for row in _HOSTS if host == row[0] or host.endswith(f".{row[0]}")), None)
    if entry is None and host.endswith("-aiplatform.googleapis.com"):
        entry = ("", "google", "gcp.vertex_ai")  # the region stands before it
    if entry is None:
        return "", "", ""
    _, provider, genai_provider = entry
    return provider, genai_provider, "" if provider in _CLOUDS else provider
