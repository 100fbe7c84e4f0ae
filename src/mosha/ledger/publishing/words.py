"""What a statement says, in English and in Chinese: one table of words each, and sentences with numbers in them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from mosha.accounting.rules import Rule
from mosha.core.errors import InvalidParameter
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.unit import Client, Edge, Example, Member, Neighbors, Node, Own, Person, Reading, Row, Unit, Window
from mosha.ledger.terms.weakness import LARGE_EPSILON, Weakness

__all__ = ["Words", "words_in"]


class Words(ABC):
    """One language."""

    lang: ClassVar[str]
    table: ClassVar[dict[str, str]]

    def __getitem__(self, name: str) -> str:
        return self.table[name]

    @abstractmethod
    def promise(self, promise: Guarantee) -> str:
        """The numbers of a promise."""

    @abstractmethod
    def describe_hidden(self, unit: Unit) -> str:
        """What nobody can tell."""

    @abstractmethod
    def belief(self, before: str, after: str, factor: str) -> str:
        """What the promise means to somebody who suspects something."""

    @abstractmethod
    def failing(self, delta: float) -> str:
        """What delta means."""

    @abstractmethod
    def rule(self, rule: Rule, way: object) -> str:
        """How an account admits releases."""

    @abstractmethod
    def describe_spent(self, share: str, measure: str, amount: str, limit: str) -> str: ...

    @abstractmethod
    def describe_left(self, measure: str, amount: str, more: int | None) -> str:
        """What is left, and how many more payments like the last one that is, where it is known."""

    @abstractmethod
    def state(self, state: str) -> str:
        """What became of a payment, or of an account."""

    @abstractmethod
    def warning(self, weakness: Weakness) -> str: ...


class English(Words):
    lang = "en"
    table: ClassVar[dict[str, str]] = {
        "title": "Privacy statement",
        "promised": "What is promised",
        "together": "for all releases of this account together, past and future",
        "converted": "read at delta 0.000001",
        "spent": "Spent so far",
        "left": "Left",
        "warnings": "Warnings",
        "facts": "Terms",
        "colon": ": ",
        "hidden": "Hidden",
        "population": "population",
        "population_pays": "charged with every release",
        "size": "declared size",
        "rule": "how releases are admitted",
        "means": "all releases so far mean",
        "today": "by the tightest accounting of today, for reading",
        "state": "state",
        "purpose": "purpose",
        "blocks": "blocks of data",
        "disjoint": "declared disjoint: nobody lies in two of them, and the dearest one counts",
        "accounts": "Accounts whose releases are charged here too",
        "account": "account",
        "promise": "promise",
        "releases": "Releases",
        "none": "None yet.",
        "what": "what",
        "event": "price tag",
        "times": "times",
        "dates": "dates",
        "cost": "cost",
        "rows": "rows of the book",
        "book": "The book and how to check it",
        "book_says": "Every payment is a row in a chain of hashes. This is the row that the chain ended with on",
        "check": "Whoever has the book checks that it still holds this row, and that every sum is right:",
        "limits": "What this does not say",
        "limits_say": (
            "The promise is for the unit named above and for releases that were paid from this account. Other "
            "publications of the same data, bounds that were read off the data, and access to the raw data are outside "
            "of it. Groups and families are protected less than one person."
        ),
        "made": "drawn up by Mosha",
    }

    def promise(self, promise: Guarantee) -> str:
        return str(promise)

    def describe_hidden(self, unit: Unit) -> str:
        return f"whether {unit.describe()}"

    def belief(self, before: str, after: str, factor: str) -> str:
        return (
            f"All that is published changes the odds of anything that is believed about any one of them by a factor "
            f"of at most {factor}. Someone who thought it {before} likely before can think it at most {after} likely "
            "afterwards."
        )

    def failing(self, delta: float) -> str:
        return (
            f"Delta means that no attacker does better than one who is told everything with probability {delta:.3g} "
            "and for whom the bound holds otherwise."
        )

    def describe_spent(self, share: str, measure: str, amount: str, limit: str) -> str:
        return f"{share} of the limit: {measure} {amount} of {limit}"

    def describe_left(self, measure: str, amount: str, more: int | None) -> str:
        return f"{measure} {amount}" + ("" if more is None else f", about {more:,} more like the last one")

    def rule(self, rule: Rule, way: Any) -> str:
        return rule.describe(way)

    def state(self, state: str) -> str:
        return state

    def warning(self, weakness: Weakness) -> str:
        return str(weakness)


class Chinese(Words):
    lang = "zh"
    table: ClassVar[dict[str, str]] = {
        "title": "隐私声明",
        "promised": "承诺",
        "together": "对本账户过去和将来的全部发布合并计算",
        "converted": "取 δ = 0.000001 换算",
        "spent": "已用预算",
        "left": "剩余",
        "warnings": "提醒",
        "facts": "账户条款",
        "colon": "：",
        "hidden": "保护对象",
        "population": "所属人群",
        "population_pays": "每次发布都同时计入该人群的总预算",
        "size": "申报规模",
        "rule": "计费规则",
        "means": "至今全部发布合计",
        "today": "按目前最紧的核算方法（仅供参考）",
        "state": "状态",
        "purpose": "用途",
        "blocks": "数据分块",
        "disjoint": "已申明互不相交：任何人至多在一个块中，按花费最多的块计",
        "accounts": "下属账户（其花费同时计入本账户）",
        "account": "账户",
        "promise": "承诺",
        "releases": "发布记录",
        "none": "暂无发布。",
        "what": "内容",
        "event": "计价事件",
        "times": "次数",
        "dates": "日期",
        "cost": "花费",
        "rows": "账本行号",
        "book": "账本与核验方法",
        "book_says": "每一笔支付都是哈希链上的一行。生成本声明时，链的末行如下，时间为",
        "check": "持有账本的人可以核验它仍包含这一行，并且每一笔合计都正确：",
        "limits": "本声明不包括什么",
        "limits_say": (
            "承诺只针对上述保护对象，并且只针对由本账户支付的发布。同一数据的其他公开渠道、查看数据后才定下的取值范围、"
            "对原始数据的访问，均不在承诺之内。家庭等多人群体所受的保护弱于单个人。"
        ),
        "made": "由 Mosha 生成",
    }
    _kinds: ClassVar[dict[type[Unit], str]] = {
        Member: "任何一个人（其全部数据）",
        Reading: "任何一次读数（某人在某一时刻的一次记录）",
        Edge: "图中任何一条边",
        Node: "图中任何一个顶点及其所有边",
        Example: "任何一个训练样本",
        Client: "任何一个客户端及其全部数据",
        Own: "设备所有者自己的取值",
    }
    _rules: ClassVar[dict[str, str]] = {
        "pure": "ε 与 δ 分别直接相加",
        "zero-concentrated": "累加 ρ（零集中差分隐私）",
        "renyi": "累加 Rényi 差分隐私的损失",
        "gaussian": "累加 μ²（高斯差分隐私）",
        "either": "直接相加与累加 ρ 两种算法，只要其中一种未超上限即可支付",
    }
    _states: ClassVar[list[tuple[str, str]]] = [
        (r"released", "已发布"),
        (r"failed", "执行失败，费用不退"),
        (r"reserved", "已付款，尚未发布"),
        (r"handed back", "未执行，已全额退回"),
        (r"settled", "租用额度，已结清"),
        (r"lease, not settled", "租用额度，尚未结清"),
        (r"(\d+) of (\d+) steps released, (\d+) failed", r"共 \2 步，已发布 \1 步，失败 \3 步"),
        (r"(\d+) of (\d+) steps released", r"共 \2 步，已发布 \1 步"),
        (r"open", "可用"),
        (r"retired", "已停用"),
        (r"granted until (.+)", r"授权至 \1"),
    ]

    def promise(self, promise: Guarantee) -> str:
        match promise:
            case Pure():
                return f"ε = {promise.epsilon:.6g}"
            case Approx():
                return f"ε = {promise.epsilon:.6g}，δ = {promise.delta:.6g}"
            case ZeroConcentrated():
                return f"ρ = {promise.rho:.6g}（零集中差分隐私）"
            case Gaussian():
                return f"μ = {promise.mu:.6g}（高斯差分隐私）"
        return str(promise)

    def describe_hidden(self, unit: Unit) -> str:
        who = self._who(unit)
        of = "" if unit.of is None else f"（人群：{unit.of}）"
        if unit.neighbours is Neighbors.ADD_REMOVE:
            return f"{who}{of}是否在数据之中"
        return f"{who}{of}是否被换成了另一个"

    def _who(self, unit: Unit) -> str:
        match unit:
            case Person():
                return f"任何一个人（同一“{unit.column}”的所有行）"
            case Window():
                return f"任何一个人（同一“{unit.column}”）在任意连续 {unit.steps} 步之内的全部行为"
            case Row():
                return "任何一行" if unit.at_most == 1 and unit.of is None else f"任何一个人（至多 {unit.at_most} 行）"
        return self._kinds.get(type(unit), unit.noun)

    def belief(self, before: str, after: str, factor: str) -> str:
        return (
            "看完全部发布结果之后，人们关于任何一个保护对象的任何猜测，"
            f"其胜算（成立与不成立的可能之比）最多变为原来的 {factor} 倍："
            f"原先认为有 {before} 可能的事，之后最多认为有 {after} 可能。"
        )

    def failing(self, delta: float) -> str:
        return f"δ 的含义：任何攻击者都不会强于这样一个人：他以 {delta:.3g} 的概率得知一切，其余情形下受上述界限约束。"

    def describe_spent(self, share: str, measure: str, amount: str, limit: str) -> str:
        return f"已用上限的 {share}：{_GREEK.get(measure, measure)} {amount} / {limit}"

    def describe_left(self, measure: str, amount: str, more: int | None) -> str:
        return f"{_GREEK.get(measure, measure)} {amount}" + (
            "" if more is None else f"，约可再付 {more:,} 次上一笔同样的发布"
        )

    def rule(self, rule: Rule, way: object) -> str:
        del way
        return self._rules.get(rule.name, rule.name)

    def state(self, state: str) -> str:
        for pattern, said in self._states:
            if found := re.fullmatch(pattern, state):
                return found.expand(said)
        return state

    def warning(self, weakness: Weakness) -> str:
        match weakness.code:
            case "large-epsilon":
                return (
                    f"ε = {weakness.epsilon:.6g}：发布结果可使任何判断的胜算变为原来的 e^{weakness.epsilon:.6g} 倍。"
                    f"超过 {LARGE_EPSILON:g} 时几乎起不到保护作用。"
                )
            case "large-delta":
                return (
                    f"δ = {weakness.delta:.3g}：相当于允许每 {1 / weakness.delta:,.0f} 人中有一人的数据被完全公开。"
                    "δ 应远小于人数的倒数。"
                )
            case "delta-for-size":
                return (
                    f"δ = {weakness.delta:.3g} 并未远小于申报规模 {weakness.size:,} 的倒数："
                    f"按此概率公开每个人的数据也符合承诺，预计会公开 {weakness.size * weakness.delta:.3g} 人。"
                    f"建议 δ 不超过 {weakness.advised:.1g}。"
                )
        return f"本账户的条款与账本现行政策不符（{weakness.detail}）。"


_GREEK = {"epsilon": "ε", "rho": "ρ", "mu": "μ", "delta": "δ"}
_LANGUAGES: dict[str, Words] = {"en": English(), "zh": Chinese()}


def words_in(lang: str) -> Words:
    """The words of a language.

    >>> words_in("zh")["releases"]
    '发布记录'
    """
    if lang not in _LANGUAGES:
        raise InvalidParameter("ledger.unknown_language", parameter="lang")
    return _LANGUAGES[lang]
