"""Prompts as people type them to agents, in English, Thai, Chinese and Japanese, about a dozen things a reader would
name; deterministic, so two runs see the same.

A prompt is a phrase about one topic inside what people say around it (openers, tails, numbers, versions, file names,
hashes, pasted identifiers), and one in ten is only that: chatter about nothing.
"""

from collections.abc import Iterator, Sequence
from random import Random

# The topic, how often it comes up, and phrases about it by language.
TOPICS: tuple[tuple[str, int, dict[str, tuple[str, ...]]], ...] = (
    (
        "database",
        10,
        {
            "en": (
                "the database migration {n} times out on the orders table",
                "add an index to the database so that {ident} does not scan everything",
                "why is the connection pool of the database exhausted after {n} requests",
                "write a database migration that renames {ident}",
                "move the database from sqlite to postgres",
                "the transaction in {file} holds a lock on the database for too long",
            ),
            "th": (
                "ฐานข้อมูลเชื่อมต่อไม่ได้หลังจากอัปเดต",
                "เพิ่มดัชนีในฐานข้อมูลให้ค้นหาเร็วขึ้น",
                "ย้ายฐานข้อมูลไปเครื่องใหม่",
                "ทำไมการเชื่อมต่อฐานข้อมูลถึงหลุดบ่อย",
            ),
            "zh": ("数据库迁移超时了", "给数据库加一个索引", "数据库连接池满了", "把数据库从 sqlite 换成 postgres"),
            "ja": (
                "データベースのマイグレーションが失敗します",
                "データベースにインデックスを追加したい",
                "データベースの接続プールが足りなくなる",
                "データベースを postgres に移行する手順",
            ),
        },
    ),
    (
        "login",
        8,
        {
            "en": (
                "login with two factors fails on the second step",
                "the session expires right after login",
                "let people log in with their phone, keep the password login",
                "the login page in {file} shows nothing for {ident}",
            ),
            "th": (
                "หน้าเข้าสู่ระบบเปิดไม่ได้",
                "อยากให้เข้าสู่ระบบด้วยเบอร์โทรศัพท์ได้",
                "เข้าสู่ระบบแล้วเด้งออกทันที",
                "เปลี่ยนรหัสผ่านแล้วเข้าสู่ระบบไม่ได้",
            ),
            "zh": ("登录页面打不开", "用户登录之后会话马上过期", "登录要支持双重验证", "忘记密码之后无法登录"),
            "ja": (
                "ログイン画面が表示されない",
                "ログインのあとセッションがすぐ切れる",
                "二段階認証でログインできるようにして",
                "パスワードを忘れた人のログイン方法",
            ),
        },
    ),
    (
        "docker",
        9,
        {
            "en": (
                "the docker container restarts every {n} seconds",
                "make the docker image smaller, it is {n} MB now",
                "docker compose cannot find the network of {ident}",
                "run the tests inside a docker container on arm",
            ),
            "th": (
                "คอนเทนเนอร์ไม่ยอมเริ่มบน docker",
                "ลดขนาดอิมเมจของ docker ให้หน่อย",
                "docker compose ต่อเครือข่ายไม่ได้",
                "คอนเทนเนอร์ใช้หน่วยความจำเยอะเกินไป",
            ),
            "zh": (
                "docker 容器起不来",
                "把 docker 镜像做小一点",
                "容器的内存占用太高",
                "用 docker compose 部署到服务器",
            ),
            "ja": (
                "docker のコンテナが再起動を繰り返す",
                "docker イメージを軽くしたい",
                "コンテナのメモリ使用量が多すぎる",
                "docker compose のネットワーク設定",
            ),
        },
    ),
    (
        "payment",
        6,
        {
            "en": (
                "a payment is charged twice when the webhook is repeated",
                "the payment provider answers {n}, retry with a delay",
                "refund a payment partly and keep the invoice",
                "show the payment status on the order page",
            ),
            "th": (
                "ระบบชำระเงินตัดเงินซ้ำสองครั้ง",
                "คืนเงินบางส่วนให้ลูกค้า",
                "การชำระเงินค้างอยู่สถานะรอ",
                "เพิ่มช่องทางชำระเงินด้วยคิวอาร์",
            ),
            "zh": ("支付接口超时需要重试", "用户支付之后订单状态没变", "退款只退一部分", "支付回调重复通知"),
            "ja": (
                "決済が二重に行われてしまう",
                "決済の返金を一部だけ行いたい",
                "決済サービスの応答が遅い",
                "注文画面に決済の状態を出して",
            ),
        },
    ),
    (
        "search",
        8,
        {
            "en": (
                "full text search returns nothing for short words",
                "rank the search results by date and then by {ident}",
                "the search index is {n} times larger than the texts",
                "highlight what was found in the search results",
            ),
            "th": ("ค้นหาภาษาไทยแล้วไม่เจอผลลัพธ์", "เรียงผลการค้นหาตามวันที่", "ดัชนีค้นหาใหญ่เกินไป", "อยากให้ค้นหาคำสั้นๆ ได้"),
            "zh": ("搜索中文的时候找不到结果", "搜索结果按日期排序", "搜索索引太大了", "让搜索支持拼音"),
            "ja": (
                "検索結果が日付順にならない",
                "全文検索で短い単語が見つからない",
                "検索インデックスが大きすぎる",
                "検索の速度を上げたい",
            ),
        },
    ),
    (
        "cache",
        5,
        {
            "en": (
                "the cache is never invalidated after {ident} changes",
                "keep the cache in redis for {n} minutes",
                "measure the hit rate of the cache",
            ),
            "th": ("แคชไม่ยอมหมดอายุ", "เก็บแคชไว้ใน redis", "ล้างแคชอัตโนมัติทุกคืน"),
            "zh": ("缓存一直不过期", "把缓存放到 redis 里", "统计缓存的命中率", "缓存穿透怎么处理"),
            "ja": ("キャッシュが更新されない", "キャッシュを redis に置きたい", "キャッシュのヒット率を測って"),
        },
    ),
    (
        "backup",
        5,
        {
            "en": (
                "the nightly backup did not run on {date}",
                "restore the backup of {date} on another machine",
                "encrypt the backup before it is uploaded",
            ),
            "th": ("การสำรองข้อมูลเมื่อคืนไม่ทำงาน", "กู้คืนข้อมูลสำรองของวันที่ {date}", "ตั้งเวลาสำรองข้อมูลทุกวัน"),
            "zh": ("昨晚的备份没有执行", "把 {date} 的备份恢复到另一台机器", "备份上传之前要加密"),
            "ja": (
                "昨夜のバックアップが動いていない",
                "{date} のバックアップから復元したい",
                "バックアップを暗号化して保存する",
            ),
        },
    ),
    (
        "translation",
        5,
        {
            "en": ("the translation of the menu into Thai is too long", "check the translation files for missing keys"),
            "th": ("แปลเอกสารนี้เป็นภาษาอังกฤษ", "คำแปลในเมนูยาวเกินไป", "ตรวจคำแปลภาษาญี่ปุ่นให้ด้วย"),
            "zh": ("把这篇文档翻译成英文", "菜单的翻译太长了", "检查一下日语翻译"),
            "ja": ("この文書を英語に翻訳してください", "メニューの翻訳が長すぎる", "翻訳ファイルに足りないキーがある"),
        },
    ),
    (
        "unit tests",
        7,
        {
            "en": (
                "write unit tests for {ident} in {file}",
                "the unit test of {ident} is flaky on the pipeline",
                "raise the coverage of the unit tests above {n} percent",
            ),
            "th": ("เขียนการทดสอบหน่วยสำหรับ {ident}", "การทดสอบอัตโนมัติล้มเหลวบ่อย", "เพิ่มการทดสอบให้ครอบคลุม {n} เปอร์เซ็นต์"),
            "zh": ("给 {ident} 写单元测试", "单元测试在流水线上不稳定", "提高单元测试的覆盖率"),
            "ja": (
                "{ident} の単体テストを書いて",
                "単体テストがときどき失敗する",
                "テストのカバレッジを {n} パーセントにしたい",
            ),
        },
    ),
    (
        "upload",
        5,
        {
            "en": (
                "image upload fails for pictures larger than {n} MB",
                "make thumbnails after the image upload",
                "show the progress of the upload",
            ),
            "th": ("อัปโหลดรูปภาพขนาดใหญ่ไม่ได้", "ย่อรูปภาพหลังอัปโหลด", "แสดงความคืบหน้าของการอัปโหลด"),
            "zh": ("上传图片超过 {n} MB 就失败", "图片上传之后生成缩略图", "显示上传进度"),
            "ja": (
                "画像のアップロードが失敗する",
                "アップロードした画像を縮小して",
                "アップロードの進み具合を表示したい",
            ),
        },
    ),
    (
        "notification",
        4,
        {
            "en": ("the email notification is sent twice", "group the notifications of one day into one email"),
            "th": ("การแจ้งเตือนทางอีเมลส่งซ้ำ", "รวมการแจ้งเตือนของทั้งวันเป็นฉบับเดียว"),
            "zh": ("邮件通知发了两遍", "把一天的通知合并成一封邮件"),
            "ja": ("メール通知が二回届く", "一日の通知を一通のメールにまとめて"),
        },
    ),
    (
        "mobile layout",
        4,
        {
            "en": (
                "the layout of the settings page breaks on a mobile screen",
                "use larger buttons in the mobile layout",
            ),
            "th": ("หน้าเว็บบนมือถือแสดงผลเพี้ยน", "ทำปุ่มให้ใหญ่ขึ้นบนมือถือ"),
            "zh": ("手机上的页面布局乱了", "手机端的按钮太小"),
            "ja": ("スマホでレイアウトが崩れる", "スマホ用のボタンを大きくして"),
        },
    ),
)
OPENERS = {
    "en": (
        "please",
        "can you",
        "hey,",
        "I think",
        "ok so",
        "next:",
        "we need to look at this:",
        "hmm,",
        "quick question:",
        "",
    ),
    "th": ("ช่วยดูหน่อยครับ", "รบกวนด้วยค่ะ", "ขอถามหน่อยว่า", "ตอนนี้", "คือว่า", "", "พอดีว่า", "อยากรู้ว่า"),
    "zh": ("请帮我看一下", "你好,", "我想问一下", "现在", "麻烦你", "", "这里有个问题:", "能不能告诉我"),
    "ja": (
        "すみません、",
        "ちょっと見てほしいのですが、",
        "今",
        "お願いがあります。",
        "次に、",
        "",
        "質問です。",
        "なぜか",
    ),
}
TAILS = {
    "en": (
        "",
        "thanks!",
        "how do I fix it?",
        "see {file}",
        "it worked in {version}",
        "commit {hash}",
        "do it step by step",
        "and explain why",
    ),
    "th": ("", "ขอบคุณครับ", "แก้ยังไงดี", "ดูที่ {file}", "อธิบายด้วยนะคะ", "ช่วยแก้ให้หน่อย", "ทำทีละขั้นนะ", "รุ่น {version}"),
    "zh": ("", "谢谢", "怎么解决?", "请看 {file}", "请解释一下原因", "一步一步来", "版本是 {version}", "帮我改一下"),
    "ja": (
        "",
        "ありがとう",
        "どうすればいいですか",
        "{file} を見てください",
        "理由も教えて",
        "直してください",
        "{version} では動いていました",
        "お願いします",
    ),
}
CHATTER = {
    "en": (
        "go on",
        "yes, do that",
        "that is not what I asked for",
        "looks good to me",
        "try again with {hash}",
        "what did you change in {file}?",
    ),
    "th": ("โอเค ทำต่อเลย", "ไม่ใช่แบบนี้", "ลองอีกครั้งนะ", "ได้เลยครับ", "อันนี้คืออะไร"),
    "zh": ("好的,继续", "不是这样的", "再试一次", "可以,就这么做", "这是什么意思?"),
    "ja": ("はい、続けて", "そうではありません", "もう一度やってみて", "それでいいです", "これは何ですか"),
}
LANGUAGES, SHARES = ("en", "th", "zh", "ja"), (40, 25, 20, 15)
IDENTIFIERS = tuple(
    f"{verb}{noun}"
    for verb in ("get", "set", "load", "save", "parse", "render", "merge", "fetch")
    for noun in ("User", "Order", "Invoice", "Row", "Page", "Token", "Batch", "Profile", "Report")
)
FILES = tuple(
    f"{name}.{kind}" for name in ("main", "views", "worker", "config", "index", "setup") for kind in ("py", "ts", "go")
)


def prompts(count: int, seed: int = 1) -> Iterator[str]:
    """So many prompts."""
    chance = Random(seed)
    weights = [weight for _, weight, _ in TOPICS]
    for _ in range(count):
        language = chance.choices(LANGUAGES, SHARES)[0]
        if chance.random() < 0.1:
            yield _filled(chance.choice(CHATTER[language]), chance)
            continue
        _, _, phrases = chance.choices(TOPICS, weights)[0]
        parts = [chance.choice(OPENERS[language]), chance.choice(phrases[language]), chance.choice(TAILS[language])]
        yield _filled(_joined(parts, language), chance)


def _joined(parts: Sequence[str], language: str) -> str:
    return (" " if language in ("en", "th") else "").join(filter(None, parts))


def _filled(text: str, chance: Random) -> str:
    return text.format(
        n=chance.randrange(2, 900),
        ident=chance.choice(IDENTIFIERS),
        file=chance.choice(FILES),
        version=f"v{chance.randrange(9)}.{chance.randrange(20)}.{chance.randrange(9)}",
        date=f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}",
        hash=f"{chance.getrandbits(40):010x}",
    )
