"""The classifier of commands: what destroys, what only looks so, and what holds for any text."""

import base64
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextd.domain.command_risk import Risk, assess

ENCODED = base64.b64encode(b"rm -rf /").decode()

REMOVING = r"""
rm -rf /
rm -fr build
rm -r -f node_modules
rm -R old
rm --recursive --force old
rm --recurs old
rm -vrf ./dist
rm -f *.log
rm *
rm -rf "$BUILD_DIR"/
rm -rf -- -odd
rm -rf $HOME
rm -rf ~
rm -i -r photos
rm --no-preserve-root -rf /
rm ~/.ssh/id_ed25519
rm .env
rm /etc/hosts
rm production.sqlite3
unlink /etc/passwd
rm $(cat list.txt)
rm `git ls-files -o`
rm [a-c].txt
echo > notes.md
exec > /etc/passwd
for f in *.log; do rm "$f"; done
cat list | while read -r f; do rm "$f"; done
shred -u secrets.txt
srm -r secrets
find . -name '*.pyc' -delete
find / -type f -exec rm {} \;
find . -mtime +30 -exec rm -rf {} +
find . -execdir rm -- '{}' +
fd -e tmp -x rm
ls | xargs rm
git ls-files -z --others | xargs -0 rm -f
find . -print0 | xargs -0 -n 10 rm -rf
rsync -a --delete src/ dst/
rsync -av --remove-source-files a/ b/
tar czf logs.tgz logs --remove-files
zip -rm all.zip data
truncate -s 0 app.log
truncate --size=0 app.db
mv data /dev/null
mv /etc /tmp
cp /dev/null app.log
> /etc/passwd
: > important.log
cat /dev/null > app.log
echo x > /etc/resolv.conf
echo secret > .env
echo x > ~/.bashrc
echo x | sudo tee /etc/sudoers
npx rimraf dist
rimraf build
Remove-Item -Recurse -Force C:\data
del /s /q C:\data
rd /s /q C:\data
"""

DISKS = r"""
dd if=/dev/zero of=/dev/sda bs=1M
dd of=disk.img if=/dev/urandom
mkfs.ext4 /dev/sdb1
mkfs -t xfs /dev/nvme0n1
mke2fs /dev/sdb1
wipefs -a /dev/sdb
fdisk /dev/sda
sfdisk /dev/sda < layout
parted /dev/sda mklabel gpt
sgdisk --zap-all /dev/sda
cat image.iso > /dev/sdb
cp image.iso /dev/sdb
tee /dev/nvme0n1 < image
cryptsetup luksFormat /dev/sdb1
lvremove vg0/data
lvremove -f vg0
lvreduce -L 5G vg0/data
zpool destroy tank
zfs destroy -r tank/home
diskutil eraseDisk JHFS+ New /dev/disk2
blkdiscard /dev/nvme0n1
format c:
"""

RIGHTS_AND_PROCESSES = r"""
chmod -R 777 .
chmod 777 -R /var/www
chmod -R a+rwx src
chmod --recursive 000 data
chmod -R 755 /
chown -R nobody /etc
sudo chown -R "$USER" /usr
chgrp -R staff /
kill -9 1
kill -9 -1
kill -KILL 1
pkill -f node
killall python
fuser -k 8080/tcp
ps aux | grep node | awk '{print $2}' | xargs kill -9
shutdown -h now
reboot
sudo poweroff
systemctl reboot
init 0
echo b > /proc/sysrq-trigger
for p in $(pgrep node); do kill "$p"; done
chmod -R a-rwx .
chmod -R o+w,g+w shared
perl -e 'fork while fork'
:(){ :|:& };:
bomb() { bomb | bomb & }; bomb
crontab -r
history -c
userdel -r bob
deluser bob
groupdel staff
iptables -F
sudo iptables --flush
nft flush ruleset
ufw reset
ip addr flush dev eth0
journalctl --vacuum-time=1s
"""

