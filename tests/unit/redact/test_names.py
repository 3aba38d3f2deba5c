"""Names of credentials: each is found whatever stands before it, none where it only begins another word."""

import re

import pytest

from convmem.redact import redact
from convmem.redact.names import LATIN, NAME, NAME_CUES

ALL_IN_OTHER_SCRIPTS = """пароль 密码 密碼 口令 パスワード パスフレーズ 暗証番号 비밀번호 암호 비밀키 รหัสผ่าน รหัสลับ
トークン アクセストークン APIキー apiキー シークレット 秘密鍵 アクセスキー 密钥 API密钥 密鑰 私钥 私鑰 金鑰 令牌
토큰 API키 시크릿 โทเคน โทเค็น คีย์API
ｐａｓｓｗｏｒｄ Ｐａｓｓｗｏｒｄ ＰＡＳＳＷＯＲＤ
ｔｏｋｅｎ ｓｅｃｒｅｔ ＡＰＩ＿ＫＥＹ ａｐｉｋｅｙ ｐｗｄ"""
ALL_OTHERS = "キー 鍵 トークン数 パスワード長 คีย์ 키 设备 令牌桶 ｋｅｙｂｏａｒｄ ｔｏｋｅｎｓ"
IN_OTHER_SCRIPTS, OTHERS = ALL_IN_OTHER_SCRIPTS.split(), ALL_OTHERS.split()


@pytest.mark.parametrize("name", [*IN_OTHER_SCRIPTS, "API キー", "API 키", "คีย์ API"])
@pytest.mark.parametrize("before", ["", "a ", "の", "ครับ", '"'])
def test_a_name_in_any_script_is_one(name: str, before: str):
    after = '"' if before == '"' else ""
    for between in ("=", " ＝ ", "：", ": "):
        start = f"{before}{name}{after}{between}"
        assert redact(f"{start}hunter2 b") == f"{start}[REDACTED:credential] b"


@pytest.mark.parametrize("name", OTHERS)
def test_another_word_is_none(name: str):
    assert redact(f"{name}：hunter22") == f"{name}：hunter22"


@pytest.mark.parametrize("name", ["トークン", "令牌", "토큰", "โทเค็น"])
def test_tokens_are_also_counted(name: str):
    for between in ("=", "＝", ": ", "："):
        assert redact(f"{name}{between}128,000 ") == f"{name}{between}128,000 "
        assert redact(f"{name}{between}128000x") == f"{name}{between}[REDACTED:credential]"


def test_a_secret_in_prose_is_named_before_an_equals_sign_alone():
    assert redact("秘密＝hunter2") == "秘密＝[REDACTED:credential]"
    assert redact("秘密：hunter2") == "秘密：hunter2"


@pytest.mark.parametrize("which", ["_2", "-prod", "Old", "_FOR_CI", "-for-the-shop", "_of_ann", "ForCi"])
def test_which_one_it_is_may_stand_behind_the_name(which: str):
    for name in ("password", "API_TOKEN", "clientSecret"):
        assert redact(f"{name}{which}: hunter2") == f"{name}{which}: [REDACTED:credential]"


@pytest.mark.parametrize("which", ["_count", "Form", "_form", "izer", "_for", "_field"])
def test_another_ending_makes_another_name(which: str):
    assert redact(f"password{which}=hunter2") == f"password{which}=hunter2"


@pytest.mark.parametrize("before", ["next ", "current ", "expected ", "last ", "max_", "total_", "pad_"])
def test_the_tokens_of_parsers_and_models_are_no_credentials(before: str):
    assert redact(f'{before}token: "and"') == f'{before}token: "and"'


@pytest.mark.parametrize("name", [*IN_OTHER_SCRIPTS, "password", "DB_PASS", "Senha", "kennwort", "npm_config__auth"])
def test_a_name_is_found_by_its_beginning_and_by_a_cue(name: str):
    assert re.search(NAME, name, re.ASCII)
    assert any(cue in name.lower() for cue in NAME_CUES)


def test_the_latin_names_are_among_all():
    for name in ("password", "apiKey", "GROQ_API_KEY", "stripe-key", "credential", "_auth"):
        assert re.search(LATIN, name, re.ASCII)[0] == re.search(NAME, name, re.ASCII)[0]
    assert not re.search(LATIN, "パスワード", re.ASCII)
