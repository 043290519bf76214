/**
 * A folder with backups of volumes: on a disk of this machine, or of a NAS that is mounted there. Nothing in it is overwritten: a backup is written
 * below a name of its own, read again, and gets its name when it is whole. The folder has an identity, so that a disk which is not mounted is an
 * error and not an empty folder. Symbolic links in it are not followed.
 */
import { randomUUID } from 'node:crypto'
import {
  archiveFile,
  type BackupManifest,
  isBackupName,
  longestManifest,
  manifestFile,
  readManifest,
} from '../../../../api/backups/backup-manifest.ts'
import { folderProblem } from '../../../../api/backups/backup-target.ts'
import { decode } from '../../../../api/decode.ts'
import { text as anyText, object } from '../../../../api/schema.ts'
import { parseJson } from '../../../../api/text/json.ts'
import type { Pieces, SendPiece } from '../../../pods/volumes/volume-backups.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { runInFolder } from './folder-scripts.ts'

const markFile = 'bramble-backups.json'
const MarkSchema = object({ id: anyText })
const mostMark = 1_024
const mostListed = 2_000
/** A disk that is full of dirty pages, or slow, flushes them for minutes. */
const flushMs = 30 * 60_000
/** A disk reads at least so much in a second. */
const slowestBytes = 2 * 2 ** 20

const codes = { missing: 10, absent: 11, notOwn: 12, differs: 13, taken: 14 } as const
/** `$here` is the folder without links in its path. */
const enter = `cd -P -- "$1" 2>/dev/null || exit ${codes.missing}; here=$PWD; `
const below = (name: string) => `cd -P -- ${name} && [ "$PWD" = "$here"/${name} ] || exit ${codes.notOwn}; `

const scripts = {
  // An empty one is what a power cut can leave of a new one.
  mark: `${enter}[ -s ${markFile} ] && [ -f ${markFile} ] && [ ! -L ${markFile} ] || exit ${codes.absent}; head -c ${mostMark} ${markFile}`,
  /** Under another name (noclobber: with O_EXCL) until it is whole: this script can end at any point. */
  makeMark: `${enter}set -C; new=.${markFile}-$3; printf '%s\\n' "$2" > "$new" && sync "$new" || exit 1
    if [ ! -L ${markFile} ] && [ ! -s ${markFile} ]; then rm -f -- ${markFile}; fi
    mv -nT -- "$new" ${markFile}; sync . 2>/dev/null; rm -f -- .${markFile}-*; [ -s ${markFile} ]`,
  /** Earlier attempts of this volume go first. */
  write: `${enter}for old in ".part-$2-"*; do if [ -e "$old" ] || [ -L "$old" ]; then rm -rf -- "$old"; fi; done
    part=.part-$2-$3; mkdir -m 700 -- "$part" || exit 1; ${below('"$part"')}
    exec dd of=${archiveFile} bs=64k iflag=fullblock oflag=nofollow conv=excl,fsync status=none`,
  seal: `${enter}part=.part-$2-$3; ${below('"$part"')}
    [ -f ${archiveFile} ] && [ ! -L ${archiveFile} ] && [ "$(sha256sum < ${archiveFile})" = "$4  -" ] || exit ${codes.differs}
    dd of=${manifestFile} bs=64k iflag=fullblock oflag=nofollow conv=excl,fsync status=none || exit 1
    sync . 2>/dev/null || :; cd "$here"; if [ -e "$5" ] || [ -L "$5" ]; then exit ${codes.taken}; fi
    mv -T -- "$part" "$5" && { sync . 2>/dev/null || :; }`,
  drop: `${enter}rm -rf -- ".part-$2-$3"`,
  list: `${enter}for name in *; do
      case $name in *[!A-Za-z0-9._-]*) continue;; esac
      [ -d "$name" ] && [ ! -L "$name" ] && [ -f "$name/${manifestFile}" ] && [ ! -L "$name/${manifestFile}" ] || continue
      printf '%s\\t' "$name"; head -c ${longestManifest} -- "$name/${manifestFile}" | tr -d '\\n'; echo
    done`,
  manifest: `${enter}[ -d "$2" ] && [ ! -L "$2" ] && [ -f "$2/${archiveFile}" ] || exit ${codes.absent}
    [ -f "$2/${manifestFile}" ] && [ ! -L "$2/${manifestFile}" ] || exit ${codes.absent}; head -c ${longestManifest} "$2/${manifestFile}"`,
  fetch: `${enter}name=$2; ${below('"$name"')} exec dd if=${archiveFile} bs=64k iflag=nofollow status=none`,
  /** One that is being removed is not a backup from the start. */
  remove: `${enter}shift; for name in "$@"; do mv -T -- "$name" ".old-$name" || exit 1; done
    for old in .old-*; do if [ -e "$old" ] || [ -L "$old" ]; then rm -rf -- "$old"; fi; done`,
}

/** Which volume it is of, and which attempt. */
export type PartOf = { readonly uid: string; readonly id: string }