GIT = r"""
git push --force
git push -f origin main
git push -uf origin main
git push --force-with-lease origin feature
git push origin +main
git push origin --delete feature
git push origin :feature
git push --mirror
git reset --hard
git -C /srv/app reset --hard origin/main
git reset HEAD~3 --hard
git clean -fdx
git clean -d --force
git checkout -- .
git checkout .
git checkout -f main
git checkout HEAD -- src/app.py
git restore .
git restore --source=HEAD~2 src
git switch --discard-changes main
git branch -D feature
git branch --delete --force feature
git stash drop
git stash clear
git tag -d v1.0
git filter-branch --tree-filter 'true' HEAD
git filter-repo --path secret --invert-paths
git reflog expire --expire=now --all
git gc --prune=now
git update-ref -d refs/heads/main
git rm -rf src
git worktree remove --force ../feature
git -c alias.x='!rm -rf /' x
git submodule foreach 'git reset --hard'
git rebase --exec 'rm -rf build' main
git bisect run rm -rf build
GIT_SSH_COMMAND='rm -rf x' git fetch
hg update --clean
svn revert -R .
"""

DATABASES = r"""
DROP TABLE users;
drop database shop
TRUNCATE TABLE orders
DELETE FROM users;
delete from users -- where id = 1
UPDATE users SET admin = true
ALTER TABLE users DROP COLUMN email
WITH old AS (SELECT 1) DELETE FROM users
DELETE FROM t WHERE 1=1
UPDATE t SET a = (SELECT b FROM c WHERE c.id = 1)
psql -c 'DROP TABLE users'
psql -h db -U app --command="delete from sessions"
psql "$DATABASE_URL" -c "TRUNCATE audit"
psql <<< 'drop schema public cascade'
psql -c 'DO $$ BEGIN DROP TABLE users; END $$'
psql -c '\! rm -rf x'
mysql -e '/*!50000 DROP TABLE users */'
sqlite3 app.db '.shell rm -rf x'
docker exec -i db psql -c 'truncate users'
echo 'drop table t' | docker exec -i db psql
docker compose exec db psql -c 'drop table t'
docker compose run --rm app rails db:drop
heroku run rails db:reset
redis-cli EVAL "redis.call('flushall')" 0
echo 'DROP TABLE users;' | psql
mysql -e "UPDATE users SET admin=1"
mysql -uroot -p shop -e 'drop database shop'
sqlite3 app.db "DELETE FROM t"
sqlite3 app.db 'drop table t'
redis-cli FLUSHALL
redis-cli -h cache -n 2 flushdb
redis-cli --scan --pattern 'user:*' | xargs redis-cli del
mongosh --eval 'db.dropDatabase()'
mongo shop --eval "db.users.deleteMany({})"
dropdb shop
mysqladmin -u root drop shop
python manage.py flush --no-input
bin/rails db:drop
bundle exec rake db:reset
php artisan migrate:fresh
npx prisma migrate reset
alembic downgrade base
pg_resetwal -f /var/lib/postgresql/data
pg_resetxlog /var/lib/postgresql/data
mysqladmin drop shop
kafka-topics.sh --bootstrap-server k:9092 --delete --topic orders
kafka-topics --delete --topic orders
kafka-consumer-groups.sh --bootstrap-server k:9092 --delete --group g
etcdctl del --prefix /
etcdctl --endpoints https://e:2379 del --prefix /
FLUSHALL
flushdb async
db.dropDatabase()
db.users.drop()
db.users.deleteMany({})
db:drop
migrate:fresh --seed
dotnet ef database drop
"""

