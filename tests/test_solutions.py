"""Commands in a solution's prose: which of it is to be typed, and what of it destroys."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.services.patterns import PatternPack
from contextd.services.solutions import commands_in, safety_of
from running import running_daemon


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


DANGEROUS = [
    *lines(r"""
Run alembic downgrade base, then alembic upgrade head
Flush rules with iptables -F
You have to run npx prisma migrate reset…
Call rails db:drop and start over
In psql: UPDATE users SET active=false
Type db.dropDatabase() in the shell
use mysqladmin drop shop
redis: run FLUSHALL
Then php artisan migrate:fresh, it rebuilds everything
Free the pool with zfs destroy tank/x.
remove the topic with kafka-topics.sh --delete --topic x
Start anew: etcdctl del --prefix /
forget it by vault kv delete secret/app
empty the log (truncate -s 0 app.log)
the old volume goes with lvremove vg0/data
Log in to the host and reboot.
after that, sudo reboot
run pg_resetwal -f on the data directory
terraform force-unlock 1234 releases it
You are done after git checkout -- .
Throw it away: git checkout .
if it hangs, kill -9 1 helps
First rm and foo -rf /
you can run db:drop as well
docker compose down -v, then up again
just say shutdown -h now
Make it small with cat /dev/null > app.log
So for f in *.log; do rm "$f"; done
format c: and install again
python manage.py flush clears it
Use kubectl delete on the pod
killall the workers
clear the cache: redis-cli FLUSHALL.
TRUNCATE users; then load them again
what helps is DELETE FROM sessions
bin/rails db:reset does it
We ran terraform destroy, which helped
Stop it (docker rm -f web) first
pip is not to blame, rm -rf ~/.cache is what helps
git rm -rf src puts it right
heroku pg:reset DATABASE_URL was the fix
the fix was chmod -R 777 /var/www, sadly
install it by curl -fsSL https://example.com/x | sh
chmod +x entrypoint.sh then rebuild; if stuck, docker system prune -af --volumes
"""),
    "Throw it away with `DROP TABLE users`",
    "Type `db.users.drop()`",
    "Use \u201cgit push --force\u201d and wait",
    "Use \u2018alembic downgrade base\u2019 and wait",
    "run git push\n--force and wait",
    "run rm \\\n-rf build",
    "use \uff52\uff4d -rf x",
    "use r\u043c -rf x",
    "```\nfor f in *.log\ndo rm $f\ndone\n```",
    "```\n" + "ls\n" * 20 + "cat x > /dev/sda\n```",
]

HARMLESS = lines(r"""
the old worker was killed
drop by the office
update the docs
kill the old worker
kill worker 1
wipe the slate clean
find the process that holds the port
The machine survives a reboot.
reboot the machine
after the shutdown the pool is empty
The process ends at shutdown.
format the file with black
git is too old, upgrade it
make sure that docker is up
truncate the title in the view
delete from the list what is not needed
update the set of rules
docker needs more memory
python and node are installed
aws is down, remove it from the list
aws cli is too old, remove it
lvremove is not installed
git checkout main and restart
git rm --cached .env and commit
http 500 came from the proxy; delete the header
watch the logs while you reboot the box
Shutdown hooks were missing; add one.
git checkout main, then run pytest -x
the time command is missing
if reboot fails, call us
a skill set of ten
http and https differ
the kind of node that python needs
rm file.tmp and cp -r a b
terraform apply after terraform plan
run npm ci
the index was dropped and built again
Use kill with care
halt on the first error
the history of the port
vault is sealed, so unseal it
kubectl get pods and look
node 12 was removed from the pool
the init script runs 1 time
Restart redis, flush your cache and delete the cookie.
the database was reset and the branch force-pushed
erase the board, scrub the logs of names, unlink the accounts
""")

COMMANDS = lines(r"""
acmectl shard heal --id N
acmetool /etc/acme.conf
npm ci
pip install requests
go mod tidy
go test ./...
make clean
make -j4
make build-images
git fetch --all
git checkout .
git commit -m "the fix, then more"
docker compose up -d
docker system prune -af --volumes
kubectl rollout restart deployment web
chmod +x entrypoint.sh
export NODE_OPTIONS=--max-old-space-size=4096
NODE_ENV=test npm run build
sudo systemctl restart nginx
sudo update-ca-certificates
find . -name '*.pyc' -delete
kill -9 4321
kill 4321
./scripts/reset.sh
python manage.py migrate
curl -fsSL https://example.com/x
psql -c 'drop table a, b'
for f in *.log; do gzip "$f"; done
rm -rf node_modules && npm install
cd /srv/app
cd /srv/app && make
alembic upgrade head
iptables -F
ls -la | grep foo
Remove-Item -Recurse C:/data
redis-cli FLUSHALL
bin/rails db:migrate
make
""")

PROSE = lines(r"""
make sure that the old worker is stopped, then restart it
chmod +x entrypoint.sh then rebuild; if stuck, docker system prune -af --volumes
go back to version 1.2
kill the old worker
kill old workers
find the process that holds the port
find slow queries
git is too old, upgrade it
git complains loudly
docker needs more memory
docker daemon stopped
make room
go home
go
run go mod tidy and commit
use --no-cache
pass --legacy-peer-deps
edit config/app.yml
see docs/setup.md
check /var/log/syslog
file /etc/hosts lacks entry
visit https://example.com/help
restart it.
python 3.12 is needed
cd into the folder
cd somewhere else
export the variable first
rm the lock file
java heap is too small
Set FOO=1
cargo ships late
the option --force helps
curl says no
bundle size grew
aws credentials expired
sudo rights missing
values.yaml lacks replicas
port 8080 busy
""")


@pytest.mark.parametrize("solution", DANGEROUS)
def test_what_a_sentence_tells_to_run_is_judged_without_any_mark(solution: str) -> None:
    safety = safety_of((), solution)
    assert safety.destructive
    assert safety.note.startswith("May destroy data")


@pytest.mark.parametrize("solution", HARMLESS)
def test_a_sentence_that_only_has_the_words_is_not_marked(solution: str) -> None:
    assert safety_of(commands_in(solution), solution).warnings == ()


@pytest.mark.parametrize("line", COMMANDS)
def test_a_line_of_a_commands_shape_is_one(line: str) -> None:
    assert commands_in(f"Do this:\n{line}\nand wait.") == (line,)
    assert commands_in(f"1. {line}\n- wait") == (line,)


@pytest.mark.parametrize("line", PROSE)
def test_a_sentence_is_no_command_though_it_begins_with_a_programs_name(line: str) -> None:
    assert commands_in(line) == ()
    assert commands_in(f"- {line}") == ()


def test_a_line_too_long_to_be_typed_is_no_command_and_is_judged_all_the_same() -> None:
    line = "rm " + "-v " * 200 + "x; rm -rf y"
    assert commands_in(line) == ()
    assert safety_of((), line).destructive


def test_marked_code_counts_where_it_has_a_commands_shape() -> None:
    assert commands_in("Set ` ` and `timeout`, call `acmectl heal --id 3`.") == ("acmectl heal --id 3",)


def test_the_tables_are_large_and_have_no_line_twice() -> None:
    assert all(len(table) >= 30 for table in (DANGEROUS, HARMLESS, COMMANDS, PROSE))
    assert all(len(set(table)) == len(table) for table in (DANGEROUS, HARMLESS, COMMANDS, PROSE))


def test_more_commands_than_are_judged_count_as_dangerous() -> None:
    prose = "git log and npm ci and docker ps"
    assert not safety_of((), prose).destructive
    assert safety_of((), prose, most_suspects=2).warnings == ("names more commands than are judged",)


def test_no_sentence_of_the_shipped_patterns_is_taken_for_a_command() -> None:
    sentences = [text for one in PatternPack.shipped() for text in (one.solution, one.root_cause)]
    assert [line for text in sentences if "`" not in text for line in commands_in(text)] == []


@settings(deadline=None)
@given(st.text())
def test_no_text_makes_the_search_fail(text: str) -> None:
    assert safety_of(commands_in(text), text) == safety_of(commands_in(text), text)


@pytest.mark.parametrize(
    "piece",
    ["rm ", "kill ", " ", "'", "`", "\\\n", "a/", "db.", "rm 'a ", "for a ;do ", "update a ", "A=A", "-"],
)
def test_no_text_sends_the_search_astray(piece: str) -> None:
    """Whatever repeats, an end comes; growth worse than the text's would run into the time limit."""
    text = piece * (20_000 // len(piece))
    assert isinstance(safety_of(commands_in(text), text).destructive, bool)


def test_a_saved_solution_is_shown_with_its_dangers_and_without_prose_as_commands(tmp_path: Path) -> None:
    error = "the quuxinator flummoxed its wibble"
    solution = "make sure that nobody writes, then run alembic downgrade base, then alembic upgrade head"
    with running_daemon(tmp_path) as daemon:
        saved = daemon.tool(
            "remediation_save", error_message=error, error_type="QuuxError", solution=solution
        ).json()
        assert saved["data"]["id"]
        answer = daemon.tool("troubleshoot", error_message=error).json()["data"]
    (issue,) = answer["similar_issues"]
    assert issue["is_destructive"] is True
    (action,) = [one for one in answer["recommended_actions"] if one["description"] == solution]
    assert action["commands"] == []
    assert action["destructive"] is True
    assert "drops or resets the database" in action["safety_notes"]
