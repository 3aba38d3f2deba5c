"""Texts that break careless code: hypothesis strategies with every script, mark, control and length."""

from hypothesis import strategies

# Composition, folding that changes lengths, scripts without spaces, controls, separators, syntax of other languages.
NASTY = (
    *("é", "e\u0301", "É", "İ", "ı", "ß", "ẞ", "ς", "Σ", "ﬁ", "ŉ", "ＡＢＣ", "ａ", "①", "ｶﾞ", "ガ", "カ\u3099"),
    *("각", "\u1100", "\u1161", "\u11a8", "น้ำ", "น้\u0e4d\u0e32", "ຳ", "ខ្មែរ", "设备", "東京", "。", "，", "ー"),
    *(
        "\0",
        "\x01",
        "\x1c",
        "\x7f",
        "\u0085",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\ufffd",
        "\ufffe",
        "\U0001f600",
        "\U0010ffff",
    ),
    *("\u0301", "\u0345", "\u0323\u0307", "\u200d", "\u202e", " ", "  ", "\n", "\t", "\u3000", "\u00a0"),
    *('"', "'", "\\", "%", "_", "*", "(", "^", ":", "-", "AND", "x", "X", "a", "b", "key"),
)
pieces = strategies.sampled_from(NASTY)
code_points = strategies.characters(exclude_categories=["Cs"])
texts = strategies.lists(pieces | code_points, max_size=24).map("".join)
some_texts = texts.filter(bool)
names = some_texts.map(lambda text: text.replace("\0", "0")).filter(lambda text: len(text.encode()) <= 64)