CLUSTERS_AND_CLOUDS = r"""
kubectl delete pod web-0
kubectl -n prod delete deployment web
kubectl --context=prod delete ns shop
kubectl drain node-1 --ignore-daemonsets
kubectl apply --prune -f manifests/
kubectl replace --force -f pod.yaml
kubectl scale deployment web --replicas=0
kubectl exec web-0 -- rm -rf /data
kubectl exec -it web-0 -- sh -c 'rm -rf /data'
kubectl get pods -o name | xargs kubectl delete
helm uninstall web
helm -n prod delete web
minikube delete
kubeadm reset -f
terraform destroy
terraform -chdir=infra destroy -auto-approve
terraform apply -auto-approve
terraform apply -auto-approve=true
terraform apply -destroy
gcloud compute ssh web --command='rm -rf /srv'
curl -XDELETE http://localhost:9200/logs
http DELETE :8080/users
kubectl exec deploy/web -c app -- bash -c 'rm -rf /data'
lxc exec box -- rm -rf /data
terraform force-unlock 2f6c
terraform -chdir=infra force-unlock -force 2f6c
vault kv delete -mount secret app
terraform state rm aws_instance.web
pulumi destroy --yes
cdk destroy
docker system prune -a
docker system prune -af --volumes
docker rm -f web
docker container rm --force web
docker volume rm data
docker volume prune
docker compose down -v
docker compose -f prod.yml down --volumes
docker-compose down -v
docker exec db rm -rf /var/lib/postgresql
docker run --rm -v /:/host alpine rm -rf /host/etc
docker run --entrypoint rm alpine -rf /data
podman system prune --all
aws s3 rm s3://bucket --recursive
aws s3 rb s3://bucket --force
aws s3 sync . s3://bucket --delete
aws ec2 terminate-instances --instance-ids i-1
aws --profile prod rds delete-db-instance --db-instance-identifier main
gcloud compute instances delete web
gcloud projects delete shop --quiet
gsutil -m rm -r gs://bucket
az group delete --name shop
doctl compute droplet delete web
gh repo delete acme/app
curl -X DELETE http://localhost:9200/logs
curl -sS --request DELETE https://api.acme.io/users
vault kv destroy secret/app
npm unpublish my-package --force
cargo yank --version 1.0.0
ansible all -m shell -a 'rm -rf /var/cache'
apt-get remove nginx
sudo apt purge -y docker-ce
yum erase httpd
pacman -Rns firefox
brew uninstall postgresql
rpm -e kernel
"""

