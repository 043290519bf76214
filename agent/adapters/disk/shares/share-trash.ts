/**
 * Deleted folders of claims on a share: `.bramble/trash/UID` there has the folder as `data`, and in `volume.json` what it was. It gets there by a
 * rename. The agent does not empty this trash: it is the owner's.
 */
import { createHash } from 'node:crypto'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import type { MountedShare } from '../../../pods/volumes/share-mount.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { runBounded } from '../remote/bounded-child.ts'

/** Which volumes were made with a folder, below `.bramble/folders` on the share: a folder cannot be a name of a file. */
export function folderIndex(folder: string): string {
  return createHash('sha256').update(folder).digest('hex').slice(0, 32)
}

/**
 * $1: the share, $2: the folder, $3: the uid of the volume, $4: the index of the folder, $5: trash or delete, $6: what it was. Every step is the
 * working directory, and compared with where it must have led: pods that have the whole share could put a link there. Only a folder that was
 * made for this volume is moved, and of its file system only, as mv(1) would copy it to another one. An end in between is completed by the next call.
 */
const program = `
set -euf
root=$1 folder=$2 uid=$3 index=$4 action=$5 was=$6
IFS=/
fail() { echo "$1" >&2; exit 1; }
enter() {
  cd -P -- "$root" || fail "the share is not mounted"
  at=$(pwd -P)
  for part in $1; do
    [ -e "./$part" ] || [ -L "./$part" ] || return 1
    [ ! -L "./$part" ] && [ -d "./$part" ] || fail "$1 is not a folder of the share"
    cd -P -- "./$part"
    at=$at/$part
    [ "$(pwd -P)" = "$at" ] || fail "$1 leads out of the share"
  done
}
own() {
  enter "$1" || fail "$1 is missing on the share"
  [ -d "./$2" ] || mkdir -m 700 -- "./$2"
  enter "$1/$2"
}
enter ".bramble/volumes/$uid" || exit 0
others=
if enter ".bramble/folders/$index"; then others=$(ls -A | grep -vxF -- "$uid" || :); fi
parent=
case $folder in */*) parent=\${folder%/*};; esac
name=\${folder##*/}
if [ -z "$others" ] && enter "$parent" && { [ -e "./$name" ] || [ -L "./$name" ]; }; then
  [ ! -L "./$name" ] && [ -d "./$name" ] || fail "$folder is not a folder of the share"
  device=$(stat --format=%d -- "./$name")
  exec 4<.
  own .bramble trash
  own .bramble/trash "$uid"
  [ "$(stat --format=%d .)" = "$device" ] || fail "$folder is on another file system than the share"
  printf '%s\\n' "$was" >./volume.json
  mv -T -- "/proc/self/fd/4/$name" ./data
  exec 4<&-
fi
if [ "$action" = delete ] && enter .bramble/trash && [ -d "./$uid" ]; then rm -rf --one-file-system -- "./$uid"; fi
for list in ".bramble/folders/$index" .bramble/volumes; do
  if enter "$list" && [ -d "./$uid" ]; then rmdir -- "./$uid"; fi
done
`

/** Time for one order. A large folder takes longer: the next order continues. */
const deadlineMs = 60_000

/** Throws VolumeError if it cannot be. `path`: where the share is mounted. */
export async function discardOnShare(path: string, order: NodeVolumeOrder, share: MountedShare): Promise<void> {
  const { uid, volume, folder, claim, claimUID, capacity, storageClass, kind } = order
  const was = JSON.stringify({ uid, volume, folder, claim, claimUID, capacity, storageClass })
  const action = kind === 'share-delete' ? 'delete' : 'trash'
  const args = [path, folder, uid, folderIndex(folder), action, was]
  const where = `the folder ${folder} of ${share.path} on ${share.server}`
  const end = await runBounded({
    key: path,
    command: ['sh', '-c', program, 'sh', ...args],
    deadlineMs,
    ownGroup: true,
  }).catch((cause: unknown) => {
    throw new VolumeError(`${where} is not deleted yet: the server is slow, or the folder is large`, { cause })
  })
  if (end.code !== 0) throw new VolumeError(`${where} cannot be deleted: ${end.stderr.trim().slice(0, 500)}`)
}
