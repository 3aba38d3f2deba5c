"""cli/start: options that are settings say what the settings say."""

from pathlib import Path
from typing import get_args

import pytest
import typer

from convmem.cli import app, run, start
from convmem.config import SETTINGS
from convmem.errors import SettingInvalid

# typer keeps the first name of an option where a default would stand.
FLAGS = {
    flag
    for value in vars(start).values()
    for option in get_args(value)
    if isinstance(option, typer.models.OptionInfo)
    for flag in (option.default, *(option.param_decls or ()))
}


def test_every_setting_with_a_flag_has_its_option():
    assert {setting.flag for setting in SETTINGS if setting.flag} <= FLAGS


def test_help_names_the_variable_of_each_setting(capsys: pytest.CaptureFixture[str]):
    assert run(["serve", "--help"], {"COLUMNS": "200"}, Path("/")) == 0
    shown = capsys.readouterr().out
    for setting in SETTINGS:
        if setting.flag:
            assert setting.flag in shown
            assert setting.variable in shown


def test_repeated_options_become_one_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["config", "--data-dir", str(tmp_path), "--allowed-host", "a.example", "--allowed-host", "b.example"]
    assert run(arguments, {}, tmp_path) == 0
    assert "CONVMEM_ALLOWED_HOSTS\ta.example, b.example\tflag --allowed-host\n" in capsys.readouterr().out


def test_no_option_takes_a_token():
    assert {flag for flag in FLAGS if "token" in str(flag)} == {"--token-file", "--http-token-file"}


def test_a_context_without_its_start_is_our_fault():
    context = typer.Context(typer.main.get_command(app))
    with pytest.raises(AssertionError):
        start.start_of(context)


def test_settings_of_a_command_come_from_its_flags_and_the_start(tmp_path: Path):
    context = typer.Context(typer.main.get_command(app), obj=start.Start({"CONVMEM_PROFILE": "all"}, tmp_path))
    settings = start.settings_of(context, data_dir="d", bind="127.0.0.1:1", allowed_hosts=[], trusted_proxies=None)
    assert (settings.data_dir, settings.bind.port, settings.profile) == (tmp_path / "d", 1, "all")
    with pytest.raises(SettingInvalid):
        start.settings_of(context, bind="nonsense")


def test_a_variable_that_only_looks_like_a_setting_is_found():
    environment = {
        "CONVMEM_BIND": "x",
        "CONVMEM_TOKEN": "x",
        "CONVMEM_HTTP_TOKN": "x",
        "HOME": "/",
        "MY_CONVMEM_X": "x",
    }
    assert start.unknown_variables(environment) == ["CONVMEM_HTTP_TOKN"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["backup", ""],
        ["backup", "verify", ""],
        ["restore", ""],
        ["export", ""],
        ["import", ""],
        ["import", "a.jsonl", ""],
        ["serve", "--backup-to", ""],
        ["sessions", "--data-dir", ""],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_wrong_usage_and_nothing_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
):
    if "--data-dir" not in arguments:
        arguments = [*arguments, "--data-dir", str(tmp_path / "data")]
    assert run(arguments, {}, tmp_path) == 2
    assert "must not be empty" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