DISGUISED = rf"""
\rm -rf x
/bin/rm -rf x
/usr/bin/env rm -rf x
"rm" -rf x
'r'm -rf x
r''m -rf x
r\m -rf x
rm$IFS-rf$IFS/
rm${{IFS}}-rf${{IFS}}/
{{rm,-rf,/}}
X=rm; $X -rf x
X=rm; "$X" -rf x
a=r; b=m; $a$b -rf x
a=r; b=m; ${{a}}${{b}} -rf x
cmd=(rm -rf x); "${{cmd[@]}}"
X='rm -rf x'; $X
X='rm -rf x'; eval "$X"
X='rm -rf x'; eval '$X'
export X='rm -rf x'; sh -c '$X'
export CMD='rm -rf x' && sh -c "$CMD"
IFS=,; X=rm,-rf,x; $X
$'\x72\x6d' -rf x
$'\162\155' -rf x
$(echo rm) -rf x
`echo rm` -rf x
$(printf 'r%s' m) -rf x
$(echo mr | rev) -rf x
/bin/r? -rf x
/???/rm -rf x
$TOOL -rf x
command rm -rf x
builtin command rm -rf x
exec rm -rf x
busybox rm -rf x
sudo rm -rf x
sudo -u root -- rm -rf x
doas rm -rf x
env A=1 rm -rf x
env -i rm -rf x
env -S 'rm -rf x'
nice -n 10 rm -rf x
nohup rm -rf x &
time rm -rf x
timeout 10 rm -rf x
timeout -s KILL 10 rm -rf x
setsid rm -rf x
stdbuf -oL rm -rf x
ionice -c 3 rm -rf x
flock /tmp/lock rm -rf x
chroot /mnt rm -rf x
watch -n 1 'rm -rf x'
bash -c 'rm -rf x'
bash -lc "rm -rf x"
sh -c "sh -c 'rm -rf x'"
bash -o pipefail -c 'rm -rf x'
bash -euxo pipefail -c 'rm -rf x'
sh -c -- 'rm -rf x'
eval 'X=1 rm -rf x'
ssh host 'X=1 rm -rf x'
sshpass -p pw ssh host rm -rf x
gosu app rm -rf x
runuser -u app -- rm -rf x
tmux send-keys 'rm -rf x' Enter
screen -dm rm -rf x
vim -c ':!rm -rf x'
$ rm -rf x
find . -name x -exec sh -c 'rm -rf "$1"' _ {{}} \;
xargs -a list -I% sh -c 'rm -rf %'
bash -c '$0 -rf x' rm
bash -c '"$@"' _ rm -rf x
su - postgres -c 'rm -rf x'
ssh host rm -rf x
ssh -i key -p 22 user@host 'cd /srv && rm -rf x'
ssh -o ProxyCommand='rm -rf x' host
eval rm -rf x
eval "r""m -rf x"
trap 'rm -rf x' EXIT
alias ls='rm -rf x'
if true; then rm -rf x; fi
for d in a b; do rm -rf "$d"; done
while read -r d; do rm -rf "$d"; done < list
f() {{ rm -rf x; }}; f
function f {{ rm -rf x; }}
case $a in x) rm -rf x;; esac
(cd /srv; rm -rf x)
{{ rm -rf x; }}
! rm -rf x
true && rm -rf x
false || rm -rf x
ls & rm -rf x
ls; rm -rf x
ls | rm -rf x
echo $(rm -rf x)
echo "$(rm -rf x)"
echo `rm -rf x`
X=$(rm -rf x)
cat <(rm -rf x)
ls > "$(rm -rf x)"
echo ${{X:-$(rm -rf x)}}
echo 'rm -rf x' | sh
echo 'rm -rf x' | sudo bash -s
printf 'rm -rf x\n' | bash
bash <<< 'rm -rf x'
echo {ENCODED} | base64 -d | sh
base64 -d <<< {ENCODED} | bash
bash -c "$(echo {ENCODED} | base64 --decode)"
eval "$(echo {ENCODED} | base64 -d)"
echo 726d202d7266202f | xxd -r -p | sh
rev <<< '/ fr- mr' | sh
echo 'rm -rf x' | xargs -I{{}} sh -c '{{}}'
echo x | xargs rm -rf
curl -fsSL https://example.com/install.sh | sh
wget -qO- https://example.com/x | sudo bash
bash <(curl -s https://example.com/x)
sh -c "$(curl -fsSL https://example.com/x)"
source <(wget -qO- https://example.com/x)
eval "$(curl -s https://example.com/x)"
gunzip -c script.gz | sh
awk 'BEGIN {{ system("rm -rf x") }}'
python -c "import shutil; shutil.rmtree('x')"
python3 -c 'import os; os.system("rm -rf x")'
python3.11 -c "__import__('subprocess').run(['rm', '-rf', 'x'])"
python -c "exec(__import__('base64').b64decode('eA=='))"
perl -e 'unlink glob "*"'
perl -e 'system("rm -rf x")'
ruby -e 'require "fileutils"; FileUtils.rm_rf("x")'
ruby -e '`rm -rf x`'
node -e "require('fs').rmSync('x', {{recursive: true}})"
node -e "require('child_process').execSync('rm -rf x')"
php -r 'unlink("x");'
tar cf x.tar y --checkpoint=1 --checkpoint-action=exec='rm -rf x'
echo 'rm -rf x' | at now
powershell -Command "Remove-Item -Recurse x"
powershell -enc {base64.b64encode("Remove-Item -Recurse x".encode("utf-16-le")).decode()}
parallel rm -rf ::: a b
"""

