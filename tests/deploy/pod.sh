# Runs a program as a pod would: on a root that cannot be written to, as a user without rights, with mounts of its own.
# sh pod.sh ROOT USER MOUNTS BINDS -- PROGRAM...; MOUNTS has lines "SOURCE TARGET", a source of "-" is an empty folder; BINDS are paths.
set -eu
root=$1 user=$2 mounts=$3 binds=$4
shift 5
mount --make-rprivate /
mount -t tmpfs -o mode=755 root "$root"
cp -a /etc "$root/etc"
mkdir -p "$root/proc" "$root/dev" "$root/var/lib/parley"
chown "$user:$user" "$root/var/lib/parley"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
bind() {  # SOURCE TARGET
    if [ -d "$1" ]; then
        mkdir -p "$root$2"
    elif [ ! -e "$root$2" ]; then
        mkdir -p "$root$(dirname "$2")" && : >"$root$2"
    fi
    mount --bind "$1" "$root$2"
    mount -o remount,ro,bind "$root$2"
}
while read -r source target; do
    if [ "$source" = - ]; then mkdir -p "$root$target" && mount -t tmpfs -o "mode=1777,size=256m" empty "$root$target"; fi
done <"$mounts"
for path in $binds; do
    if [ -L "$path" ]; then cp -a "$path" "$root$path"; elif [ -e "$path" ]; then bind "$path" "$path"; fi
done
while read -r source target; do
    if [ "$source" != - ]; then bind "$source" "$target"; fi
done <"$mounts"
mount -o remount,ro "$root"
cd /
exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    env --chdir=/var/lib/parley "$@"
