/**
 * Copies of a volume as archives of tar: owners, modes, times, links, hard links, extended attributes, lists of access and holes are kept. The
 * first one has everything; the next has what has changed since, and which names are gone (incremental dumps of GNU tar).
 *
 * The other end may be hostile. tar follows links that an earlier copy has made, and an incremental archive renames what it names, so that as root it
 * would write anywhere. It is extracted where nothing but the folder can be written.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, rename, rm } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'

export type SentCopy = {
  readonly folder: string
  /** What an earlier copy had; undefined: this one has everything. */
  readonly since: string | undefined
  /** Where it is noted what this one has. */
  readonly snapshot: string
  /** Pods write to it: files may change while they are read. */
  readonly isLive: boolean
}

/**
 * $1: the folder; the rest: options of tar. In a mount namespace of its own the root becomes an empty file system, read-only, with the programs of the
 * machine, read-only too, and the folder as /data. /sys is there on each machine, and no pool is below it.
 */
const confinedTar = `
set -eu
root=/sys
mount -n -t tmpfs -o mode=0755,size=64k tmpfs "$root"
for name in bin lib lib32 lib64 libx32 sbin usr; do
  if [ -L "/$name" ]; then
    cp -P "/$name" "$root/$name"
  elif [ -d "/$name" ]; then
    mkdir "$root/$name"
    mount -n --bind "/$name" "$root/$name"
    mount -n -o remount,bind,ro "$root/$name"
  fi
done
mkdir "$root/data"
mount -n --bind "$1" "$root/data"
mount -n -o remount,ro "$root"
shift
exec chroot "$root" nice -n 10 tar --directory=/data "$@"
`

const kept = ['--numeric-owner', '--acls', '--xattrs', '--xattrs-include=*']
const mostText = 2_000

/** Rejects with VolumeError if tar fails, and when `signal` aborts. */
export async function sendCopy(
  { folder, since, snapshot, isLive }: SentCopy,
  send: (piece: Buffer) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const working = `${snapshot}.new`
  await rm(working, { force: true })
  if (since !== undefined) await copyFile(since, working)
  const options = ['--create', '--format=posix', '--sparse', '--one-file-system', '--no-check-device', ...kept]
  // It must not slow down pods.
  const tar = ['nice', '-n', '10', 'tar', ...options, `--listed-incremental=${working}`, `--directory=${folder}`, '.']
  const child = start(tar, signal)
  const ended = endOf(child)
  // It may end before it is waited for.
  ended.catch(() => undefined)
  try {
    for await (const piece of child.stdout ?? []) await orAborted(send(piece as Buffer), signal)
    const { code, errors } = await ended
    // 1: a file changed while it was read (tar(1), RETURN VALUE). It is sent again when its pod has stopped.
    if (code !== 0 && !(isLive && code === 1)) throw new VolumeError(`tar cannot read ${folder}: ${errors}`)
  } finally {
    child.kill('SIGKILL')
    await ended.catch(() => undefined)
  }
  await rename(working, snapshot)
}

/** Rejects with VolumeError if tar fails, and with the error of `next`: then a part is there. */
export async function receiveCopy(
  folder: string,
  next: () => Promise<Buffer | undefined>,
  signal: AbortSignal,
): Promise<void> {
  const options = ['--extract', '--same-permissions', '--listed-incremental=/dev/null', ...kept]
  const child = start(['unshare', '--mount', '--', 'sh', '-c', confinedTar, 'sh', folder, ...options], signal)
  const ended = endOf(child)
  // It may end before it is waited for.
  ended.catch(() => undefined)
  const { stdin } = child
  const nextPiece = () => orAborted(next(), signal)
  // tar has ended: its end has the reason.
  stdin?.on('error', () => undefined)
  try {
    for (let piece = await nextPiece(); piece !== undefined; piece = await nextPiece()) {
      if (child.exitCode !== null || stdin === null || stdin.destroyed) break
      if (!stdin.write(piece)) await orAborted(Promise.race([drained(stdin), ended]), signal)
    }
    stdin?.end()
    const { code, errors } = await ended
    if (code !== 0) throw new VolumeError(`tar cannot write ${folder}: ${errors}`)
  } finally {
    child.kill('SIGKILL')
    await ended.catch(() => undefined)
  }
}

function start([program = '', ...args]: readonly string[], signal: AbortSignal): ChildProcess {
  const env = { ...process.env, LC_ALL: 'C' }
  return spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env, signal, killSignal: 'SIGKILL' })
}

async function endOf(child: ChildProcess): Promise<{ readonly code: number | null; readonly errors: string }> {
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(0, mostText)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, errors: errors.trim().split('\n').slice(0, 3).join('; ') }
}

/** Also when it has ended: its end has the reason. */
async function drained(stdin: Writable): Promise<void> {
  await once(stdin, 'drain').catch(() => undefined)
}

/** The other end may be waited for without end: the session does not end with the order. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const over = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true, signal: over.signal })
  })
  aborted.catch(() => undefined)
  try {
    return await Promise.race([work, aborted])
  } finally {
    over.abort()
  }
}
