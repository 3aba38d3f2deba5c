"""config: each setting from the nearest place that names it, and nothing that cannot be meant."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from convmem import config, table_settings
from convmem.addresses import Address
from convmem.config import SETTINGS, Settings
from convmem.errors import DataDirectoryUnusable, SettingInvalid, UnsafeBind
from convmem.limits import SETTINGS_FILE_BYTES_MAX, SOCKET_PATH_BYTES_MAX, TOKEN_BYTES_MAX


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working directory."""
    path = tmp_path / "here"
    path.mkdir()
    return path


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    return path


def loaded(here: Path, *, flags: dict[str, str | None] | None = None, **environment: str) -> Settings:
    return config.load(flags or {}, {"CONVMEM_DATA_DIR": str(here.parent / "data"), **environment}, here)


def test_without_any_setting_the_defaults_hold(here: Path):
    settings = loaded(here)
    assert settings.bind == Address("127.0.0.1", 8484)
    assert (settings.profile, settings.log_format) == ("core", "text")
    assert (settings.allowed_hosts, settings.trusted_proxies, settings.http_token) == ((), (), None)
    assert settings.sources["bind"] == "default"


def test_flag_beats_environment_beats_working_directory_beats_data_directory(here: Path, data_dir: Path):
    in_data_dir, in_here = data_dir / "convmem.env", here / "convmem.env"
    in_data_dir.write_text("CONVMEM_BIND=127.0.0.1:1\n")
    assert loaded(here).bind.port == 1
    assert loaded(here).sources["bind"] == f"{in_data_dir}:1"
    in_here.write_text("# ports\n\nCONVMEM_BIND=127.0.0.1:2\n")
    assert loaded(here).bind.port == 2
    assert loaded(here).sources["bind"] == f"{in_here}:3"
    assert loaded(here, CONVMEM_BIND="127.0.0.1:3").bind.port == 3
    assert loaded(here, CONVMEM_BIND="127.0.0.1:3").sources["bind"] == "environment"
    settings = loaded(here, flags={"bind": "127.0.0.1:4"}, CONVMEM_BIND="127.0.0.1:3")
    assert settings.bind.port == 4
    assert settings.sources["bind"] == "flag --bind"


def test_an_absent_flag_says_nothing(here: Path):
    assert loaded(here, flags={"bind": None}, CONVMEM_BIND="127.0.0.1:3").bind.port == 3


def test_a_list_of_a_nearer_place_replaces_the_whole_list(here: Path):
    (here / "convmem.env").write_text("CONVMEM_ALLOWED_HOSTS=a.example, B.example,a.example\n")
    assert loaded(here).allowed_hosts == ("a.example", "b.example")
    assert loaded(here, CONVMEM_ALLOWED_HOSTS="").allowed_hosts == ()


def test_every_setting_has_a_variable_of_its_own_and_all_but_the_token_and_those_of_tables_have_a_flag():
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)
    assert all(setting.variable.startswith("CONVMEM_") for setting in SETTINGS)
    assert [setting.name for setting in SETTINGS if setting.flag is None] == ["http_token", *table_settings.NAMES]


def test_the_working_directory_may_be_the_data_directory(here: Path):
    (here / "convmem.env").write_text("CONVMEM_DATA_DIR=.\nCONVMEM_PROFILE=messages\n")
    settings = config.load({}, {}, here)
    assert settings.data_dir == here
    assert settings.profile == "messages"


def test_a_data_directory_cannot_name_another_one(here: Path, data_dir: Path):
    (data_dir / "convmem.env").write_text("CONVMEM_DATA_DIR=/elsewhere\n")
    with pytest.raises(SettingInvalid, match="cannot name another one"):
        loaded(here)


