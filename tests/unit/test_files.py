"""Private files and directories, the secret, and the disks that will not do."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from eray._io import files
from eray._io.secret import ensure_secret, read_secret
from eray.errors import DirectoryError, SecretError


def mode(path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_write_private_is_0600_and_replaces_whole(tmp_path):
    path = tmp_path / "node.json"
    path.write_text("something that was longer")
    path.chmod(0o644)
    files.write_private(str(path), "new")
    assert path.read_text() == "new"
    assert mode(path) == 0o600
    files.write_private(str(path), b"\x00\x01")
    assert path.read_bytes() == b"\x00\x01"
    assert os.listdir(tmp_path) == ["node.json"]


def test_write_private_over_a_link_leaves_its_target(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("theirs")
    link.symlink_to(target)
    files.write_private(str(link), "ours")
    assert target.read_text() == "theirs"
    assert not link.is_symlink()


def test_write_private_where_it_cannot_says_why_and_leaves_nothing(tmp_path):
    with pytest.raises(DirectoryError, match="No such file"):
        files.write_private(str(tmp_path / "none" / "f"), "x")
    (tmp_path / "d").mkdir()
    with pytest.raises(DirectoryError, match="cannot be written"):
        files.write_private(str(tmp_path / "d"), "x")
    assert os.listdir(tmp_path) == ["d"]


@pytest.mark.usefixtures("open_umask")
def test_private_directory_makes_each_level_private(tmp_path):
    path = str(tmp_path / "eray-1" / "17.0")
    assert files.private_directory(path, str(tmp_path)) == path
    assert mode(path) == mode(tmp_path / "eray-1") == 0o700
    assert files.private_directory(path, str(tmp_path)) == path


@pytest.mark.parametrize("bad", [0o755, 0o710, 0o701, 0o777])
def test_private_directory_open_to_others_is_refused(tmp_path, bad):
    (tmp_path / "eray-1").mkdir()
    (tmp_path / "eray-1").chmod(bad)
    with pytest.raises(DirectoryError, match=rf"mode {bad:04o}.*chmod 700"):
        files.private_directory(str(tmp_path / "eray-1" / "17"), str(tmp_path))
    assert not (tmp_path / "eray-1" / "17").exists()


@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
def test_private_directory_that_is_none_is_refused(tmp_path, kind):
    place = tmp_path / "eray-1"
    if kind == "file":
        place.write_text("")
    else:
        (tmp_path / "target").mkdir(mode=0o700)
        place.symlink_to(tmp_path / ("target" if kind == "link" else "none"))
    with pytest.raises(DirectoryError, match="is no directory" if kind == "file" else "symbolic link"):
        files.private_directory(str(place / "17"), str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_private_directory_of_another_user_is_refused(tmp_path):
    (tmp_path / "eray-1").mkdir(mode=0o700)
    os.chown(tmp_path / "eray-1", 12345, 12345)
    with pytest.raises(DirectoryError, match=r"belongs to uid 12345, this is uid 0.*ERAY_TMPDIR"):
        files.private_directory(str(tmp_path / "eray-1" / "17"), str(tmp_path))


def test_private_directory_where_all_may_rename_it_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(DirectoryError, match=rf"{tmp_path}: lets every user.*mode 0777.*chmod \+t.*ERAY_TMPDIR"):
        files.private_directory(str(tmp_path / "eray-1"), str(tmp_path))
    tmp_path.chmod(0o1777)
    files.private_directory(str(tmp_path / "eray-1"), str(tmp_path))


@pytest.mark.parametrize("path", ["", "../elsewhere", "a/../.."])
def test_private_directory_outside_its_base_is_refused(tmp_path, path):
    with pytest.raises(DirectoryError, match="is not below"):
        files.private_directory(str(tmp_path / path), str(tmp_path))


def test_private_directory_without_base_is_refused(tmp_path):
    with pytest.raises(DirectoryError, match="ERAY_TMPDIR"):
        files.private_directory(str(tmp_path / "none" / "17"), str(tmp_path / "none"))


def test_private_directory_by_many_at_once_is_made_once(tmp_path):
    path = str(tmp_path / "a" / "b" / "c")
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: files.private_directory(path, str(tmp_path)), range(32))) == {path}


def test_ensure_secret_is_made_once_and_kept(tmp_path):
    state = str(tmp_path / ".eray")
    first = ensure_secret(state)
    assert len(first) == 32
    assert ensure_secret(state) == first
    assert mode(state) == 0o700
    assert mode(os.path.join(state, "secret")) == 0o600
    assert os.listdir(state) == ["secret"]
    assert ensure_secret(str(tmp_path / "other")) != first


def test_ensure_secret_racing_nodes_agree(tmp_path):
    state = str(tmp_path / ".eray")
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda _: ensure_secret(state), range(64)))) == 1
    assert os.listdir(state) == ["secret"]


@pytest.mark.parametrize("bad", [0o640, 0o604, 0o644, 0o620])
def test_ensure_secret_that_others_can_read_is_refused(tmp_path, bad):
    state = str(tmp_path / ".eray")
    ensure_secret(state)
    os.chmod(os.path.join(state, "secret"), bad)
    with pytest.raises(SecretError, match=f"others .mode {bad:04o}"):
        ensure_secret(state)


@pytest.mark.parametrize(
    "text", [b"", b"abc", b"z" * 64, b"ab" * 31, b"ab" * 33, b"\xff" * 64, b"ab" * 16 + b"\n" + b"ab" * 16]
)
def test_ensure_secret_malformed_is_refused_and_not_shown(tmp_path, text):
    state = tmp_path / ".eray"
    ensure_secret(str(state))
    (state / "secret").write_bytes(text)
    with pytest.raises(SecretError, match=r"malformed.*ERAY_SECRET") as caught:
        ensure_secret(str(state))
    assert not text or text.decode("latin1") not in str(caught.value)


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_ensure_secret_that_is_no_file_is_refused(tmp_path, kind):
    state = tmp_path / ".eray"
    files.private_directory(str(state), str(tmp_path))
    place = state / "secret"
    if kind == "link":
        ensure_secret(str(tmp_path / "other"))
        place.symlink_to(tmp_path / "other" / "secret")
    elif kind == "directory":
        place.mkdir()
    else:
        os.mkfifo(place, 0o600)
    with pytest.raises(SecretError, match="ERAY_SECRET"):
        ensure_secret(str(state))


def test_ensure_secret_in_an_open_directory_is_refused(tmp_path):
    (tmp_path / ".eray").mkdir()
    (tmp_path / ".eray").chmod(0o755)
    with pytest.raises(DirectoryError, match="0755"):
        ensure_secret(str(tmp_path / ".eray"))


def test_read_secret_that_is_not_there_is_none(tmp_path):
    assert read_secret(str(tmp_path / "secret")) is None


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "fuse", "fuse.sshfs", "ceph"])
def test_check_filesystem_network_is_refused(kind):
    with pytest.raises(DirectoryError, match=rf"network file system \({kind}\).*ERAY_TMPDIR"):
        files.check_filesystem("/run/x", lambda path: kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "overlay", "fuseblk", "fuse.fuse-overlayfs", None])
def test_check_filesystem_local_passes(kind):
    files.check_filesystem("/run/x", lambda path: kind)


MOUNTS = """\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:20 / /data rw shared:1 master:2 - nfs4 server:/data rw
22 20 0:21 / /data/local\\040disk rw - xfs /dev/sdb rw
23 20 0:22 / /auto rw - autofs systemd-1 rw
24 23 0:23 / /auto rw - lustre mgs:/fs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/database/x", "ext4"),
        ("/data", "nfs4"),
        ("/data/not/there", "nfs4"),
        ("/data/local disk/x", "xfs"),
        ("/auto/x", "lustre"),
    ],
)
def test_filesystem_type_is_that_of_the_nearest_mount(tmp_path, path, kind):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    assert files.filesystem_type(path, str(table)) == kind


def test_filesystem_type_of_here_is_known_and_without_table_unknown(tmp_path):
    assert files.filesystem_type(str(tmp_path)) is not None
    assert files.filesystem_type("/", str(tmp_path / "none")) is None


def test_free_bytes_is_positive(tmp_path):
    assert files.disk(str(tmp_path)).free_bytes > 0