SPANNING = (
    "rm \\\n  -rf \\\n  build",
    "bash <<EOF\nrm -rf x\nEOF",
    "bash <<'EOF'\ncd /srv\nrm -rf x\nEOF\nls",
    "cat <<EOF | sh\nrm -rf x\nEOF",
    "ssh host <<EOF\nrm -rf x\nEOF",
    "ssh host bash -s <<'EOF'\nrm -rf x\nEOF",
    "sudo -i <<EOF\nrm -rf x\nEOF",
    "cat <<EOF\n$(rm -rf x)\nEOF",
    "python - <<EOF\nimport shutil\nshutil.rmtree('x')\nEOF",
    "psql <<SQL\nDELETE FROM users;\nSQL",
    "ls\nrm -rf x",
    "# tidy up\nrm -rf x",
    "set -e\nif [ -d x ]; then\n  rm -rf x\nfi",
    "BEGIN;\nDELETE FROM users;\nCOMMIT;",
    "rm\u200b -rf x",
    "r\u200bm -rf x",
    "r\u043c -rf x",
    "\uff52\uff4d -rf x",
    "\u0433\u043c -rf x",
    "echo hi \u202e x",
    "RM -rf x",
    "ls >\nrm -rf x",
    "case x in\n  a | $(rm -rf x)) ls ;;\nesac",
    "case x in\n  a | b) rm -rf x ;;\nesac",
)


def lines(*tables: str) -> list[str]:
    return [line for table in tables for line in table.strip().splitlines()]


DESTRUCTIVE = [
    *lines(REMOVING, DISKS, RIGHTS_AND_PROCESSES, GIT, DATABASES, CLUSTERS_AND_CLOUDS, DISGUISED),
    *SPANNING,
]

