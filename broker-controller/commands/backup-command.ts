/** `bramble-controller backup` and `bramble-controller restore`. */
import { createReadStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { rfc3339 } from '../../daemon/clock.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { readOptions } from '../../daemon/process/options.ts'
import { adminSocketPath, requestBackup } from '../admin-socket.ts'
import { type Backup, backUpIdleStore, isIdle } from '../store/sqlite/sqlite-backup.ts'
import {
  authorityFolderName,
  isThere,
  keepBackup,
  makeBackup,
  type Restored,
  restore,
  storeFileName,
} from './backup.ts'
import { failureText } from './command-failure.ts'

export type BackupCommandNeeds = {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly signal: AbortSignal
  readonly nowMs: number
  readonly version: string
  readonly defaults: { readonly dataDir: string }
}

/** `argv`: what follows `backup`. The exit code. */
export async function backupCommand(argv: readonly string[], needs: BackupCommandNeeds): Promise<number> {
  return command(argv, needs, backupHelp, ({ positionals: [target = '.', ...more], dataDir }) => {
    if (more.length > 0) return `Not understood: ${more.join(' ')}`
    return () => backup(target, dataDir, needs)
  })
}

/** `argv`: what follows `restore`. The exit code. */
export async function restoreCommand(argv: readonly string[], needs: BackupCommandNeeds): Promise<number> {
  return command(argv, needs, restoreHelp, ({ positionals: [file, ...more], dataDir, replace }) => {
    if (file === undefined) return 'Say which backup to restore'
    if (more.length > 0) return `Not understood: ${more.join(' ')}`
    return () => bringBack(file, dataDir, replace, needs)
  })
}

type Typed = { readonly positionals: readonly string[]; readonly dataDir: string; readonly replace: boolean }

const options = {
  allowPositionals: true,
  options: {
    'data-dir': { type: 'string' },
    replace: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
} as const

/** `plan`: what to do, or why what was typed is not understood. */
async function command(
  argv: readonly string[],
  { stdout, stderr, signal, defaults }: BackupCommandNeeds,
  help: string,
  plan: (typed: Typed) => string | (() => Promise<string>),
): Promise<number> {
  const read = readOptions(argv, options)
  if (!read.ok) {
    stderr(`${read.why}\n\n${help}`)
    return exitCode.usage
  }
  const { values, positionals } = read.value
  if (values.help) {
    stdout(help)
    return exitCode.fine
  }
  const dataDir = resolve(values['data-dir'] ?? defaults.dataDir)
  const planned = plan({ positionals, dataDir, replace: values.replace })
  if (typeof planned === 'string') {
    stderr(`${planned}\n\n${help}`)
    return exitCode.usage
  }
  try {
    stdout(await planned())
    return exitCode.fine
  } catch (error) {
    stderr(failureText(error, signal))
    return exitCode.failed
  }
}

async function backup(wanted: string, dataDir: string, { nowMs, version, signal }: BackupCommandNeeds) {
  const now = rfc3339(nowMs)
  const isFolder = (await stat(wanted).catch(() => undefined))?.isDirectory() ?? false
  const target = isFolder ? join(wanted, `bramble-controller-${now.replaceAll(':', '')}.backup`) : wanted
  if (await isThere(target)) throw new Error(`${target} is there already: give another name, or remove it`)
  const running = await requestBackup(adminSocketPath(dataDir), signal)
  if (running !== undefined) return told(await keepBackup(running, target), target)

  const store = join(dataDir, storeFileName)
  if (!(await isThere(store)))
    throw new Error(`There is no controller's state in ${dataDir}: say where with --data-dir`)
  const made = await makeBackup(
    { dataDir, backUp: (path, contents) => backUpIdleStore(store, path, contents), now, version },
    `idle-${process.pid}`,
  )
  try {
    return told(await keepBackup(createReadStream(made), target), target)
  } finally {
    await rm(made, { force: true })
  }
}

async function bringBack(file: string, dataDir: string, replace: boolean, { nowMs }: BackupCommandNeeds) {
  const store = join(dataDir, storeFileName)
  if ((await isThere(store)) && !isIdle(store)) {
    throw new Error(`A controller uses ${dataDir}: stop it first (systemctl stop bramble-controller)`)
  }
  const { backup: restored, aside, revocations, otherAuthority } = await restore(file, dataDir, replace, rfc3339(nowMs))
  const before = aside === undefined ? '' : `What was there before is in ${aside}.\n`
  return `Restored ${basename(file)}, made ${restored.made}: ${contents(restored)}.
${before}Start the controller: it asks every node that connects what it runs, so pods made since are learnt back, and nothing is ended
before its node was asked. Pods deleted since come back: delete them again. Tokens deleted since are good again until they
expire: 'bramble-controller token list' shows them.
${revocationsText(revocations)}
${otherAuthority ? otherAuthorityText(dataDir, aside ?? dataDir) : ''}`
}

function otherAuthorityText(dataDir: string, aside: string): string {
  const [kept, restored] = [aside, dataDir].map((folder) => join(folder, authorityFolderName))
  return `The authority that was here is another one than the backup's. Where the fleet went over to it since, nodes do not know that of
the backup: put ${kept} in the place of ${restored} before the start.
`
}

function revocationsText(revocations: Restored['revocations']): string {
  if (revocations === 'kept')
    return 'What the store before had revoked stays revoked: nodes that were deleted since are not let in.'
  const unread =
    revocations === undefined
      ? ''
      : `The list of revoked certificates was not taken over from ${revocations.unreadable}\n`
  return `${unread}Nodes that were revoked or deleted since are let in again: revoke and delete them again.`
}

function told(backup: Backup, target: string): string {
  return `${target}: ${contents(backup)}.
It holds the fleet's authority with its key: whoever has it can be anybody in the fleet. Keep it as you keep the machine.
`
}

function contents({ counts, authority }: Backup): string {
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`)
  return `${[...kinds, `${authority.size} files of the authority`].join(', ')}`
}

const backupHelp = `Usage: bramble-controller backup [FILE|FOLDER] [--data-dir DIR]

Writes the whole state of a controller, running or stopped, into one new file: every object, and the fleet's authority.
The file is read back and checked before it gets its name.

  FILE|FOLDER       where to; in a folder it is named by the time (the present folder)
  --data-dir DIR    the controller's data directory (/var/lib/bramble/controller)
  --help            this text
`

const restoreHelp = `Usage: bramble-controller restore FILE [--data-dir DIR] [--replace]

Puts a backup in the place of a stopped controller's state. Nodes go on running what they run meanwhile, and afterwards tell
what has come since.

  --data-dir DIR    the controller's data directory (/var/lib/bramble/controller)
  --replace         move aside what is there
  --help            this text
`