def test_a_relative_path_starts_where_it_is_written(here: Path, data_dir: Path):
    (data_dir / "token").write_text("from-the-data-directory")
    (data_dir / "convmem.env").write_text("CONVMEM_HTTP_TOKEN_FILE=token\n")
    assert loaded(here).http_token == b"from-the-data-directory"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CONVMEM_PROFILE=messages", "messages"),
        ("CONVMEM_PROFILE = messages ", "messages"),
        ("CONVMEM_PROFILE='messages'", "messages"),
        ('CONVMEM_PROFILE="messages"\r\n', "messages"),
        ("\ufeffCONVMEM_PROFILE=messages", "messages"),
        ("  # CONVMEM_PROFILE=all\nCONVMEM_PROFILE=messages", "messages"),
    ],
)
def test_a_settings_file_is_read_as_people_write_it(here: Path, text: str, value: str):
    (here / "convmem.env").write_bytes(text.encode())
    assert loaded(here).profile == value


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"CONVMEM_PROFILE=core\nCONVMEM_BINT=127.0.0.1:1\n", 2, "there is no setting 'CONVMEM_BINT'"),
        (b"BIND=127.0.0.1:1\n", 1, "there is no setting 'BIND'"),
        (b"\n\nCONVMEM_BIND\n", 3, "not a line NAME=VALUE"),
        (b"CONVMEM_PROFILE=core\nCONVMEM_PROFILE=core\n", 2, "stands here twice"),
        (b"CONVMEM_PROFILE=core\n\xff=1\n", 2, "not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused_with_file_and_line(here: Path, data: bytes, line: int, reason: str):
    (here / "convmem.env").write_bytes(data)
    with pytest.raises(SettingInvalid) as refused:
        loaded(here)
    assert f"{here / 'convmem.env'}:{line}" in refused.value.message
    assert reason in refused.value.message


def test_a_bad_value_in_a_file_is_refused_with_setting_file_and_line(here: Path):
    (here / "convmem.env").write_text("\nCONVMEM_BIND=nonsense\n")
    with pytest.raises(SettingInvalid) as refused:
        loaded(here)
    assert refused.value.message.startswith(f"CONVMEM_BIND ({here / 'convmem.env'}:2): ")
    assert refused.value.details["setting"] == "CONVMEM_BIND"


def test_a_settings_file_over_its_bound_is_refused(here: Path):
    (here / "convmem.env").write_bytes(b"#" * (SETTINGS_FILE_BYTES_MAX + 1))
    with pytest.raises(SettingInvalid, match="is larger than"):
        loaded(here)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_settings_file_that_is_no_file_is_refused_and_not_waited_for(here: Path, make: Callable[[Path], None]):
    make(here / "convmem.env")
    with pytest.raises(SettingInvalid, match="no regular file"):
        loaded(here)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CONVMEM_BIND", "8484"),
        ("CONVMEM_BIND", ""),
        ("CONVMEM_PROFILE", "everything"),
        ("CONVMEM_PROFILE", "CORE"),
        ("CONVMEM_ALLOWED_HOSTS", "a.example,,b.example"),
        ("CONVMEM_ALLOWED_HOSTS", "a.example:443"),
        ("CONVMEM_ALLOWED_HOSTS", "*"),
        ("CONVMEM_TRUSTED_PROXIES", "proxy"),
        ("CONVMEM_LOG_FORMAT", "xml"),
        ("CONVMEM_BACKUP_TO", ""),
        ("CONVMEM_BACKUP_EVERY", "6"),
        ("CONVMEM_BACKUP_EVERY", ""),
        ("CONVMEM_DATA_DIR", " "),
        ("CONVMEM_DATA_DIR", "a\x1bb"),
        ("CONVMEM_PROFILE", "core\n"),
    ],
)
def test_junk_is_refused_with_the_name_of_the_setting(here: Path, variable: str, value: str):
    with pytest.raises(SettingInvalid) as refused:
        loaded(here, **{variable: value})
    assert refused.value.details["setting"] == variable
    assert variable in refused.value.message
    assert refused.value.message.isprintable()


def test_a_variable_that_is_not_ours_to_know_is_left_alone(here: Path):
    assert loaded(here, CONVMEM_TOKEN="a client's", CONVMEM_SOMETHING="else").http_token is None


@pytest.mark.parametrize("value", ["", " ", "\ufeff", "\ufeff \n"])
def test_a_blank_token_is_refused(here: Path, value: str):
    with pytest.raises(SettingInvalid, match=r"blank|control"):
        loaded(here, CONVMEM_HTTP_TOKEN=value)
    (here / "token").write_bytes(value.encode())
    with pytest.raises(SettingInvalid, match="blank"):
        loaded(here, CONVMEM_HTTP_TOKEN_FILE="token")


