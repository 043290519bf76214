/** `bramble-controller secrets`: the key that encrypts Secrets in the store. */
import { join, resolve } from 'node:path'
import { systemClock as clock } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import { giveToOwner, isThere } from '../data-directory/backup.ts'
import { secretsKeyName, storeFileName } from '../data-directory/data-directory.ts'
import { openStore } from '../data-directory/open-store.ts'
import { readSecretKeys } from '../store/encryption/secret-keys-file.ts'
import { secretsRow } from './command-table.ts'
import { adminSocketPath, requestSecretsKeyRotation } from './connection/admin-socket.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** `argv`: what follows `secrets`. The exit code. */
export async function secretsCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(secretsRow, argv, output, ({ form, values }) => {
    const dataDir = resolve(values['data-dir'])
    switch (form) {
      case 'show':
        return () => show(dataDir)
      case 'rotate-key':
        return () => rotate(dataDir, output)
    }
  })
}

async function show(dataDir: string): Promise<string> {
  const path = join(dataDir, secretsKeyName)
  const keys = await readSecretKeys(path)
  if (keys === undefined) throw new Error(`There is no key in ${path}: start the controller first`)
  const [{ id }, ...others] = keys
  return [`${id}  encrypts\n`, ...others.map((key) => `${key.id}  is removed when the rotation has finished\n`)].join(
    '',
  )
}

async function rotate(dataDir: string, { signal, stderr }: CommandOutput): Promise<string> {
  const id = (await requestSecretsKeyRotation(adminSocketPath(dataDir), signal)) ?? (await rotateIdle(dataDir, stderr))
  return `Key ${id} encrypts all Secrets now; the previous key is removed. Backups made before without a passphrase need a copy of the
previous ${join(dataDir, secretsKeyName)}: make a new backup.
`
}

/** The lock of the store keeps a controller from starting meanwhile. */
async function rotateIdle(dataDir: string, write: (text: string) => void): Promise<string> {
  if (!(await isThere(join(dataDir, storeFileName))))
    throw new Error(
      `There is no ${storeFileName} in ${dataDir}: name the directory of the controller with --data-dir. With a store in etcd, start the controller first`,
    )
  const log = openLog({ format: 'text', level: 'warn', write })
  const { store, rotateSecretsKey } = await openStore({ dataDir, clock, log })
  try {
    if (rotateSecretsKey === undefined) throw new Error('This store does not encrypt Secrets itself')
    return await rotateSecretsKey()
  } finally {
    await store.close()
    await giveToOwner(dataDir)
  }
}
