"""Which letters belong to which way of writing, as far as a search needs to know it.

    joined   Han, kana, bopomofo, hangul: no spaces, or endings written at the word; two letters already say something
    run on   Thai, Lao, Khmer, Myanmar: words without spaces, but long ones
    spaced   everything else: words stand between spaces and marks

Punctuation belongs to none of them. The ranges are those of folded text (text.py): compatibility forms are gone.
"""

import re

JOINED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\uf900-\ufaff\U00016fe3\U0001aff0-\U0001b2ff\U00020000-\U0003fffd"
)
RUN_ON = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109d\u1780-\u17d3\u17dc-\u17dd"

JOINED_RUN = re.compile(f"[{JOINED}]+")
RUN_ON_RUN = re.compile(f"[{RUN_ON}]+")
