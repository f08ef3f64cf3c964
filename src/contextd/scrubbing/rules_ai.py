"""Model providers."""

from typing import Final

from contextd.scrubbing.rule import Rule
from contextd.scrubbing.samples import hexes, letters, mixed

AI_RULES: Final = (
    Rule(
        name="anthropic-key",
        vendor="Anthropic",
        keywords=("sk-ant-",),
        pattern=r"\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{20,}",
        hits=(f"sk-ant-api03-{mixed(93)}AA", "sk-ant-oat01-" + mixed(93), "sk-ant-admin01-" + mixed(93)),
        misses=("sk-ant-api03-...", "sk-ant-api03-your-key-goes-right-in-here", "sk-ant-api03-" + "x" * 93),
    ),
    Rule(
        name="openai-key",
        vendor="OpenAI",
        keywords=("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-none-", "t3blbkfj"),
        pattern=r"\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}"
        r"|\bsk-[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}",
        hits=("sk-proj-" + mixed(120), f"sk-{mixed(20)}T3BlbkFJ{mixed(20)}", "sk-svcacct-" + mixed(60)),
        misses=("sk-proj-...", "sk-proj-" + "x" * 48),
    ),
    Rule(
        name="openrouter-key",
        vendor="OpenRouter",
        keywords=("sk-or-",),
        pattern=r"\bsk-or-v1-[a-f0-9]{40,}",
        hits=("sk-or-v1-" + hexes(64),),
        misses=("sk-or-v1-" + hexes(6),),
    ),
    Rule(
        name="model-provider-key",
        vendor="",
        keywords=("sk-",),
        pattern=r"(?:^|[^A-Za-z0-9_-])(sk-(?:[a-z0-9]{2,8}-)?[A-Za-z0-9]{32,})",
        hits=("sk-" + mixed(48), f'key="sk-{hexes(32)}"', f"sk-lf-{mixed(40)}"),
        misses=("task-" + mixed(48), "sk-" + mixed(8), "sk-learn-contrib"),
    ),
    Rule(
        name="huggingface-token",
        vendor="Hugging Face",
        keywords=("hf_", "api_org_"),
        pattern=r"\b(?:hf|api_org)_[A-Za-z0-9]{34,}\b",
        hits=("hf_" + letters(34), "api_org_" + letters(34)),
        misses=("hf_" + letters(10), "hf_hub_download", "hf_" + "x" * 34),
    ),
    Rule(
        name="groq-key",
        vendor="Groq",
        keywords=("gsk_",),
        pattern=r"gsk_[A-Za-z0-9]{40,}",
        hits=("gsk_" + mixed(52),),
        misses=("gsk_" + mixed(12), "gsk_widget_get_allocated_height_and_its_width"),
    ),
    Rule(
        name="xai-key",
        vendor="xAI",
        keywords=("xai-",),
        pattern=r"\bxai-[A-Za-z0-9]{60,}",
        hits=("xai-" + mixed(80),),
        misses=("xai-" + mixed(12),),
    ),
    Rule(
        name="perplexity-key",
        vendor="Perplexity",
        keywords=("pplx-",),
        pattern=r"pplx-[A-Za-z0-9]{40,}",
        hits=("pplx-" + mixed(48),),
        misses=("pplx-70b-online",),
    ),
    Rule(
        name="replicate-token",
        vendor="Replicate",
        keywords=("r8_",),
        pattern=r"\br8_[A-Za-z0-9]{37,}",
        hits=("r8_" + mixed(37),),
        misses=("r8_" + mixed(6),),
    ),
    Rule(
        name="nvidia-key",
        vendor="NVIDIA",
        keywords=("nvapi-",),
        pattern=r"nvapi-[A-Za-z0-9_-]{40,}",
        hits=("nvapi-" + mixed(64),),
        misses=("nvapi-stg", "nvapi-" + "x" * 64),
    ),
    Rule(
        name="langsmith-key",
        vendor="LangChain",
        keywords=("lsv2_",),
        pattern=r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b",
        hits=(f"lsv2_pt_{hexes(32)}_{hexes(10)}",),
        misses=("lsv2_pt_" + hexes(12),),
    ),
    Rule(
        name="pinecone-key",
        vendor="Pinecone",
        keywords=("pcsk_",),
        pattern=r"pcsk_[A-Za-z0-9_]{40,}",
        hits=(f"pcsk_{mixed(6)}_{mixed(63)}",),
        misses=("pcsk_" + mixed(8),),
    ),
    Rule(
        name="tavily-key",
        vendor="Tavily",
        keywords=("tvly-",),
        pattern=r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32,}",
        hits=("tvly-" + mixed(32), "tvly-dev-" + mixed(32)),
        misses=("tvly-" + mixed(8), "tvly-YOUR_API_KEY"),
    ),
)
