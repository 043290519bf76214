/** `bramble-controller join-control-plane`: the authority, the keys and the settings of a fleet, fetched from a controller of it. */
import { mkdir, readdir, rename } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { decode } from '../../api/decode.ts'
import { parseToken, type TokenParts, tokenNamespace, tokenSecretName } from '../../api/node/bootstrap-token.ts'
import { SecretSchema } from '../../api/secret.ts'
import { openAuthority } from '../../certs/authority.ts'
import { isCaHash } from '../../certs/ca-hash.ts'
import { authorityIn, readServerChain } from '../../certs/server-chain.ts'
import { type ApiClient, apiClient, statusMessage } from '../../daemon/api-client.ts'
import { rfc3339, systemClock } from '../../daemon/clock.ts'
import { withDeadline } from '../../daemon/deadline.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import { messageOf } from '../../daemon/errors.ts'
import { invalidValue } from '../../daemon/process/command-line.ts'
import { readConfigurationFile } from '../../daemon/process/configuration-file.ts'
import {
  type ControllerConfigurationFile,
  ControllerConfigurationSchema,
  emptyControllerConfiguration,
} from '../configuration/configuration.ts'
import { giveToOwner, isThere } from '../data-directory/backup.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { joinControlPlaneRow } from './command-table.ts'
import { adminSocketPath, requestSettings } from './connection/admin-socket.ts'
import { bundleSecretName, type ControlPlaneBundle, openBundle } from './control-plane-bundle.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** `argv`: what follows `join-control-plane`. The exit code. Never rejects for what was typed or what the API answers. */
export async function joinControlPlaneCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(joinControlPlaneRow, argv, output, ({ args: [server = ''], values }) => {
    const { token: given = '', 'ca-hash': caHash = '', 'certificate-key': key = '' } = values
    const token = parseToken(given)
    if (!URL.canParse(server) || new URL(server).protocol !== 'https:') {
      return invalidValue('URL', server, 'use an address like https://10.0.0.1:6443')
    }
    if (token === undefined) return invalidValue('--token', given, 'use the token that was printed')
    if (!isCaHash(caHash)) return invalidValue('--ca-hash', caHash, 'use sha256: and 64 hexadecimal digits')
    if (!/^[0-9a-f]{64}$/.test(key)) return invalidValue('--certificate-key', key, 'use 64 hexadecimal digits')
    const { 'data-dir': dataDir, config, replace, 'advertise-address': advertiseAddress } = values
    const place = { dataDir: resolve(dataDir), config: resolve(config), replace: replace === true, advertiseAddress }
    return async () => {
      const present = await refuseUsed(place, output.signal)
      const { client, bundle } = await fetchBundle({ url: new URL(server), token, caHash, key }, output.signal)
      await write(bundle, caHash, place, present)
      await useUp(client, token, output)
      return `This machine has the authority and the keys of the fleet, and its settings in ${place.config}.\nStart the controller: systemctl start bramble-controller\n`
    }
  })
}

type Place = {
  readonly dataDir: string
  readonly config: string
  /** Move what is there aside. */
  readonly replace: boolean
  readonly advertiseAddress: string | undefined
}

/** Resolves with the configuration that is there. Rejects where this machine is a controller already. */
async function refuseUsed(
  { dataDir, config, replace }: Place,
  signal: AbortSignal,
): Promise<ControllerConfigurationFile> {
  if ((await requestSettings(adminSocketPath(dataDir), signal)) !== undefined) {
    throw new Error('A controller is running on this machine: stop it first (systemctl stop bramble-controller)')
  }
  // Whatever is there is moved aside: not from a folder that was named by mistake.
  if (!replace && (await stateIn(dataDir)).length > 0) {
    throw new Error(`${dataDir} has the state of a controller, or other files: give --replace to move them aside`)
  }
  if (!(await isThere(config))) return emptyControllerConfiguration
  const present = await readConfigurationFile(config, ControllerConfigurationSchema)
  if (present.etcdServers === undefined || replace) return present
  throw new Error(`${config} names servers of etcd already: give --replace to replace its settings`)
}

type Source = { readonly url: URL; readonly token: TokenParts; readonly caHash: string; readonly key: string }

const connectMs = 15_000

