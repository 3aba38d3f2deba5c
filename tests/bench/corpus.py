"""Messages that nobody wrote, as a file of records: python -m tests.bench.corpus MESSAGES FILE

The same messages every time; a shorter file is the beginning of a longer one. English 50 %, Japanese 25, Chinese 12,
Thai 5, code, ids and log lines 8. What a search index feels is as in real text: the frequencies of words and letters
(Zipf), their number, words that return within a session, lengths (log-normal around 300 characters), sessions that
go on side by side. The words themselves are made of syllables, beside a few hundred common ones.
"""

import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from convmem.domain import Kept, Origin
from convmem.messages.events import MessageKept
from convmem.messages.lines import MESSAGES
from convmem.messages.model import Relation
from convmem.transfer.manifest import manifest

SEED = 20_240_229
FIRST_MS, STEP_S_MEAN = 1_560_000_000_000, 180
LENGTH_MEDIAN, LENGTH_SIGMA, LENGTH_MAX = 200, 0.9, 8_000
# How many sessions go on side by side, and how many messages they have at least and at most.
OPEN_SESSIONS, SESSION_MIN, SESSION_MAX = 4, 5, 200
TOPIC_WORDS, TOPIC_SHARE = 40, 0.12
CODE_SHARE = 0.08
LANGUAGES = {"english": 50, "japanese": 25, "chinese": 12, "thai": 5}
VOCABULARIES = {"english": 40_000, "japanese": 30_000, "chinese": 30_000, "thai": 15_000}
BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

ENGLISH = """the to and of a in that is it you for we this with be on not have are but can as if was so at or what
do from i there will they an by all one would which your how about when just my like has no more up then out some
get know think need use time me were should make want our had been their now them only could other also into than
see any because why does did who where way work first after new good here very well even same every before data file
code test error change over two system problem name these right still run file's don't it's that's i'm let's agent
memory search message session index server client cache token user value list table number key line text write read
find update delete call return result question answer plan decide remember meeting email project deadline customer
week today tomorrow yesterday morning review release version branch build deploy database query schema model prompt
context window budget price order invoice travel hotel flight doctor school garden kitchen coffee music book movie
friend family birthday weather summer winter holiday money bank house office phone screen button design colour word
language translate summary example option reason idea issue fix bug feature request response timeout retry backup
restore network latency memory's performance measure limit page user's it'd we're small large long short early late
old different important possible available wrong slow fast local remote public private open close start stop"""
INFLECTIONS = "- s ed ing ly er tion ment"
ONSETS = "b br c ch cl cr d dr f fl fr g gl gr h j k l m n p ph pl pr qu r s sc sh sk sl sp st str t th tr v w y z"
NUCLEI = "a e i o u a e i o ai au ea ee ie io oa oo ou"
CODAS = "- - - - b ck d f g l ll m n n ng nt p r r rd rn s s ss st t t th x"
JAPANESE = """これ それ こと もの 今日 私 時間 問題 会議 変更 確認 必要 場合 設定 検索 保存 記憶 会話 予定 連絡 資料
質問 返事 名前 昨日 明日 東京 使う 作る 思う 見る 分かる 書く 読む 探す 決める 忘れる 覚える データ ファイル エラー
テスト サーバー コード メモリ ユーザー システム メッセージ プロジェクト スケジュール 猫 水 本 店 家 朝 夜 友達 家族
旅行 病院 学校 値段 電話"""
PARTICLES = "の は を に が と で も から まで より へ や という について では には として とか だけ"
ENDINGS = """です。 ます。 ました。 ません。 でした。 ください。 でしょうか。 と思います。 だね。 かもしれない。
ている。 した、 して、 ので、 が、"""
CHINESE = """的 了 是 我 在 有 不 这 他 就 你 们 和 也 都 要 会 说 我们 可以 一个 什么 没有 问题 时间 现在 知道 因为
所以 如果 但是 需要 使用 数据 文件 系统 测试 错误 修改 会议 今天 明天 昨天 搜索 记忆 对话 项目 用户 服务器 代码 计划
怎么 为什么 已经 还是 猫 水 书 家 朋友 旅行 医院 学校 价格 电话 名字 北京 上海 重要 确认 保存 删除 更新 回答 天气"""
THAI = """ที่ และ เป็น ใน ของ มี ได้ ไม่ ว่า จะ ให้ การ กับ ก็ มา ไป นี้ แล้ว คือ จาก หรือ ต้อง ทำ เรา ผม คุณ อะไร
วันนี้ พรุ่งนี้ เมื่อวาน ประชุม ข้อมูล ไฟล์ ระบบ ค้นหา ประวัติ ข้อความ ปัญหา เวลา บ้าน น้ำ แมว เพื่อน โรงเรียน ราคา
ชื่อ กรุงเทพ ใช้ อ่าน เขียน จำ ลืม ถาม ตอบ ครับ ค่ะ มาก ดี ใหม่"""
THAI_CONSONANTS = "กขคงจชดตถทนบปผพฟมยรลวสหอ"
# A syllable: its consonant, then its tone, and the vowel around them.
THAI_SHAPES = "{}{}า {}ี{} {}ู{} เ{}{} แ{}{} โ{}{} ไ{}{} {}{}ะ {}ิ{} {}ุ{} {}{}ำ เ{}{}า {}ั{}น {}ื{}อ {}{}อ"
THAI_FINALS, THAI_TONES = "- - ก ง ด น บ ม ย ว", "- - - ่ ้ ๊"
LEVELS, VERBS = "INFO INFO INFO WARN ERROR DEBUG", "get set load make parse send is"


