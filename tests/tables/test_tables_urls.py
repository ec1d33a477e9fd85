"""No message has a password, however the URL is written."""

from __future__ import annotations

import itertools
import random
from urllib.parse import quote

import pytest
from live_tables import LAYOUT

from uncombine.errors import InvalidArgument
from uncombine.tables import target_of
from uncombine.urls import secrets_of, shown_url, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me@host:5432/db?sslmode=require", "postgresql://host:5432/db"),
        ("postgresql://me:hush@h1:1,h2:2/db", "postgresql://h1:1,h2:2/db"),
        ("postgresql://me:hush@[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql:///db?user=a@b&password=x@hush", "postgresql:///db"),
        ("postgresql://host:1/db?user=a@b", "postgresql://host/db"),
        ("postgresql://me:hu@sh/hush@host/db", "postgresql://host/db"),
        ("postgresql://me:hush/db", "postgresql://..."),
        ("s3://bucket/day@noon/t?token=hush", "s3://bucket/day@noon/t"),
        ("abfss://box@account.dfs.core.windows.net/t", "abfss://account.dfs.core.windows.net/t"),
        ("sqlite:////data/catalog.db", "sqlite:////data/catalog.db"),
        ("C:/data", "C:/data"),
    ],
)
def test_urls_as_they_are_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def passwords() -> list[str]:
    r = random.Random(1)
    odd = ["/", "?", "#", "[", "]", "@", ":", "%", "&", "=", " ", "\u2100", "'", "😀"]
    return [
        f"geh{a}eim{b}nis"
        for a, b in [*itertools.product(odd, ["", "/"]), *zip(odd, r.sample(odd, len(odd)), strict=True)]
    ]


@pytest.mark.parametrize("form", ["postgresql://me:{}@host/db", "postgresql://me:{}@host:1/db?a=b", "s3://me:{}@b/t"])
def test_no_password_is_shown(form: str) -> None:
    for password in passwords():
        for written in (password, quote(password, safe="")):
            url = form.format(written)
            shown = f"{shown_url(url)} {without_secrets(f'{url}, {password}: no port {written}', secrets_of(url))}"
            assert not {"geh", "eim", "nis"} & {part for part in ("geh", "eim", "nis") if part in shown}, (url, shown)


def test_targets_do_not_show_passwords() -> None:
    for password in passwords():
        place = target_of(f"postgresql://me:{password}@host/db#t")
        for shown in (repr(place), str(place), place.name, repr(place.writer(LAYOUT, "me"))):
            assert "geh" not in shown
            assert "eim" not in shown
        with pytest.raises(InvalidArgument, match="has no password in it") as told:
            target_of(f"delta:az://me:{password}@box/t")
        assert "geh" not in str(told.value)


def test_secrets_are_found_in_all_forms() -> None:
    secrets = secrets_of("postgresql://me:a%40bc@host/db?sslpassword=d%23ef&oauth_client_secret=gh")
    said = without_secrets("tried a@bc and a%40bc, d#ef,\n gh at bc@host", secrets)
    assert said == "tried *** and ***, ***, *** at ***@host"


def test_secrets_of_parameters() -> None:
    secrets = secrets_of("http://host/?sig=a1%2Fb&AccessKey=cd&pwd=ef&user=gh#t.x")
    assert without_secrets("a1/b a1%2Fb cd ef gh", secrets) == "*** *** *** *** gh"
