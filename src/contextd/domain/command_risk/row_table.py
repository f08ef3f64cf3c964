"""The table that `rows.py` reads."""

from collections.abc import Mapping
from typing import Final

ROWS: Final[Mapping[str, str]] = {
    "deletes resources of the cluster, with what they hold": """
kubectl delete
kubectl apply --prune
kubectl replace --force
helm uninstall|delete|del|un
minikube|k3d|kind|eksctl|ctlptl delete
k3d cluster|node delete
istioctl uninstall
istioctl x uninstall
flux uninstall
argocd app|proj|cluster|repo delete|rm
kubeadm reset
etcdctl del
nomad job stop -purge
nomad system gc
""",
    "stops what runs there": """
kubectl drain
kubectl scale --replicas=0
nomad node drain
""",
    "destroys infrastructure": """
terraform|tofu|terragrunt destroy
terraform|tofu|terragrunt run-all destroy
terraform|tofu|terragrunt apply -destroy|--destroy
terraform|tofu workspace delete
pulumi destroy
pulumi stack rm
cdk|cdktf destroy
serverless|sls remove
sam delete
vagrant destroy
copilot app|env|svc delete
eb terminate
railway down
fly|flyctl apps destroy
fly|flyctl destroy
heroku apps:destroy|pg:reset|addons:destroy
vercel rm|remove
netlify sites:delete
firebase firestore:delete|database:remove|hosting:disable
wrangler delete
ecs-cli down
""",
    "changes infrastructure without asking": """
terraform|tofu|terragrunt apply -auto-approve|--auto-approve
terraform|tofu|terragrunt run-all apply
pulumi up|update --yes|-y
""",
    "makes the tool forget what it manages": """
terraform|tofu|terragrunt state rm
pulumi state delete
""",
    "takes a lock away that another run may still hold": """
terraform|tofu|terragrunt force-unlock
""",
    "removes containers, volumes or images with what they hold": """
docker system|volume|container prune
docker image prune -a|--all
docker rm -f|--force
docker rm -v|--volumes
docker rmi -f|--force
docker image rm -f|--force
docker volume rm|remove
docker stack|service rm
docker swarm leave -f|--force
docker-machine rm
docker-compose down -v|--volumes
docker-compose rm -v
""",
    "deletes data or resources in the cloud": """
aws s3 rb
aws s3 rm --recursive
aws s3 sync --delete
gsutil rb
gsutil rm -r|-R|-a
gsutil rsync -d
bq rm
s3cmd del|rm -r|--recursive
s3cmd rb
mc|mcli rm --recursive|-r
mc|mcli rb --force
rclone delete|purge|sync|deletefile
gh repo|release|gist|secret|run|issue|label|cache|variable delete
gh repo archive
glab repo|project delete
""",
    "deletes what a server keeps": """
kafka-topics --delete
kafka-topics.sh --delete
rabbitmqctl delete_queue|purge_queue|reset|force_reset|delete_vhost|delete_user
nats stream rm|purge|delete
consul kv delete -recurse
vault delete
vault kv delete|destroy
vault kv metadata delete
vault secrets|auth disable
dropdb
dropuser
mysqladmin drop
pg_restore -c|--clean
pg_resetwal|pg_resetxlog
kafka-delete-records|kafka-delete-records.sh
kafka-consumer-groups|kafka-consumer-groups.sh --delete
influx bucket delete
influx delete
""",
    "drops or resets the database of the application": """
rails|rake db:drop|db:reset|db:schema:load|db:purge|db:drop:all|db:migrate:reset
manage.py|django-admin flush|reset_db
artisan migrate:fresh|migrate:refresh|migrate:reset|db:wipe
prisma migrate reset
prisma db push --force-reset|--accept-data-loss
alembic downgrade base
flyway clean
liquibase dropall|drop-all
sequelize|sequelize-cli db:drop
typeorm schema:drop
knex migrate:rollback --all
mix ecto.drop|ecto.reset
supabase db reset
console doctrine:schema:drop|doctrine:database:drop
dotnet ef database drop
drizzle-kit drop
""",
    "takes a published version away from those who use it": """
npm|pnpm|yarn unpublish
yarn npm unpublish
cargo yank
gem yank
dotnet nuget delete
""",
    "removes packages of the system, and what depends on them": """
apt|apt-get|aptitude remove|purge|autoremove|autopurge
yum|dnf|microdnf|tdnf remove|erase|autoremove
zypper remove|rm
apk del
brew|choco|winget|scoop|port uninstall|remove|rm
snap remove
flatpak uninstall|remove
dpkg -r|-P|--remove|--purge
rpm -e|--erase
pacman -R
pacman --remove
emerge -C|--unmerge
xbps-remove
pkg delete|remove
nix-collect-garbage -d|--delete-old
conda|mamba env remove
conda|mamba remove --all
""",
    "erases a disk, a volume or its key": """
cryptsetup luksformat|lukserase|erase|lukskillslot|luksremovekey
lvremove
lvreduce
vgremove
pvremove
zfs|zpool destroy
zfs rollback
btrfs subvolume delete
mdadm --zero-superblock|--stop
nvme format|sanitize
hdparm --security-erase
badblocks -w
diskutil erasedisk|erasevolume|partitiondisk|zerodisk|secureerase|reformat
sgdisk -Z|-z|--zap-all|--zap
efibootmgr -B
""",
    "stops or restarts the machine": """
reboot
halt
poweroff
systemctl poweroff|reboot|halt|kexec|emergency|rescue|isolate
init|telinit 0|6|1
stop-computer
restart-computer
""",
    "removes an account or a group": """
userdel
deluser
groupdel
delgroup
dscl . -delete
""",
    "opens or cuts off the machine's network": """
iptables|ip6tables -F|--flush
iptables|ip6tables -X|--delete-chain
iptables|ip6tables -P
nft flush
ufw reset|disable
firewall-cmd --complete-reload
ip addr|address|route|a|r|link flush|delete|del
""",
    "deletes a record that may be needed": """
crontab -r
atrm
history -c
journalctl --vacuum-size|--vacuum-time|--vacuum-files
gpg|gpg2 --delete-secret-keys|--delete-keys|--delete-secret-and-public-key|--delete-key
keytool -delete
tmutil delete
reg delete
defaults delete
security delete-keychain
gio trash --empty
wevtutil cl
vssadmin delete
wbadmin delete
""",
    "throws away changes of the working copy": """
hg revert -a|--all
hg update|up|checkout|co -C|--clean
hg purge|strip
svn revert -R|--recursive
svn delete|rm|del --force
bzr revert
jj abandon
""",
}

