"""Keys of receipts: files that an operator names, the list for others, and the key that a folder has of its own."""

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from parley.receipts.errors import KeyFileError
from parley.receipts.key_files import OWN_KEY, load_own_ring, load_ring
from parley.receipts.keys import create_ring, key_id_of, read_keys, write_key_list, write_pem
from parley.runtime.errors import ConfigurationError
from tests.support.receipts import NEW, OLD, pem_of, ring

OLD_ID, NEW_ID = (key_id_of(each.public_key()) for each in (OLD, NEW))


def files(folder: Path, **contents: str) -> list[str]:
    for name, content in contents.items():
        (folder / f"{name}.pem").write_text(content)
    return [str(folder / f"{name}.pem") for name in contents]


def test_the_first_private_key_signs_and_all_verify(tmp_path: Path) -> None:
    found = load_ring(files(tmp_path, retired=pem_of(OLD, private=False), new=pem_of(NEW)), [])
    assert key_id_of(found.signing.public_key()) == NEW_ID
    assert [(each.id, each.revoked) for each in found.keys] == [(NEW_ID, False), (OLD_ID, False)]
    assert not found.machine_only


def test_a_revoked_key_is_listed_as_such(tmp_path: Path) -> None:
    found = load_ring(files(tmp_path, new=pem_of(NEW), old=pem_of(OLD, private=False)), [OLD_ID])
    assert [(each.id, each.revoked) for each in found.keys] == [(NEW_ID, False), (OLD_ID, True)]


def encrypt_key() -> str:
    form = serialization.PrivateFormat.PKCS8
    lock = serialization.BestAvailableEncryption(b"secret")
    return OLD.private_bytes(serialization.Encoding.PEM, form, lock).decode()


def elliptic() -> str:
    form = serialization.PrivateFormat.PKCS8
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@pytest.mark.parametrize(
    ("contents", "revoked", "why"),
    [
        ({"a": "no key"}, [], "a.pem: there is no key in PEM; make one with: openssl genpkey"),
        ({"a": encrypt_key()}, [], "a.pem: the key is encrypted"),
        ({"a": elliptic()}, [], "a.pem: the key is of another kind than Ed25519"),
        ({"a": pem_of(OLD, private=False)}, [], "none of the files has a private key, which signs"),
        ({"a": pem_of(OLD)}, [OLD_ID], f"the key that signs, {OLD_ID}, is revoked"),
        ({"a": pem_of(OLD)}, [NEW_ID], f"no file has the revoked key {NEW_ID}"),
    ],
)
def test_keys_that_cannot_be_used_are_refused_with_what_to_do(
    contents: dict[str, str], revoked: list[str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"^PARLEY_RECEIPT_KEYS: ") as refused:
        load_ring(files(tmp_path, **contents), revoked)
    assert why in str(refused.value)


def test_a_key_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^PARLEY_RECEIPT_KEYS: .*/x\.pem cannot be read: No such file"
    ):
        load_ring([str(tmp_path / "x.pem")], [])


def test_the_list_of_keys_is_a_json_web_key_set_that_is_read_back() -> None:
    keys = create_ring([NEW, OLD], [OLD_ID]).keys
    listed = write_key_list(keys)
    assert [each.get("revoked", False) for each in json.loads(listed)["keys"]] == [False, True]
    assert {each["kty"] for each in json.loads(listed)["keys"]} == {"OKP"}
    assert list(read_keys(listed.encode())) == list(keys)


def test_a_key_in_pem_is_read_too() -> None:
    assert list(read_keys(pem_of(OLD, private=False).encode())) == list(ring(OLD).keys)
    assert write_pem(ring(OLD).keys[0]) == pem_of(OLD, private=False)


def test_a_list_cannot_give_a_key_the_name_of_another() -> None:
    listed = json.loads(write_key_list(ring(NEW).keys))
    listed["keys"][0]["kid"] = OLD_ID
    assert read_keys(json.dumps(listed).encode())[0].id == NEW_ID


def test_keys_of_other_kinds_in_a_list_are_passed_over() -> None:
    listed = json.loads(write_key_list(ring(OLD).keys))
    listed["keys"].insert(0, {"kty": "RSA", "n": "AQAB", "e": "AQAB"})
    assert [each.id for each in read_keys(json.dumps(listed).encode())] == [OLD_ID]


def test_a_list_without_a_key_of_receipts_is_no_list_of_trusted_keys() -> None:
    for listed in (b'{"keys": []}', b'{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}'):
        with pytest.raises(KeyFileError, match="has no Ed25519 key"):
            read_keys(listed)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys": 1}', b'{"keys": [1]}', b"\xff"])
def test_a_file_without_keys_is_refused(content: bytes) -> None:
    with pytest.raises(KeyFileError, match="neither a list of keys"):
        read_keys(content)


def test_two_who_make_the_key_of_a_folder_at_once_have_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = load_own_ring(tmp_path)
    with monkeypatch.context() as late:  # as one sees it who looked before the other made it
        late.setattr(Path, "exists", lambda _: False)
        assert load_own_ring(tmp_path).keys == made.keys
    assert load_own_ring(tmp_path).keys == made.keys
    assert [each.name for each in tmp_path.iterdir()] == [OWN_KEY]


def test_a_folder_makes_a_key_of_its_own_once_for_its_user_alone(tmp_path: Path) -> None:
    made = load_own_ring(tmp_path)
    assert made.machine_only
    assert stat.S_IMODE((tmp_path / OWN_KEY).stat().st_mode) == 0o600
    assert load_own_ring(tmp_path).keys == made.keys
    assert [each.name for each in tmp_path.iterdir()] == [OWN_KEY]
