/** What `backup` and `restore` need where the objects are in etcd: a source of backups, and a target of restores. */
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { openLog } from '../../../daemon/log.ts'
import { type EtcdSettings, etcdPlace } from '../../configuration/etcd-configuration.ts'
import { type EtcdTarget, isThere, unfinishedRestore } from '../../data-directory/backup.ts'
import { authorityFolderName, secretsKeyName, storeFileName } from '../../data-directory/data-directory.ts'
import { clusterInfoKey, refuseFolderOfOthers } from '../../replicas/foreign-authority.ts'
import { EtcdError } from '../../store/etcd/etcd-error.ts'
import { backUpEtcd } from '../../store/migration/etcd-backup.ts'
import { restoreToEtcd } from '../../store/migration/etcd-restore.ts'
import type { BackUp } from '../../store/store.ts'
import type { CommandOutput } from '../run-command.ts'

/** More than an election of etcd takes, or a slow disk: a command may wait for each call. */
const deadlineMs = 10_000

export type EtcdSource = {
  readonly backUp: BackUp
  /** Revision of the objects in the backup, once it is made. */
  readonly revision: () => number
}

/** `dataDir`: of a controller of the fleet, running or stopped. Rejects where it is not one. */
export async function etcdSource(settings: EtcdSettings, dataDir: string, output: CommandOutput): Promise<EtcdSource> {
  const store = join(dataDir, storeFileName)
  if (await isThere(store)) {
    throw new Error(
      `${store} has the objects of this controller, and not etcd: back them up without the settings of etcd, or name another directory with --data-dir`,
    )
  }
  const unfinished = await unfinishedRestore(dataDir)
  if (unfinished !== undefined) throw new Error(unfinished)
  const authority = join(dataDir, authorityFolderName)
  if (!(await isThere(join(authority, 'ca.key')))) {
    throw new Error(
      `There is no authority in ${authority}, which belongs into a backup: name the directory of a controller of the fleet with --data-dir`,
    )
  }
  let revision = 0
  const needs = {
    ...(await needsOf(settings, output)),
    secretsKeyFile: join(dataDir, secretsKeyName),
    clusterInfoKey,
    checkAuthority: (info: Parameters<typeof refuseFolderOfOthers>[0]) => refuseFolderOfOthers(info, authority),
  }
  return {
    async backUp(path, contents) {
      revision = await backUpEtcd(needs, path, contents)
    },
    revision: () => revision,
  }
}

/** Rejects where the files of the settings cannot be read. */
export async function etcdTarget(settings: EtcdSettings, dataDir: string, output: CommandOutput): Promise<EtcdTarget> {
  const needs = await needsOf(settings, output)
  return {
    copy: (store, secretsKeyFile, finish) =>
      restoreToEtcd(needs, store, secretsKeyFile, finish).catch((cause: unknown) => {
        if (!(cause instanceof EtcdError)) throw cause
        throw new Error(`etcd failed during the restore into ${settings.prefix}: run the command again`, { cause })
      }),
    keep: entriesWith(settings, dataDir),
  }
}

async function needsOf(settings: EtcdSettings, { stderr, signal }: CommandOutput) {
  const log = openLog({ format: 'text', level: 'warn', write: stderr })
  return { place: await etcdPlace(settings), clock, log, deadlineMs, signal }
}

/** Entries of the data directory with files of the settings, where `join-control-plane` keeps them, without what a restore writes. */
export function entriesWith({ caFile, certFile, keyFile }: EtcdSettings, dataDir: string): readonly string[] {
  const names = [caFile, certFile, keyFile].flatMap((path) => {
    const inside = path === undefined ? '..' : relative(dataDir, resolve(path))
    const [first = ''] = inside.split(sep)
    return isAbsolute(inside) || first === '..' || first === '' ? [] : [first]
  })
  return names.filter((name) => name !== authorityFolderName && name !== secretsKeyName)
}