@pytest.mark.parametrize("value", [" s3cret", "s3cret ", "s3cret\n", "s3\tcret", "\ufeffs3cret", "s3cret" * 1_000])
def test_a_token_that_no_client_could_send_is_refused_without_being_shown(here: Path, value: str):
    with pytest.raises(SettingInvalid) as refused:
        loaded(here, CONVMEM_HTTP_TOKEN=value)
    assert refused.value.message.startswith("CONVMEM_HTTP_TOKEN (environment): ")
    assert "cret" not in refused.value.message


def test_a_token_of_full_length_is_taken_from_a_file_with_its_line_end(here: Path):
    (here / "token").write_bytes(b"a" * TOKEN_BYTES_MAX + b"\r\n")
    assert loaded(here, CONVMEM_HTTP_TOKEN_FILE="token").http_token == b"a" * TOKEN_BYTES_MAX


@pytest.mark.parametrize("data", [b"s3cret", b"s3cret\n", b"s3cret\r\n"])
def test_one_line_end_of_a_token_file_is_dropped(here: Path, data: bytes):
    (here / "token").write_bytes(data)
    assert loaded(here, CONVMEM_HTTP_TOKEN_FILE=str(here / "token")).http_token == b"s3cret"


@pytest.mark.parametrize("data", [b"s3cret\n\n", b"s3cret\r", b"one\ntwo\n", b"s3cret\x00"])
def test_more_than_one_line_in_a_token_file_is_refused(here: Path, data: bytes):
    (here / "token").write_bytes(data)
    with pytest.raises(SettingInvalid) as refused:
        loaded(here, CONVMEM_HTTP_TOKEN_FILE="token")
    assert "s3cret" not in refused.value.message


def test_bytes_of_a_token_are_kept_as_they_are(here: Path):
    (here / "token").write_bytes(b"t\xf8k\xe9n")
    assert loaded(here, CONVMEM_HTTP_TOKEN_FILE="token").http_token == b"t\xf8k\xe9n"
    assert loaded(here, CONVMEM_HTTP_TOKEN=os.fsdecode(b"t\xf8k\xe9n")).http_token == b"t\xf8k\xe9n"


def test_a_missing_token_file_is_refused_with_its_path(here: Path):
    with pytest.raises(SettingInvalid, match=r"nowhere is not there"):
        loaded(here, CONVMEM_HTTP_TOKEN_FILE="nowhere")


def test_a_token_and_a_token_file_together_are_refused_whatever_their_places(here: Path):
    (here / "convmem.env").write_text("CONVMEM_HTTP_TOKEN=one\n")
    with pytest.raises(SettingInvalid, match="a token is given twice"):
        loaded(here, flags={"http_token_file": "token"})


def test_a_token_shows_in_no_repr(here: Path):
    assert "s3cret" not in repr(loaded(here, CONVMEM_HTTP_TOKEN="s3cret"))


@pytest.mark.parametrize("bind", ["0.0.0.0:8484", "[::]:8484", "192.168.7.7:8484", "central.example:8484"])
def test_an_address_that_others_reach_needs_a_token(here: Path, bind: str):
    with pytest.raises(UnsafeBind, match="CONVMEM_HTTP_TOKEN"):
        loaded(here, CONVMEM_BIND=bind).refuse_unsafe_bind(has_tokens=False)
    loaded(here, CONVMEM_BIND=bind, CONVMEM_HTTP_TOKEN="s3cret").refuse_unsafe_bind(has_tokens=False)
    loaded(here, CONVMEM_BIND=bind).refuse_unsafe_bind(has_tokens=True)


def test_loopback_needs_none(here: Path):
    loaded(here, CONVMEM_BIND="[::1]:0").refuse_unsafe_bind(has_tokens=False)


def test_a_backup_is_kept_up_only_where_one_is_named(here: Path):
    settings = loaded(here)
    assert (settings.backup_to, settings.backup_every_ms) == (None, 6 * 3_600_000)
    settings = loaded(here, CONVMEM_BACKUP_TO="copy", CONVMEM_BACKUP_EVERY="90s")
    assert (settings.backup_to, settings.backup_every_ms) == (here / "copy", 90_000)