CLOUDS: Final = frozenset(
    "aws gcloud az doctl hcloud linode-cli oci ibmcloud aliyun scw exo civo vultr-cli openstack ovh".split()
)

VALUED: Final[Mapping[str, frozenset[str]]] = {
    "kubectl": frozenset(
        "-n --namespace --context --cluster --kubeconfig -s --server --as --user --token".split()
    ),
    "helm": frozenset("-n --namespace --kube-context --kubeconfig".split()),
    "docker": frozenset("-H --host -c --context -l --log-level --config".split()),
    "docker-compose": frozenset(
        "-f --file -p --project-name --profile --env-file --project-directory --ansi".split()
    ),
    "aws": frozenset("--profile --region --endpoint-url --output --query".split()),
    "terragrunt": frozenset(("--terragrunt-working-dir", "--working-dir")),
    "pulumi": frozenset("-s --stack -C --cwd".split()),
    "systemctl": frozenset("-H --host -M --machine".split()),
    "mysqladmin": frozenset(("-u", "-h", "-P", "-S", "--user", "--host")),
    "argocd": frozenset("--server --auth-token".split()),
    "iptables": frozenset(("-t", "--table")),
    "ip": frozenset(("-n", "--netns")),
    "etcdctl": frozenset("--endpoints --user --password --cert --key --cacert --command-timeout".split()),
    "vault": frozenset(("-address", "-namespace", "-mount")),
}

DRY_RUNS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubectl": ("--dry-run",),
    "helm": ("--dry-run",),
    "aws": ("--dryrun", "--dry-run"),
    "docker-compose": ("--dry-run",),
    "rclone": ("--dry-run", "-n"),
    "npm": ("--dry-run",),
    "pnpm": ("--dry-run",),
    "apt": ("-s", "--simulate", "--dry-run"),
    "apt-get": ("-s", "--simulate", "--dry-run", "--just-print"),
    "dpkg": ("--dry-run", "--simulate", "--no-act"),
    "cargo": ("--dry-run",),
    "gsutil": ("-n",),
    "hg": ("-n", "--dry-run"),
    "pg_resetwal": ("-n", "--dry-run"),
    "pg_resetxlog": ("-n",),
}