HARMLESS = [
    *lines(r"""
ls -la
rm file.tmp
rm -f build.log
rm -f a.txt b.txt
rm --help
rm "$TMPFILE"
rm "$(readlink -f link)"
rm .git/index.lock
cp a.env .env.example
echo KEY= > .env.example
rmdir empty
unlink link
trash-put old
git rm --cached .env
git rm old.py
echo "rm -rf /"
echo rm -rf /
echo 'DROP TABLE users;'
printf 'rm -rf %s\n' x
grep -r 'rm -rf' .
grep -rn "DROP TABLE" migrations/
rg 'git push --force' docs
sudo grep -r shutdown /var/log
man rm
which rm
type rm
command -v rm
history | grep rm
cat rm.txt
ls rm
touch rm -- rf
vim rm.md
git commit -m "rm -rf / is bad"
git commit -am 'drop table users'
git log --grep='reset --hard'
git status
git push
git push -u origin main
git push --follow-tags
git push --dry-run --force
git pull --rebase
git fetch --prune
git reset HEAD file.py
git reset --soft HEAD~1
git clean -n
git clean -ndx
git checkout main
git checkout -b feature
git checkout -b feature origin/main
git checkout --track origin/x
git checkout --ours conflict.py
git restore --staged app.py
git switch main
git branch -d merged
git branch -a
git stash
git stash pop
git tag v1.0
git merge --no-ff feature
git rebase main
git diff --check
git submodule update --init --recursive
git config --global user.name "Force Push"
npm run format
npm run clean
npm install
npm ci
npm uninstall lodash
npm cache clean --force
yarn remove left-pad
pip uninstall -y requests
pip install -r requirements.txt
python script.py
python -m pytest -q
python -c "print('rm -rf /')"
python -c "import os; print(os.getcwd())"
python manage.py migrate
python -m pip install --upgrade pip
node -e "console.log(1)"
awk '{print $1}' file
perl -ne 'print if /rm/' file
cargo clean
cargo build --release
make clean
mvn clean install
./gradlew clean build
go clean -cache
docker ps -a
docker images
docker build -t app .
docker run --rm alpine ls
docker run --rm -it -v "$PWD":/app -w /app node:20 npm test
docker exec web ls /data
docker logs -f web
docker stop web
docker compose up -d
docker compose down
docker image prune
docker builder prune
docker system df
kubectl get pods
kubectl describe pod web-0
kubectl logs -f web-0
kubectl apply -f deploy.yaml
kubectl delete pod web-0 --dry-run=client
kubectl delete --help
kubectl rollout restart deployment web
kubectl exec web-0 -- ls /data
kubectl get events --field-selector reason=Killing
helm list
helm upgrade --install web ./chart
helm uninstall web --dry-run
terraform plan
terraform apply
terraform init -upgrade
terraform plan -destroy
aws s3 ls
aws s3 cp file s3://bucket/
aws s3 rm s3://bucket --recursive --dryrun
aws ec2 describe-instances
gcloud compute instances list
az group list
psql -c 'select * from users'
psql -c "DELETE FROM users WHERE id = 7"
psql -c "UPDATE users SET name = 'where' WHERE id = 7"
psql -c "select 'drop table users'"
psql -c "insert into log values ('delete from x')"
psql -c "EXPLAIN DELETE FROM users"
psql -f schema.sql
sqlite3 app.db .schema
sqlite3 app.db 'select count(*) from t'
SELECT * FROM users;
DELETE FROM users WHERE created_at < now() - interval '1 year'
ALTER TABLE users ADD COLUMN age int
ALTER TABLE t ALTER COLUMN c DROP NOT NULL
pg_dump --clean shop > dump.sql
mysqldump --add-drop-table shop > dump.sql
redis-cli get key
pg_resetwal -n /var/lib/postgresql/data
mysqladmin status
kafka-topics.sh --bootstrap-server k:9092 --list
etcdctl get --prefix /
lvs
db.users.find()
db.users.deleteMany({old: true})
db:migrate
alembic upgrade head
php artisan migrate
redis-cli --bigkeys
mongosh --eval 'db.users.find()'
ls > out.txt
ls >> out.txt
make 2>&1 | tee build.log
command > /dev/null 2>&1
echo 1 > result.txt
cat a b > c
sort -o sorted.txt in.txt
cp -r src dst
mv a.txt b.txt
mv build/* dist/
dd if=/dev/sda of=/dev/null bs=1M
fdisk -l
fdisk -l /dev/sda
parted /dev/sda print
wipefs /dev/sda
lsblk
df -h
mount | grep sda
chmod +x run.sh
chmod 644 file
chmod -R u+rwX,go-w src
chown -R me:me ./data
chown -R node:node /app
chmod -R u+rw data
chmod -R g+rX data
chmod a+r file
chown me file
find . -name '*.py'
find . -type f -exec grep -l rm {} +
find . -name x -print
ls | xargs echo
ls | xargs -n 1 basename
rsync -av src/ dst/
rsync -avn --delete src/ dst/
tar czf a.tgz dir
tar xzf a.tgz
zip -r a.zip dir
truncate -s +10M disk.img
kill 1234
kill -9 4321
kill -0 1
pkill -0 node
ps aux | grep kill
systemctl restart nginx
systemctl status shutdown.target
shutdown -c
crontab -l
iptables -L -n
ip addr show
journalctl -u nginx -n 50
apt-get install -y curl
apt-get update
apt list --upgradable
apt-get -s remove nginx
brew install jq
curl -O https://example.com/file
curl -X POST https://example.com/api
curl -s https://example.com | jq .
wget https://example.com/install.sh
bash install.sh
bash -n script.sh
bash -c 'echo rm -rf /'
bash -c "ls && pwd"
sh ./configure --prefix=/usr
ssh host uptime
ssh host 'grep -r "rm -rf" /etc'
ssh-keygen -R host
eval "$(ssh-agent -s)"
eval "$(direnv hook bash)"
source .venv/bin/activate
. ./env.sh
env | sort
export PATH="$HOME/bin:$PATH"
X=rm; echo $X
alias ll='ls -la'
trap 'echo bye' EXIT
sudo systemctl status nginx
sudo -u postgres psql -c 'select 1'
time make -j4
timeout 60 pytest
nohup ./server > server.log 2>&1 &
watch -n 1 kubectl get pods
for f in *.py; do echo "$f"; done
if [ -f x ]; then cat x; fi
while true; do date; sleep 1; done
[[ $a > $b ]] && echo yes
echo $((1 > 2))
test -d build || mkdir build
[ -n "$RM" ] && echo "$RM"
history
docker run -e RM=1 --name rm alpine ls
git checkout feature/rm-rf
npx prettier --write .
npx eslint --fix src
sed -i 's/rm -rf/trash/' script.sh
jq '.scripts.clean = "rm -rf dist"' package.json
code --install-extension ms-python.python
open https://example.com/delete?id=1
gh pr list
gh issue create --title "delete from users"
terraform state list
tmux new -d 'make test'
psql -c "create function f() returns int as 'select 1' language sql"
bash -euo pipefail -c 'make test'
for f in *.log; do gzip "$f"; done
while read -r f; do wc -l "$f"; done < list
vault kv get secret/app
ansible all -m ping
echo "Привет, мир"
echo 'größer → ok'
git commit -m "👩‍👩‍👧 family"
echo "Δx and µs"
"""),
    "",
    "   ",
    "cat <<'EOF' > notes.md\nrm -rf /\nDROP TABLE users;\nEOF",
    "cat <<EOF\nrm -rf /\nEOF",
    "# rm -rf /",
    "ls # rm -rf /",
    "git commit -F - <<EOF\nremove: git push --force\nEOF",
    "psql <<SQL\nSELECT 'DROP TABLE x';\n-- DELETE FROM y\nSQL",
    "BEGIN;\nDELETE FROM users WHERE id = 1;\nCOMMIT;",
    'case "$1" in\n  start | reboot | halt) echo "$1" ;;\n  *t*) echo t ;;\nesac',
    "(make; make test) > build.log",
    'cat "$2" > "$dir/$1"',
    "x=$(( ($a + 1) * $b / 2 ))",
    "cat server.crt server.key > server.pem",
]