@pytest.mark.parametrize("place", [".", "copy", "../data/copy", "../link/copy"])
def test_a_backup_beside_the_original_is_refused_with_the_place_that_says_so(here: Path, data_dir: Path, place: str):
    (here.parent / "link").symlink_to(data_dir)
    (data_dir / "convmem.env").write_text(f"CONVMEM_BACKUP_TO={place}\n")
    with pytest.raises(SettingInvalid, match="cannot stand in the data directory") as refused:
        loaded(here)
    assert f"{data_dir / 'convmem.env'}:1" in refused.value.message


def test_the_socket_stands_in_the_data_directory(here: Path):
    assert loaded(here).socket == here.parent / "data" / "convmem.sock"


def test_a_socket_path_that_is_too_long_moves_to_the_runtime_directory(here: Path, tmp_path: Path):
    deep = tmp_path / ("d" * SOCKET_PATH_BYTES_MAX)
    settings = loaded(here, CONVMEM_DATA_DIR=str(deep), XDG_RUNTIME_DIR="/run/user/7")
    again = loaded(here, CONVMEM_DATA_DIR=str(tmp_path / "x" / ".." / deep.name), XDG_RUNTIME_DIR="/run/user/7")
    assert settings.socket is not None
    assert settings.socket.parent == Path("/run/user/7")
    assert settings.socket.name.startswith("convmem-")
    assert settings.socket == again.socket, "one data directory, one socket, however its path is spelled"


@pytest.mark.parametrize("runtime_dir", ["", "relative", "/" + "r" * SOCKET_PATH_BYTES_MAX])
def test_where_no_short_path_is_to_be_had_there_is_no_socket(here: Path, tmp_path: Path, runtime_dir: str):
    deep = tmp_path / ("d" * SOCKET_PATH_BYTES_MAX)
    assert loaded(here, CONVMEM_DATA_DIR=str(deep), XDG_RUNTIME_DIR=runtime_dir).socket is None


def test_a_working_directory_that_is_gone_is_no_obstacle(data_dir: Path):
    assert config.load({}, {"CONVMEM_DATA_DIR": str(data_dir)}, None).data_dir == data_dir


def test_without_a_home_the_data_directory_must_be_named(here: Path, monkeypatch: pytest.MonkeyPatch):
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for variable in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(DataDirectoryUnusable, match="--data-dir or CONVMEM_DATA_DIR"):
        config.load({}, {}, here)


@pytest.mark.slow
@pytest.mark.parametrize("home", [{}, {"HOME": "/"}, {"HOME": "/nowhere"}])
def test_settings_load_in_an_empty_environment_from_the_root(home: dict[str, str]):
    program = "import convmem.config as c, pathlib; print(c.load({}, {}, pathlib.Path('/')).data_dir)"
    package = str(Path(config.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {package!r}); {program}"],
        cwd="/",
        env=home,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip().endswith("convmem")
    assert Path(ran.stdout.strip()).is_absolute()


def test_distill_keeps_thirty_days_and_does_not_run_by_itself_unless_told(here: Path):
    settings = loaded(here)
    assert (settings.retention_days, settings.distill) == (30, "off")
    settings = loaded(here, CONVMEM_RETENTION_DAYS="7", CONVMEM_DISTILL="daily")
    assert (settings.retention_days, settings.distill) == (7, "daily")


def test_a_name_without_ours_before_it_counts_only_where_nothing_else_says_anything(here: Path):
    settings = loaded(here, RETENTION_DAYS="14")
    assert (settings.retention_days, settings.sources["retention_days"]) == (14, "environment RETENTION_DAYS")
    assert loaded(here, RETENTION_DAYS="14", CONVMEM_RETENTION_DAYS="7").retention_days == 7
    assert loaded(here, flags={"retention_days": "5"}, RETENTION_DAYS="14").retention_days == 5
    with pytest.raises(SettingInvalid, match=r"CONVMEM_RETENTION_DAYS \(environment RETENTION_DAYS\): 'x'"):
        loaded(here, RETENTION_DAYS="x")
    (here / "convmem.env").write_text("CONVMEM_RETENTION_DAYS=9\n")
    assert loaded(here, RETENTION_DAYS="14").retention_days == 9, "it may be meant for another program"


def test_every_alias_is_the_name_of_a_setting_and_of_no_other_variable():
    assert set(config.ALIASES.values()) <= set(config.BY_NAME)
    assert set(config.ALIASES).isdisjoint(config.BY_VARIABLE)
