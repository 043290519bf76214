/** `bramble-controller store`: moves the objects of a fleet between SQLite and etcd. */
import { join, resolve } from 'node:path'
import { systemClock as clock } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import { etcdPlace } from '../configuration/etcd-configuration.ts'
import { giveToOwner, isThere, unfinishedRestore } from '../data-directory/backup.ts'
import { secretsKeyName, storeFileName } from '../data-directory/data-directory.ts'
import { migratedStoreName } from '../data-directory/open-store.ts'
import type { CopySummary } from '../store/etcd/etcd-copy.ts'
import { type MigrationNeeds, migrateToEtcd, migrateToSqlite } from '../store/migration/store-migration.ts'
import { usableFormats } from '../store/sqlite/sqlite-file.ts'
import { StoreInUseError } from '../store/store.ts'
import { etcdFlagsOf } from './command-line.ts'
import { storeRow } from './command-table.ts'
import { givenEtcdSettings } from './etcd/etcd-options.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** `argv`: what follows `store`. The exit code. */
export async function storeCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(storeRow, argv, output, ({ form, values }) => {
    if (form === 'formats') return async () => `${usableFormats.join(',')}\n`
    const { to, config } = values
    if (to === undefined) return 'store migrate: give --to etcd or --to sqlite'
    const dataDir = resolve(values['data-dir'])
    return async () => {
      const settings = await givenEtcdSettings(config, etcdFlagsOf(values))
      if (settings === undefined) throw new Error('Give --etcd-servers, or --config with a file that has etcdServers')
      const log = openLog({ format: 'text', level: 'warn', write: output.stderr })
      const path = join(dataDir, storeFileName)
      const migratedPath = join(dataDir, migratedStoreName)
      const secretsKeyFile = join(dataDir, secretsKeyName)
      const needs = { path, migratedPath, secretsKeyFile, place: await etcdPlace(settings), clock, log }
      try {
        return to === 'etcd' ? await toEtcd(dataDir, needs) : await toSqlite(dataDir, needs)
      } catch (cause) {
        if (!(cause instanceof StoreInUseError)) throw cause
        throw new Error('A controller is running: stop it first (systemctl stop bramble-controller)', { cause })
      } finally {
        await giveToOwner(dataDir)
      }
    }
  })
}

async function toEtcd(dataDir: string, needs: MigrationNeeds): Promise<string> {
  if (!(await isThere(needs.path))) {
    throw new Error(`There is no ${storeFileName} in ${dataDir}: name the directory of the controller with --data-dir`)
  }
  const unfinished = await unfinishedRestore(dataDir)
  if (unfinished !== undefined) throw new Error(unfinished)
  const { servers, prefix } = needs.place
  const copied = await migrateToEtcd(needs)
  return `Moved to ${prefix} in etcd, and verified: ${countsOf(copied)}.
The file is now ${needs.migratedPath}: remove it when you no longer need it. It has the objects as they were.
Start the controller with --etcd-servers ${servers.join(',')}, or with etcdServers in its configuration. It needs the same data directory:
the authority and the key of Secrets stay there.
`
}

async function toSqlite(dataDir: string, needs: MigrationNeeds): Promise<string> {
  if (await isThere(needs.path)) throw new Error(`There is a store in ${needs.path} already: move it away first`)
  if (!(await isThere(dataDir)))
    throw new Error(`There is no ${dataDir}: name the directory of the controller with --data-dir`)
  const { prefix } = needs.place
  const copied = await migrateToSqlite(needs)
  return `Moved to ${needs.path}, and verified: ${countsOf(copied)}.
The copy below ${prefix} in etcd is out of use: delete it when you no longer need it (etcdctl del --prefix ${prefix}/).
Start the controller without --etcd-servers and without etcdServers.
`
}

function countsOf(copied: CopySummary): string {
  const kinds = [...copied].map(([resource, { count }]) => `${count} ${resource}`)
  return kinds.length === 0 ? 'no objects' : kinds.join(', ')
}