class Drawn:
    """Things drawn by Zipf's law, the first the most often."""

    def __init__(self, things: Sequence[str], shift: float = 2.7) -> None:
        self.things = things
        self._weights = list(accumulate(1 / (rank + shift) for rank in range(len(things))))

    def draw(self, source: random.Random, count: int) -> list[str]:
        """So many of them, with repetition."""
        return source.choices(self.things, cum_weights=self._weights, k=count)


def _split(things: str) -> list[str]:
    """Things of a list in one text; `-` is nothing."""
    return [thing.removeprefix("-") for thing in things.split()]


def _distinct(first: str, make: Callable[[int], str], count: int) -> list[str]:
    """So many words, those of `first` before those that `make` gives for a rank."""
    found = dict.fromkeys(_split(first))
    while len(found) < count:
        found[make(len(found))] = None
    return list(found)


def _english(source: random.Random) -> list[str]:
    onsets, nuclei, codas, inflections = map(_split, (ONSETS, NUCLEI, CODAS, INFLECTIONS))

    def make(rank: int) -> str:
        # What is said often is short.
        weights = (7, 3, 0) if rank < 2_000 else (3, 6, 1) if rank < 10_000 else (1, 6, 3)
        syllables = source.choices((1, 2, 3), weights)[0]
        stem = "".join(source.choice(part) for _ in range(syllables) for part in (onsets, nuclei, codas))
        return stem + source.choices(inflections, (60, 12, 8, 8, 4, 3, 3, 2))[0]

    return _distinct(ENGLISH, make, VOCABULARIES["english"])


def _joined(source: random.Random, first: str, count: int, *, kana_share: float) -> list[str]:
    """Words of one to three letters, which are Zipfian themselves; a share in katakana."""
    own = dict.fromkeys(letter for letter in first if "\u4e00" <= letter <= "\u9fff")
    others = source.sample([chr(at) for at in range(0x4E00, 0x9FA0)], 3_500)
    letters = Drawn([*own, *(letter for letter in others if letter not in own)], shift=30)
    katakana = [chr(at) for at in range(0x30A2, 0x30F3) if chr(at) not in "ァィゥェォッャュョヮヰヱ"]

    def make(_: int) -> str:
        if source.random() < kana_share:
            return "".join(source.choices([*katakana, "ー", "ン", "ッ"], k=source.randint(3, 6)))
        return "".join(letters.draw(source, source.choices((1, 2, 3), (12, 70, 18))[0]))

    return _distinct(first, make, count)


