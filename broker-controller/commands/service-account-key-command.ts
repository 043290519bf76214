/** `bramble-controller service-account-key`: replaces the key that signs tokens of service accounts. */
import { join, resolve } from 'node:path'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { giveToOwner } from '../data-directory/backup.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { readTokenKeys, removePreviousTokenKey, rotateTokenKey } from '../own-certificates/service-account-keys.ts'
import { serviceAccountKeyRow } from './command-table.ts'
import { adminSocketPath, requestReload } from './connection/admin-socket.ts'
import { kubeconfigPlace, readKubeconfig } from './connection/kubeconfig.ts'
import { copyNote, refuseOnStandby } from './refuse-on-standby.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** `argv`: what follows `service-account-key`. The exit code. */
export async function serviceAccountKeyCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(serviceAccountKeyRow, argv, output, ({ form, values }) => {
    const dataDir = resolve(values['data-dir'])
    const folder = join(dataDir, authorityFolderName)
    switch (form) {
      case 'show':
        return () => show(folder)
      case 'rotate':
        return () => whereItLeads(form, dataDir, output, () => rotate(dataDir, folder, output))
      case 'finish':
        return () => whereItLeads(form, dataDir, output, () => finish(dataDir, folder, output))
    }
  })
}

async function show(folder: string): Promise<string> {
  const keys = await readTokenKeys(folder)
  if (keys === undefined) throw new Error(`There is no key in ${folder}: start the controller first`)
  const { signing, others } = keys
  return [`${signing.id}  signs`, ...others.map(({ id }) => `${id}  trusted until "finish"`)]
    .map((line) => `${line}\n`)
    .join('')
}

/** A step that changes the keys. Two controllers with new keys of their own would not accept the tokens of each other. */
async function whereItLeads(
  form: string,
  dataDir: string,
  { signal }: CommandOutput,
  step: () => Promise<string>,
): Promise<string> {
  const { path, context } = kubeconfigPlace(undefined, dataDir)
  const client = async (): Promise<ApiClient> => apiClient(await readKubeconfig(path, context))
  await refuseOnStandby({ dataDir, command: `bramble-controller service-account-key ${form}`, client, signal })
  return `${await step()}${await copyNote(join(dataDir, authorityFolderName), client, signal)}`
}

async function rotate(dataDir: string, folder: string, { signal }: CommandOutput): Promise<string> {
  const { signing } = await rotateTokenKey(folder)
  await giveToOwner(dataDir)
  const isRunning = await requestReload(adminSocketPath(dataDir), signal)
  const since = isRunning ? 'now' : 'from the next start of the controller'
  return `Key ${signing.id} signs ${since}. Tokens of the key before stay valid until "service-account-key finish".\n`
}

async function finish(dataDir: string, folder: string, { signal }: CommandOutput): Promise<string> {
  if (!(await removePreviousTokenKey(folder))) return 'There is no previous key.\n'
  await requestReload(adminSocketPath(dataDir), signal)
  return 'The previous key is removed: its tokens are invalid.\n'
}
