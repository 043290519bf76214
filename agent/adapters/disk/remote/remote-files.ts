/** File calls on a remote mount, made by processes with a deadline, one at a time for each mount. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { StatsFs } from 'node:fs'
import { startDeadline } from '../../../../daemon/deadline.ts'
import { VolumeError, type VolumeSilence } from '../../../pods/volumes/volume-store.ts'
import type { Held } from '../inside-volume.ts'
import type { MountPoint } from '../mounts.ts'
import { type ChildEnd, leave, NoAnswer, refuseIfLeft, runBounded, type Start } from './bounded-child.ts'
import { mountTurns } from './mount-turns.ts'

const usualDeadlineMs = 10_000
const releaseMs = 2_000

/** The space of a file system, in blocks of `bsize` bytes. */
export type Space = Pick<StatsFs, 'bsize' | 'blocks' | 'bfree' | 'bavail' | 'files' | 'ffree'>

export type RemoteFiles = {
  /** The kind of the file, as `stat --format=%F` prints it in English; undefined: it does not exist. Links are followed. */
  kindOf(mount: MountPoint, path: string): Promise<string | undefined>
  makeFolder(mount: MountPoint, path: string): Promise<void>
  makeFile(mount: MountPoint, path: string): Promise<void>
  /** As statfs(2). */
  space(mount: MountPoint, path: string): Promise<Space>
  /** Why the mount does not answer, or cannot be used any more; undefined: it answers, also with another error. */
  silence(mount: MountPoint): Promise<VolumeSilence | undefined>
  /** As `holdInside`. */
  hold(mount: MountPoint, root: string, subPath: string): Promise<Held>
}

/** `start`: starts the processes. */
export function remoteFiles(deadlineMs = usualDeadlineMs, start: Start = spawn): RemoteFiles {
  const attempt = async (mount: MountPoint, command: readonly string[]): Promise<ChildEnd> => {
    const end = await runBounded({ key: mount.path, command, deadlineMs, start })
    if (end.code !== 0 && isAbsence(end.stderr)) throw new NoAnswer(end.stderr.trim())
    return end
  }
  const inTurn = mountTurns((mount) => attempt(mount, ['stat', '--', mount.path]))
  const run = (mount: MountPoint, command: readonly string[]): Promise<ChildEnd> =>
    inTurn(mount, () => attempt(mount, command))
  const runOrThrow = async (mount: MountPoint, command: readonly string[]) => {
    const { code, stdout, stderr } = await run(mount, command)
    if (code !== 0) throw new VolumeError(stderr.trim() || `${command[0]} ended with status ${code}`)
    return stdout.trim()
  }
  return {
    async kindOf(mount, path) {
      const { code, stdout, stderr } = await run(mount, ['stat', '--dereference', '--format=%F', '--', path])
      if (code === 0) return stdout.trim()
      if (/: (No such file or directory|Not a directory)$/m.test(stderr)) return undefined
      throw new VolumeError(stderr.trim())
    },
    makeFolder: async (mount, path) => void (await runOrThrow(mount, ['mkdir', '--parents', '--', path])),
    makeFile: async (mount, path) => void (await runOrThrow(mount, ['touch', '--', path])),
    async space(mount, path) {
      const stdout = await runOrThrow(mount, ['stat', '--file-system', '--format=%S %b %f %a %c %d', '--', path])
      const [bsize = 0, blocks = 0, bfree = 0, bavail = 0, files = 0, ffree = 0] = stdout.split(' ').map(Number)
      return { bsize, blocks, bfree, bavail, files, ffree }
    },
    async silence(mount) {
      try {
        const { code, stderr } = await run(mount, ['stat', '--', mount.path])
        return code === 0 || !/Stale file handle/.test(stderr)
          ? undefined
          : { why: replacedText(mount), isReplaced: true }
      } catch (error) {
        if (error instanceof VolumeError) return { why: error.message }
        throw error
      }
    },
    hold: (mount, root, subPath) => inTurn(mount, () => heldByChild(mount.path, { root, subPath }, deadlineMs, start)),
  }
}

/** The kernel's SMB client, and NFS mounts with `softerr`, give up by themselves after a while. */
function isAbsence(stderr: string): boolean {
  return /: (Host is down|Connection timed out|No route to host|Network is unreachable)$/m.test(stderr)
}

/** Containers that have it mounted keep the old folder. */
function replacedText({ path, type, source }: MountPoint): string {
  const mounted = `the folder mounted at ${path} (${type}, ${source})`
  return `${mounted} was removed or replaced on the server: Stale file handle`
}

/**
 * The working directory of a process is a descriptor: what is entered cannot be replaced by a link, and each step is compared with
 * where it must have led. Prints `folder` or `file` and holds it, as working directory or as descriptor 3, until its input ends.
 */
const holdProgram = `
set -euf
cd -P -- "$1"
at=$(pwd -P)
mode=$(stat --format=%a .)
wanted=$(realpath --canonicalize-missing -- "./$2")
case $wanted in "$at"|"$at"/*) ;; *) echo "$2 leads out of the volume" >&2; exit 1;; esac
rest=\${wanted#"$at"}
kind=folder
IFS=/
for part in $rest; do
  [ -n "$part" ] || continue
  at=$at/$part
  if [ -f "./$part" ]; then
    exec 3<"./$part"
    kind=file
    found=$(readlink /proc/self/fd/3)
  else
    [ -e "./$part" ] || mkdir -m "$mode" -- "$part"
    cd -P -- "./$part"
    found=$(pwd -P)
  fi
  [ "$found" = "$at" ] || { echo "$2 leads out of the volume" >&2; exit 1; }
done
echo $kind
read -r end || :
`

type Wanted = { readonly root: string; readonly subPath: string }

async function heldByChild(key: string, { root, subPath }: Wanted, deadlineMs: number, start: Start): Promise<Held> {
  refuseIfLeft(key)
  const child = start('sh', ['-c', holdProgram, 'sh', root, subPath], {
    stdio: 'pipe',
    env: { ...process.env, LC_ALL: 'C' },
  })
  const kind = await new Promise<string>((resolve, reject) => {
    let reported = ''
    const stop = startDeadline(deadlineMs, () => {
      leave(key, child)
      reject(new NoAnswer(`no answer within ${deadlineMs / 1000} s`))
    })
    // First: without a listener the error of a process that cannot be started would end this one.
    child.once('error', (error) => {
      stop()
      reject(error)
    })
    child.once('close', () => {
      stop()
      reject(new VolumeError(`${subPath} cannot be used: ${reported.trim()}`))
    })
    // It has no streams where this process cannot open another file.
    child.stdin?.on('error', () => undefined)
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      reported = (reported + text).slice(0, 1_000)
    })
    child.stdout?.setEncoding('utf8').once('data', (text: string) => {
      stop()
      resolve(text.trim())
    })
  })
  const folder = kind === 'folder'
  return {
    folder,
    link: `/proc/${child.pid}/${folder ? 'cwd' : 'fd/3'}`,
    release: () => ended(key, child),
  }
}

/** In uninterruptible sleep it is left. */
async function ended(key: string, child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await new Promise<void>((resolve) => {
    const stop = startDeadline(releaseMs, () => {
      leave(key, child)
      resolve()
    })
    child.once('exit', () => {
      stop()
      resolve()
    })
  })
}