def _thai(source: random.Random) -> list[str]:
    shapes, finals, tones = map(_split, (THAI_SHAPES, THAI_FINALS, THAI_TONES))

    def syllable() -> str:
        letters = source.choice(THAI_CONSONANTS), source.choice(tones)
        return source.choice(shapes).format(*letters) + source.choice(finals)

    def make(_: int) -> str:
        return "".join(syllable() for _ in range(source.choices((1, 2, 3), (3, 5, 2))[0]))

    return _distinct(THAI, make, VOCABULARIES["thai"])


@dataclass
class Session:
    """A conversation while it goes on."""

    name: str
    language: str
    project: str | None
    topic: list[str]
    left: int
    last_id: str | None = None


class Author:
    """Writes messages, one after another."""

    def __init__(self) -> None:
        self._source = source = random.Random(SEED)
        self._words = {
            "english": Drawn(_english(source)),
            "japanese": Drawn(_joined(source, JAPANESE, VOCABULARIES["japanese"], kana_share=0.2)),
            "chinese": Drawn(_joined(source, CHINESE, VOCABULARIES["chinese"], kana_share=0)),
            "thai": Drawn(_thai(source)),
        }
        self._particles, self._endings = Drawn(_split(PARTICLES)), Drawn(_split(ENDINGS))
        self._projects, self._tags = (Drawn(self._words["english"].things[at : at + 60]) for at in (300, 100))
        self._levels, self._verbs = _split(LEVELS), _split(VERBS)
        self._sessions: list[Session] = []
        self._sessions_begun = 0

    def messages(self) -> Iterator[Kept]:
        """Messages without end, in the order of their times."""
        source, at_ms, number = self._source, FIRST_MS, 0
        self._sessions = [self._session() for _ in range(OPEN_SESSIONS)]
        while True:
            at_ms += 1 + int(source.expovariate(1 / STEP_S_MEAN) * 1000)
            place = source.randrange(OPEN_SESSIONS)
            number += 1
            yield self._message(self._sessions[place], number, at_ms)
            if not self._sessions[place].left:
                self._sessions[place] = self._session()

    def _session(self) -> Session:
        source = self._source
        self._sessions_begun += 1
        language = source.choices(tuple(LANGUAGES), tuple(LANGUAGES.values()))[0]
        things = self._words[language].things
        # Words of all frequencies but the greatest.
        topic = [things[int(200 * (len(things) / 200) ** source.random())] for _ in range(TOPIC_WORDS)]
        project = self._projects.draw(source, 1)[0] if source.random() < 0.7 else None
        length = int(SESSION_MIN * (SESSION_MAX / SESSION_MIN) ** source.random())
        return Session(f"{language}-{self._sessions_begun:07d}", language, project, topic, length)

    def _message(self, session: Session, number: int, at_ms: int) -> Kept:
        source = self._source
        length = min(LENGTH_MAX, int(LENGTH_MEDIAN * math.exp(source.gauss(0, LENGTH_SIGMA))) + 4)
        content = self._code(length, at_ms) if source.random() < CODE_SHARE else self._text(session, length)
        tags = tuple(dict.fromkeys(self._tags.draw(source, source.randint(1, 3)))) if source.random() < 0.2 else ()
        summary = self._text(session, 60) if source.random() < 0.05 else None
        is_answer = session.last_id is not None and source.random() < 0.02
        relations = (Relation(type="answers", message_id=str(session.last_id)),) if is_answer else ()
        session.last_id = _ulid(at_ms, source.getrandbits(80))
        event = MessageKept(
            message_id=session.last_id,
            session_id=session.name,
            role=source.choices(("user", "assistant", "system"), (48, 48, 4))[0],
            content=content,
            tags=tags,
            memory_tier=source.choices(("short", "mid", "long"), (10, 80, 10))[0],
            memory_kind=source.choices(("conversation", "episode", "semantic", "preference"), (90, 4, 4, 2))[0],
            importance=source.choices((0, 10, 50, 90), (85, 8, 5, 2))[0],
            summary=summary,
            relations=relations,
            project=session.project,
        )
        session.left -= 1
        return Kept(number, at_ms, Origin("laptop", "http", "agent/1"), event)

    def _text(self, session: Session, length: int) -> str:
        source, language = self._source, session.language
        words = self._words[language].draw(source, 1 + int(length / LETTERS_A_WORD[language]))
        for at in source.sample(range(len(words)), int(len(words) * TOPIC_SHARE)):
            words[at] = source.choice(session.topic)
        if language != "english" and source.random() < 0.3:
            words[source.randrange(len(words))] = source.choice(self._words["english"].things[100:3_000])
        text: str = getattr(self, f"_{language}_text")(words)
        return text

    def _english_text(self, words: list[str]) -> str:
        source, sentences = self._source, []
        for clause in self._clauses(words, 4, 18):
            sentence = " ".join(clause).replace(" but ", ", but ", 1)
            sentences.append(sentence[0].upper() + sentence[1:] + source.choice("....?!:"))
        return source.choice((" ", " ", " ", "\n", "\n\n- ")).join(sentences)

    def _japanese_text(self, words: list[str]) -> str:
        source, parts = self._source, []
        between = iter(self._particles.draw(source, len(words)))
        for clause in self._clauses(words, 2, 6):
            parts += [part for both in zip(clause, between, strict=False) for part in both][:-1]
            parts += self._endings.draw(source, 1)
        return "".join(parts)

    def _chinese_text(self, words: list[str]) -> str:
        return "".join(
            "".join(clause) + self._source.choice("，，，。。？、！") for clause in self._clauses(words, 3, 9)
        )

    def _thai_text(self, words: list[str]) -> str:
        return " ".join("".join(clause) for clause in self._clauses(words, 4, 14))

    def _clauses(self, words: list[str], least: int, most: int) -> Iterator[list[str]]:
        at = 0
        while at < len(words):
            yield words[at : at + (taken := self._source.randint(least, most))]
            at += taken

    def _code(self, length: int, at_ms: int) -> str:
        """Log lines, calls, paths, hashes; no prose."""
        source, lines, size = self._source, [], 0
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ms / 1000))
        while size < length:
            words = self._words["english"].draw(source, 4)
            number = source.getrandbits(64)
            name = f"{source.choice(self._verbs)}_{words[0]}_{words[1]}"
            path = f"/srv/{words[0]}/{words[1]}/{words[2].title()}{words[3].title()}.py:{number % 900}"
            log = f"{stamp}.{number % 1000:03d}Z {source.choice(self._levels)} [worker-{number % 9}] {name}: {words[2]}"
            call = f"    {words[3]} = await self.{name}({words[2]}_id={number % 100_000}, retry=True)"
            commit = f"commit {number:016x}{source.getrandbits(96):024x} {words[2]} ({words[3]})"
            json = f'{{"id": "{number >> 32:08x}-{number & 0xFFFF:04x}", "{words[0]}": {number % 1000}, "ok": true}}'
            lines.append(source.choice((path, log, call, commit, json)))
            size += len(lines[-1]) + 1
        return "\n".join(lines)


# Letters that one drawn word comes to in a text, with what stands between.
LETTERS_A_WORD = {"english": 7.3, "japanese": 4.3, "chinese": 2.2, "thai": 5.7}


def _ulid(at_ms: int, chance: int) -> str:
    number = at_ms << 80 | chance
    return "".join(BASE32[number >> 5 * place & 31] for place in range(25, -1, -1))


def write(path: Path, count: int) -> None:
    """A file of `count` messages as `convmem import` takes it; it is there whole or not at all."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(manifest(records=count, at_ms=FIRST_MS) + b"\n")
        for _, message in zip(range(count), Author().messages(), strict=False):
            file.write(MESSAGES.encode(message) + b"\n")
    part.rename(path)


def main() -> None:
    count, path = int(sys.argv[1]), Path(sys.argv[2])
    begun = time.perf_counter()
    write(path, count)
    spent_s = time.perf_counter() - begun
    print(f"{count:,} messages, {path.stat().st_size / 1e6:,.0f} MB, {count / spent_s:,.0f} messages a second")


if __name__ == "__main__":
    main()
