"""The words of the field: which of them a page uses, and help on each of these, one click or key away."""

from __future__ import annotations

import re

__all__ = ["WORDS", "find_words"]

WORDS: dict[str, str] = {
    "unit": r"\bunits?\b|保护单位",
    "epsilon": r"\bepsilon\b|ε",
    "delta": r"\bdelta\b|δ",
    "odds": r"\bodds\b|赔率",
    "budget": r"\bbudgets?\b|预算",
    "noise": r"\bnois[ey]\b|噪声",
    "error_bar": r"\berror bars?\b|误差",
    "neighbors": r"\bneighbou?rs?\b|相邻",
    "sensitivity": r"\bsensitivity\b|敏感度",
    "mechanism": r"\bmechanisms?\b|机制",
    "laplace": r"\bLaplace\b|拉普拉斯",
    "gaussian": r"\bGaussian\b|高斯",
    "exponential": r"\bexponential\b|指数机制",
    "randomized_response": r"\brandomized response\b|随机应答",
    "sparse_vector": r"\bsparse vector\b|稀疏向量",
    "composition": r"\bcomposition\b|组合",
    "local": r"\blocal\b|本地",
    "shuffled": r"\bshuffl(?:ed|er|ing)\b|洗牌|混洗|打乱",
    "clipping": r"\bclip(?:ped|ping|s)?\b|裁剪",
    "population": r"\bpopulations?\b|人群总账户|这些人的所有数据表",
    "grant": r"\bgrants?\b|\bGranted\b|额度",
    "agent": r"\bagents?\b|智能体",
    "declaration": r"\bdeclar(?:ation|ed)\b|声明",
    "block": r"\bblocks?\b|数据块",
    "series": r"\bseries\b|序列",
    "synthetic": r"\bsynthetic\b|合成",
    "training": r"\btrainings?\b|训练",
    "purpose": r"\bpurpose\b|用途",
    "publication": r"\bpublish(?:ed)?\b|公开结果",
    "ledger": r"\bledger\b|账本",
    "head": r"\bhead of the chain\b|\bits head\b|链头",
    "receipt": r"\breceipt\b|收据",
    "statement": r"\bstatements?\b|对账单",
    "registry": r"\bregistry\b|登记表",
}
"""Every word that has help, and how a page spells it in either language."""

_TAGS = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL)
_HELPED = re.compile(r'popovertarget="word-([a-z_]+)"')


def find_words(page: str) -> list[str]:
    """The words that a page uses or offers help on, in the order of the glossary.

    >>> find_words('<main class="noise"><p>A price in epsilon.</p></main>')
    ['epsilon']
    """
    main = page[page.find("<main") :].rpartition("</main>")[0]
    helped, text = set(_HELPED.findall(main)), _TAGS.sub(" ", main)
    return [word for word, spelled in WORDS.items() if word in helped or re.search(spelled, text, re.IGNORECASE)]
