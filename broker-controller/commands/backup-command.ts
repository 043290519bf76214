/** `bramble-controller backup` and `bramble-controller restore`. */
import { createReadStream, createWriteStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { rfc3339 } from '../../daemon/clock.ts'
import type { EtcdFlags, EtcdSettings } from '../configuration/etcd-configuration.ts'
import { type BackupSource, isThere, keepBackup, makeBackup, type Restored, restore } from '../data-directory/backup.ts'
import { lockBackup, readPassphrase } from '../data-directory/backup-secrets.ts'
import { authorityFolderName, secretsKeyName, storeFileName } from '../data-directory/data-directory.ts'
import { type Backup, backUpIdleStore, isIdle } from '../store/sqlite/sqlite-backup.ts'
import type { BackupContents } from '../store/store.ts'
import { etcdFlagsOf } from './command-line.ts'
import { backupRow, restoreRow } from './command-table.ts'
import { adminSocketPath, requestBackup, requestSettings } from './connection/admin-socket.ts'
import { etcdSource, etcdTarget } from './etcd/etcd-backup-parts.ts'
import { givenEtcdSettings, refuseLonePrefix, runningEtcdSettings } from './etcd/etcd-options.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

export type BackupCommandNeeds = CommandOutput & { readonly nowMs: number; readonly version: string }

/** `argv`: what follows `backup`. The exit code. */
export async function backupCommand(argv: readonly string[], needs: BackupCommandNeeds): Promise<number> {
  return runCommand(backupRow, argv, needs, ({ args: [target = '.'], values }) => () => {
    const { 'data-dir': dataDir, 'passphrase-file': passphraseFile, config } = values
    return backup(target, { dataDir: resolve(dataDir), passphraseFile, config, flags: etcdFlagsOf(values) }, needs)
  })
}

/** `argv`: what follows `restore`. The exit code. */
export async function restoreCommand(argv: readonly string[], needs: BackupCommandNeeds): Promise<number> {
  return runCommand(restoreRow, argv, needs, ({ args: [file = ''], values }) => () => {
    return restoreBackup(file, resolve(values['data-dir']), values, needs)
  })
}

type BackupOptions = {
  readonly dataDir: string
  readonly passphraseFile: string | undefined
  readonly config: string | undefined
  readonly flags: EtcdFlags
}

async function backup(wanted: string, options: BackupOptions, needs: BackupCommandNeeds): Promise<string> {
  const { dataDir, passphraseFile, config, flags } = options
  const now = rfc3339(needs.nowMs)
  const isFolder = (await stat(wanted).catch(() => undefined))?.isDirectory() ?? false
  const target = isFolder ? join(wanted, `bramble-controller-${now.replaceAll(':', '')}.backup`) : wanted
  if (await isThere(target)) throw new Error(`${target} exists: give another name, or remove it`)
  const passphrase = passphraseFile === undefined ? undefined : await readPassphrase(passphraseFile)
  const keep = async (content: AsyncIterable<Uint8Array>) => summary(await keepBackup(content, target), target, dataDir)
  /** Beside the keys: what is there for a moment without a passphrase never reaches the medium of the backup. */
  const lockAndKeep = async (made: string) => {
    try {
      if (passphrase !== undefined) await lockBackup(made, dataDir, passphrase)
      return await keep(createReadStream(made))
    } finally {
      await rm(made, { force: true })
    }
  }
  const name = `command-${process.pid}`
  const source = { dataDir, now, version: needs.version }
  const etcd = (await givenEtcdSettings(config, flags)) ?? (await runningEtcdSettings(dataDir, flags, needs.signal))
  if (etcd !== undefined) {
    const { backUp, revision } = await etcdSource(etcd, dataDir, needs)
    const printed = await lockAndKeep(await makeBackup({ ...source, backUp }, name))
    return `${printed}It has the objects below ${etcd.prefix} in etcd as they were at revision ${revision()}.\n`
  }
  refuseLonePrefix(flags)
  const running = await requestBackup(adminSocketPath(dataDir), needs.signal)
  if (running === undefined) return lockAndKeep(await makeBackup({ ...source, backUp: await idleStore(dataDir) }, name))
  if (passphrase === undefined) return keep(running)
  const made = join(dataDir, `backup-${name}.${process.pid}.new`)
  try {
    await pipeline(running, createWriteStream(made, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    await rm(made, { force: true })
    throw error
  }
  return lockAndKeep(made)
}

/** Backs up the store's file, which no controller has open. */
async function idleStore(dataDir: string): Promise<BackupSource['backUp']> {
  const store = join(dataDir, storeFileName)
  if (await isThere(store)) return (path: string, contents: BackupContents) => backUpIdleStore(store, path, contents)
  throw new Error(
    `There is no ${storeFileName} in ${dataDir}, and no controller runs on it: name the directory of the controller with --data-dir. For a store in etcd give --config with the configuration of the controller, or --etcd-servers`,
  )
}

type RestoreOptions = Parameters<typeof etcdFlagsOf>[0] & {
  readonly replace: boolean
  readonly config?: string | undefined
  readonly 'passphrase-file'?: string | undefined
  readonly 'secrets-key'?: string | undefined
  readonly 'without-secrets': boolean
}

async function restoreBackup(file: string, dataDir: string, options: RestoreOptions, needs: BackupCommandNeeds) {
  const { nowMs, signal } = needs
  const store = join(dataDir, storeFileName)
  // With a store in etcd there is no file to be locked.
  const isRunning = (await requestSettings(adminSocketPath(dataDir), signal)) !== undefined
  if (isRunning || ((await isThere(store)) && !isIdle(store))) {
    throw new Error(`A controller uses ${dataDir}: stop it first (systemctl stop bramble-controller)`)
  }
  const passphraseFile = options['passphrase-file']
  const unlocking = {
    passphrase: passphraseFile === undefined ? undefined : await readPassphrase(passphraseFile),
    secretsKey: options['secrets-key'],
    withoutSecrets: options['without-secrets'],
  }
  const flags = etcdFlagsOf(options)
  const etcd = await givenEtcdSettings(options.config, flags)
  if (etcd === undefined) refuseLonePrefix(flags)
  const target = etcd && (await etcdTarget(etcd, dataDir, needs))
  const {
    backup: restored,
    aside,
    revocations,
    otherAuthority,
  } = await restore(file, dataDir, options.replace, rfc3339(nowMs), unlocking, target)
  const before = aside === undefined ? '' : `The previous state is in ${aside}.\n`
  const place = etcd === undefined ? '' : inEtcdText(etcd, dataDir)
  return `Restored ${basename(file)}, made ${restored.made}: ${contents(restored)}.
${before}${place}Start the controller: each node that connects reports what it runs, so pods created since the backup come back, and no pod is
stopped before its node reported. Pods deleted since come back: delete them again. Tokens deleted since are valid again until they
expire: 'bramble-controller token list' shows them.
${revocationsText(revocations)}
${otherAuthority ? otherAuthorityText(dataDir, aside ?? dataDir) : ''}`
}

function inEtcdText({ servers, prefix }: EtcdSettings, dataDir: string): string {
  return `The objects are below ${prefix} in etcd at ${servers.join(', ')}, and verified. The authority and the key of Secrets are in ${dataDir}:
each other controller of the fleet needs a copy of ${authorityFolderName}/ and ${secretsKeyName}, and etcdPrefix: ${prefix}, before it starts.
`
}

function otherAuthorityText(dataDir: string, aside: string): string {
  const [kept, restored] = [aside, dataDir].map((folder) => join(folder, authorityFolderName))
  return `The authority that was here is not that of the backup. If the fleet changed over to it since the backup, nodes do not trust that of
the backup: replace ${restored} with ${kept} before the start.
`
}

function revocationsText(revocations: Restored['revocations']): string {
  if (revocations === 'kept')
    return 'Revocations of the previous store stay in force: nodes that were deleted since the backup are rejected.'
  const unread =
    revocations === undefined
      ? ''
      : `The list of revoked certificates could not be read from ${revocations.unreadable}\n`
  return `${unread}Nodes that were revoked or deleted since the backup are admitted again: revoke and delete them again.`
}

function summary(backup: Backup, target: string, dataDir: string): string {
  const { passphrase, secretsKeyIDs } = backup
  if (passphrase !== undefined) {
    return `${target}: ${contents(backup)}.
Its private keys and its Secrets can be read with the passphrase only: without it the backup cannot be restored.
`
  }
  const secrets =
    secretsKeyIDs.length === 0
      ? ''
      : `Its Secrets are encrypted with key ${secretsKeyIDs.join(', ')}, which is not in it: keep a copy of ${join(dataDir, secretsKeyName)} elsewhere,
or make backups with --passphrase-file.
`
  return `${target}: ${contents(backup)}.
It holds the fleet's authority with its key: its holder can act as any member of the fleet. Protect it as you protect the machine.
${secrets}`
}

function contents({ counts, authority }: Backup): string {
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`)
  return `${[...kinds, `${authority.size} files of the authority`].join(', ')}`
}