export interface BackupFolder {
  /** Its identity. Throws VolumeError if it is not the one that is expected; without one it is given one if it has none. */
  open(expected: string | undefined): Promise<string>
  write(part: PartOf, next: Pieces): Promise<void>
  /** The archive is read again, gets this manifest, and the backup its name. */
  seal(part: PartOf, manifest: { readonly text: string; readonly value: BackupManifest }): Promise<void>
  /** Nothing of the attempt is left. */
  drop(part: PartOf): Promise<void>
  /** undefined: it has no whole backup of this name. */
  manifest(name: string): Promise<{ readonly manifest: BackupManifest; readonly text: string } | undefined>
  list(): Promise<readonly { readonly manifest: BackupManifest; readonly text: string }[]>
  fetch(name: string, send: SendPiece): Promise<void>
  remove(names: readonly string[]): Promise<void>
}

/** Throws VolumeError if it cannot be the path of one. What is done in it ends with `signal`. `path`: its name in messages. `at`: where it is. */
export function backupFolder(path: string, signal: AbortSignal, at = path): BackupFolder {
  const problem = folderProblem(at)
  if (problem !== undefined) throw new VolumeError(problem)

  const run = async (
    name: keyof typeof scripts,
    args: readonly string[],
    streams: { readonly input?: Pieces; readonly output?: SendPiece; readonly stallMs?: number } = {},
  ): Promise<number> => {
    const script = { folder: path, script: scripts[name], args: [at, ...args], ...streams }
    const { code, errors } = await runInFolder(script, signal)
    if (code === 0 || code === codes.absent) return code
    throw new VolumeError(failure(path, code, errors))
  }

  const readMark = async (): Promise<string | undefined> => {
    const { output, text } = collected(mostMark)
    const code = await run('mark', [], { output })
    if (code === codes.absent) return undefined
    const mark = decode(MarkSchema, parseJson(text()))
    if (!mark.ok || !/^[\w-]{8,64}$/.test(mark.value.id))
      throw new VolumeError(`${path}/${markFile} is not the identity of a folder with backups`)
    return mark.value.id
  }

  return {
    async open(expected) {
      const found = await readMark()
      if (found !== undefined && (expected === undefined || found === expected)) return found
      if (expected === undefined) {
        const id = randomUUID()
        await run('makeMark', [JSON.stringify({ id }), id])
        const made = await readMark()
        if (made !== undefined) return made
        throw new VolumeError(`${path}/${markFile} cannot be made: something else has its name`)
      }
      const there = found === undefined ? `it has no ${markFile}` : 'another one is there'
      throw new VolumeError(
        `${path} is not the folder of the earlier backups: ${there}. Mount its disk, or give the folder of the new one again with --to`,
      )
    },
    async write({ uid, id }, next) {
      await run('write', [safe(uid), safe(id)], { input: next, stallMs: flushMs })
    },
    async seal({ uid, id }, { text, value }) {
      const name = ownName(value.name)
      let isGiven = false
      const input = async () => {
        if (isGiven) return undefined
        isGiven = true
        return Buffer.from(text)
      }
      const stallMs = flushMs + (value.bytes / slowestBytes) * 1000
      await run('seal', [safe(uid), safe(id), value.sha256, name], { input, stallMs })
    },
    async drop({ uid, id }) {
      await run('drop', [safe(uid), safe(id)])
    },
    async manifest(name) {
      const { output, text } = collected(longestManifest)
      if ((await run('manifest', [ownName(name)], { output })) === codes.absent) return undefined
      const manifest = readManifest(name, text())
      return manifest && { manifest, text: text() }
    },
    async list() {
      const { output, text } = collected(mostListed * longestManifest)
      await run('list', [], { output })
      return text()
        .split('\n')
        .flatMap((line) => {
          const [name = '', written = ''] = line.split('\t')
          const manifest = isBackupName(name) ? readManifest(name, written) : undefined
          return manifest === undefined ? [] : [{ manifest, text: written }]
        })
    },
    async fetch(name, send) {
      await run('fetch', [ownName(name)], { output: send })
    },
    async remove(names) {
      await run('remove', names.map(ownName), { stallMs: flushMs })
    },
  }
}

/** What is longer is cut. */
function collected(most: number) {
  const pieces: Buffer[] = []
  let bytes = 0
  return {
    text: () => Buffer.concat(pieces).toString(),
    async output(piece: Buffer) {
      if (bytes < most) pieces.push(piece)
      bytes += piece.length
    },
  }
}

function failure(path: string, code: number | null, errors: string): string {
  if (code === codes.missing)
    return `the folder ${path} does not exist: mount its disk, or make the folder. It is not made by itself`
  if (code === codes.notOwn) return `a folder of the backup in ${path} is missing, or is a link. ${errors}`
  if (code === codes.differs) return `what was written to ${path} is not what is read there: check its disk`
  if (code === codes.taken) return `${path} has a backup of this name already`
  if (/No space left on device|Disk quota exceeded/.test(errors))
    return `${path} is full: remove backups, keep fewer, or give another folder`
  return `${path} cannot be used: ${errors === '' ? `the script ended with ${code}` : errors}`
}

function ownName(name: string): string {
  if (!isBackupName(name)) throw new VolumeError(`${JSON.stringify(name)} is not the name of a backup`)
  return name
}

function safe(id: string): string {
  if (!/^[\w-]{1,128}$/.test(id)) throw new VolumeError(`Not a name for a file: ${JSON.stringify(id)}`)
  return id
}