/** Nothing is sent to a server whose authority does not have the hash. */
async function fetchBundle(
  { url, token, caHash, key }: Source,
  signal: AbortSignal,
): Promise<{ readonly client: ApiClient; readonly bundle: ControlPlaneBundle }> {
  const chain = await withDeadline(connectMs, signal, (own) => readServerChain(url, own), 'no answer').catch(
    (cause: unknown) => {
      throw new Error(`Cannot reach the controller at ${url.host}`, { cause })
    },
  )
  const authority = authorityIn(chain, caHash)
  if (authority === undefined) {
    throw new Error(`The server at ${url.host} is not of this fleet: no authority of it has the hash ${caHash}`)
  }
  const client = apiClient({ url: url.origin, ca: authority.toString(), token: `${token.id}.${token.secret}` })
  const path = `/api/v1/namespaces/${tokenNamespace}/secrets/${bundleSecretName(token)}`
  const { status, body } = await client.get(path, signal)
  const secret = status === 200 ? decode(SecretSchema, body) : undefined
  if (!secret?.ok) {
    const because = statusMessage(body) ?? `status ${status}`
    throw new Error(
      `Cannot join: ${because}. Create a new token with 'bramble-controller token create --control-plane'`,
    )
  }
  const sealed = Buffer.from(secret.value.data?.['bundle'] ?? '', 'base64')
  return { client, bundle: openBundle(sealed, key, token) }
}

/** One line makes one controller: a copy of it gets nothing later, and a machine whose line somebody else has used is refused. */
async function useUp(client: ApiClient, token: TokenParts, { signal, stderr }: CommandOutput): Promise<void> {
  const { status, body } = await client
    .delete(`/api/v1/namespaces/${tokenNamespace}/secrets/${tokenSecretName(token.id)}`, signal)
    .catch((error: unknown) => ({ status: 0, body: { message: messageOf(error) } }))
  if (status === 200) return
  const because = statusMessage(body) ?? `status ${status}`
  stderr(
    `The token can still be used (${because}). Run 'bramble-controller token delete ${token.id}' on the first controller\n`,
  )
}

/** Each file is written for its owner only. The authority is verified before the configuration leads a controller to it. */
async function write(
  { settings, files }: ControlPlaneBundle,
  caHash: string,
  { dataDir, config, advertiseAddress }: Place,
  present: ControllerConfigurationFile,
): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await moveAside(dataDir)
  for (const [path, body] of files) {
    await mkdir(dirname(join(dataDir, path)), { recursive: true, mode: 0o700 })
    await replaceFile(join(dataDir, path), body, 0o600)
  }
  const { hash } = await openAuthority(join(dataDir, authorityFolderName), systemClock.wallMs())
  if (hash !== caHash) throw new Error(`The authority that was sent has the hash ${hash}, and not ${caHash}`)
  const here = (path: string | undefined) => path && join(dataDir, path)
  const { bindAddress, hosts, auditLogPath, dashboardCertFile, dashboardKeyFile } = present
  const wanted = {
    ...settings,
    ...{ bindAddress, hosts, auditLogPath, dashboardCertFile, dashboardKeyFile },
    advertiseAddress: advertiseAddress ?? present.advertiseAddress,
    etcdCAFile: here(settings.etcdCAFile),
    etcdCertFile: here(settings.etcdCertFile),
    etcdKeyFile: here(settings.etcdKeyFile),
  }
  await mkdir(dirname(config), { recursive: true })
  await replaceFile(config, `${JSON.stringify(wanted, null, 2)}\n`, 0o644)
  await giveToOwner(dataDir)
}

/** What a controller of this machine alone has left: nothing is deleted. */
async function moveAside(dataDir: string): Promise<void> {
  const entries = await stateIn(dataDir)
  if (entries.length === 0) return
  const aside = join(dataDir, `replaced-${rfc3339(systemClock.wallMs()).replaceAll(':', '')}`)
  await mkdir(aside, { mode: 0o700 })
  for (const name of entries) await rename(join(dataDir, name), join(aside, name))
}

async function stateIn(dataDir: string): Promise<readonly string[]> {
  const names = (await isThere(dataDir)) ? await readdir(dataDir) : []
  return names.filter((name) => !name.startsWith('replaced-'))
}