@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_what_destroys_is_told_with_a_reason(command: str) -> None:
    risk = assess(command)
    assert risk.destructive, command
    assert risk.reasons
    assert all(reason and len(reason) < 120 for reason in risk.reasons)


@pytest.mark.parametrize("command", HARMLESS)
def test_what_only_looks_so_is_not_called_destructive(command: str) -> None:
    risk = assess(command)
    assert not risk.destructive, risk.reasons


def test_the_tables_are_large_and_have_no_line_twice() -> None:
    assert len(DESTRUCTIVE) >= 120
    assert len(HARMLESS) >= 80
    assert len({*DESTRUCTIVE, *HARMLESS}) == len(DESTRUCTIVE) + len(HARMLESS)


def test_removing_a_named_file_is_not_destructive_and_has_a_note() -> None:
    assert assess("rm file.tmp") == Risk(False, ("removes the files it names; nothing is kept",))


def test_a_reason_says_when_the_whole_system_is_meant() -> None:
    assert any("system folder" in reason for reason in assess("sudo rm -rf /usr").reasons)
    assert any("system folder" in reason for reason in assess('rm -rf "$PREFIX"/').reasons)
    assert not any("system folder" in reason for reason in assess("rm -rf build").reasons)


def test_every_danger_of_a_long_line_is_told_once() -> None:
    risk = assess("rm -rf a; rm -rf b && git push -f")
    assert len(risk.reasons) == 2


def test_letters_of_another_alphabet_and_unseen_characters_are_named() -> None:
    assert any("alphabets" in reason for reason in assess("r\u043c -rf x").reasons)
    assert any("cannot be seen" in reason for reason in assess("r\u200bm x").reasons)
    assert any("direction" in reason for reason in assess("ls \u202e").reasons)


def test_a_pipe_into_a_shell_is_judged_by_what_it_carries() -> None:
    assert not assess("echo ls | sh").destructive
    assert not assess(f"echo {base64.b64encode(b'ls -la').decode()} | base64 -d | sh").destructive
    assert assess("./generate.py | sh").destructive
    assert assess("cat install.sh | sh") == Risk(False, ("runs a script that is not read here",))


def test_what_is_too_tangled_to_judge_counts_as_destructive() -> None:
    assert assess("$(" * 100 + "ls" + ")" * 100).destructive
    assert assess("eval " * 100 + "ls").destructive


