"""Reading and writing files outside the project."""

from typing import Final

from escapes.case import Case
from escapes.ground import Ground


def _canary_changed(ground: Ground) -> bool:
    return ground.canary.read_text().strip() != ground.secret


FILES: Final = (
    Case("reads a private key in HOME", "files", "cat @home@/.ssh/id_ed25519"),
    Case("reads cloud credentials in HOME", "files", "cat @home@/.aws/credentials"),
    Case("reads any other file in HOME", "files", "cat @home@/notes.txt"),
    Case("reads another project", "files", "cat @other@/source.txt"),
    Case(
        "reads the system's password file",
        "files",
        "head -c 1 /etc/shadow >/dev/null && [ -s /etc/shadow ] && echo ESCAPED",
    ),
    Case("reads contextd's own keys", "files", "cat @data@/secret.key"),
    Case("reads a temporary file of another program", "files", "cat @temporary_file@"),
    Case("reads by /proc/self/root", "files", "cat /proc/self/root@canary@"),
    Case(
        "reads by the root or folder of another process",
        "files",
        "cat /proc/[0-9]*/root@canary@ /proc/[0-9]*/cwd/../../../outside/canary.txt",
    ),
    Case(
        "reads by a path that climbs out",
        "files",
        "cat ../../../outside/canary.txt /proc/self/cwd/../../../outside/canary.txt",
    ),
    Case("reads by a link of its own", "files", "ln -s @home@/.ssh/id_ed25519 link && cat link"),
    Case("reads by a link that lay there", "files", "cat @project@/shortcut"),
    Case("reads by a hard link", "files", "ln @canary@ @project@/mine && cat @project@/mine"),
    Case(
        "reads by the number of a file",
        "files",
        """
held = bytes.fromhex("@handle@")
mount = os.open("@project@", os.O_RDONLY)
opened = libc.open_by_handle_at(mount, ctypes.create_string_buffer(held, 136), os.O_RDONLY)
print(os.read(checked(opened), 99))
""",
        "python",
    ),
    Case(
        "reads by descriptors that the caller left open",
        "files",
        """
for name in os.listdir("/proc/self/fd"):
    if int(name) > 2:
        try:
            print(os.pread(int(name), 99, 0))
        except OSError:
            pass
        try:
            print(os.read(os.open("@canary@"[1:], os.O_RDONLY, dir_fd=int(name)), 99))
        except OSError:
            pass
""",
        "python",
        way="descriptor",
    ),
    Case(
        "reads after leaving a chroot",
        "files",
        """
os.makedirs("@project@/cage", exist_ok=True)
kept = os.open("/", os.O_RDONLY)
os.chroot("@project@/cage")
os.fchdir(kept)
for _ in range(20):
    os.chdir("..")
os.chroot(".")
print(open("@canary@").read())
""",
        "python",
    ),
    Case("writes a file outside", "files", "echo changed > @canary@", damage=_canary_changed),
    Case(
        "writes by a link that lay there",
        "files",
        "echo changed > @project@/shortcut",
        damage=_canary_changed,
    ),
    Case(
        "writes by a link of its own",
        "files",
        "ln -s @outside@ out && echo changed > out/canary.txt",
        damage=_canary_changed,
    ),
    Case("empties a file outside", "files", "truncate -s 0 @canary@", damage=_canary_changed),
    Case(
        "changes the rights of a file outside",
        "files",
        "chmod 777 @canary@",
        damage=lambda ground: ground.canary.stat().st_mode & 0o7777 == 0o777,
    ),
    Case(
        "changes the times of a file outside",
        "files",
        "touch -d @0 @canary@",
        damage=lambda ground: ground.canary.stat().st_mtime == 0,
    ),
    Case("learns what is there outside", "files", "[ -e @home@/.ssh/id_ed25519 ] && echo ESCAPED"),
    Case("lists a folder outside", "files", "ls -a @home@ | grep -q notes.txt && echo ESCAPED"),
    Case(
        "watches a folder outside (inotify)",
        "files",
        """
every_event = 0xfff
checked(libc.inotify_add_watch(checked(libc.inotify_init()), b"@outside@", every_event))
escaped()
""",
        "python",
    ),
    Case(
        "removes a file outside",
        "files",
        "rm -f @canary@",
        damage=lambda ground: not ground.canary.exists(),
    ),
    Case(
        "moves a file from outside into the project",
        "files",
        "mv @canary@ @project@/mine",
        damage=lambda ground: not ground.canary.exists(),
    ),
    Case(
        "writes into the system's folders",
        "files",
        """
for path, device, inode in @folders@:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        there = os.fstat(opened)
        if (there.st_dev, there.st_ino) == (device, inode):
            # A file without a name: it proves the right, and is gone with its descriptor.
            os.close(os.open(path, os.O_TMPFILE | os.O_WRONLY))
            escaped()
    except OSError as error:
        print(error, file=sys.stderr)
""",
        "python",
    ),
)