def test_the_examples_of_its_page_hold_as_written() -> None:
    page = (Path(__file__).parent.parent / "docs/patterns.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})


# --- what holds for any text ----------------------------------------------------------

relaxed = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
PIECES = st.sampled_from(
    [
        *"'\"`$(){}[]<>|&;\\\n#*?~!=-/ ",
        *(
            "rm",
            "-rf",
            "$(",
            "${",
            "${X:-",
            "$((",
            "<<EOF\n",
            "EOF\n",
            "<(",
            "$'",
            "X=",
            "bash -c ",
            "eval ",
        ),
        *(
            "xargs ",
            "find . -exec ",
            "sudo ",
            "psql -c ",
            "DELETE FROM t",
            "WHERE",
            "git push",
            "\u200b",
            "м",
        ),
        *(
            "python -c ",
            "echo ",
            "| sh",
            "base64 -d",
            "docker run ",
            "kubectl ",
            "\x00",
            "\ud800",
            "case x in ",
        ),
    ]
)
TANGLES = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=60).map("".join)
QUOTINGS = st.sampled_from(
    [
        lambda text: text,
        shlex.quote,
        lambda text: '"' + text.replace('"', '\\"') + '"',
        lambda text: "''" + text,
        lambda text: '""' + text,
        lambda text: "".join(f"\\{letter}" if letter.isalpha() else letter for letter in text),
        lambda text: "$'" + "".join(f"\\x{ord(letter):02x}" for letter in text) + "'",
        lambda text: f"$(echo {shlex.quote(text)})",
    ]
)
WRAPPINGS = st.sampled_from(
    [
        "{}",
        "sudo {}",
        "env A=1 {}",
        "nohup {} &",
        "true && {}",
        "ls; {}",
        "( {} )",
        "{{ {}; }}",
        "if true; then {}; fi",
        "echo $({})",
        "time nice -n 5 {}",
        "command {}",
        "cd /srv\n{}\n",
    ]
)


@relaxed
@given(st.one_of(TANGLES, st.text()))
def test_no_text_makes_it_fail_and_it_answers_the_same_twice(text: str) -> None:
    risk = assess(text)
    assert risk == assess(text)
    assert not risk.destructive or risk.reasons


@relaxed
@given(
    st.sampled_from([("rm", "-rf", "x"), ("git", "push", "--force"), ("kubectl", "delete", "pod", "x")]),
    st.lists(QUOTINGS, min_size=4, max_size=4),
    st.lists(WRAPPINGS, min_size=1, max_size=3),
)
def test_quoting_and_wrapping_do_not_hide_a_destructive_command(
    words: tuple[str, ...], quotings: list[object], wrappings: list[str]
) -> None:
    command = " ".join(quote(word) for quote, word in zip(quotings, words, strict=False))  # type: ignore[operator] # functions of text
    for wrapping in wrappings:
        command = wrapping.format(command)
    assert assess(command).destructive, command


@relaxed
@given(TANGLES)
def test_what_stands_before_a_destructive_line_does_not_hide_it(text: str) -> None:
    """Except an open quote or bracket, and what swallows the rest of the line or the next ones."""
    if not set(text) & set("'\"`(){}<\\#$") and "case" not in text:
        assert assess(f"{text}\nrm -rf x").destructive


@pytest.mark.parametrize(
    "piece",
    [
        "rm ",
        "'",
        "\\'",
        '"',
        "`",
        "$(",
        "${",
        "{a,",
        "(",
        "<<E\n",
        "eval ",
        "sudo ",
        "env ",
        "ssh h ",
        "find -exec ",
        "echo a | ",
        "X=$X$X;",
        "a/",
        "delete from x ",
        "update t set ",
        "psql -c '\n\n\n",
        "python -c 'system(",
        "\u0430",
    ],
)
def test_no_text_sends_the_classifier_astray(piece: str) -> None:
    """Whatever repeats, an end comes; growth worse than the text's would run into the time limit."""
    verdict = assess(piece * (20_000 // len(piece)))
    assert isinstance(verdict.destructive, bool)


def test_what_is_too_long_to_judge_counts_as_destructive() -> None:
    assert assess("echo a; " * 10_000).destructive
