/** `bramble-controller token`: tokens that let machines join, made and looked after through the API. */

import { ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import {
  type BootstrapToken,
  controlPlaneGroup,
  decodeToken,
  encodeToken,
  formatToken,
  nodeBootstrapGroup,
  parseToken,
  tokenFrom,
  tokenNamespace,
  tokenSecretName,
} from '../../api/node/bootstrap-token.ts'
import { agentJoin, cloneJoin, type JoinFacts } from '../../api/node/join-lines.ts'
import { list, object } from '../../api/schema.ts'
import { SecretSchema } from '../../api/secret.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { type ApiAnswer, type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { formatDuration, parseDuration } from '../../daemon/duration.ts'
import { invalidValue } from '../../daemon/process/command-line.ts'
import { tokenRow } from './command-table.ts'
import { expectSuccess } from './connection/expect-success.ts'
import {
  type ApiAccess,
  currentCluster,
  kubeconfigPlace,
  parseKubeconfig,
  readKubeconfig,
} from './connection/kubeconfig.ts'
import { controlPlaneCommand } from './control-plane-token.ts'
import { type CommandOutput, runCommand } from './run-command.ts'
import { textTable } from './text-table.ts'

export type TokenCommandNeeds = CommandOutput & { readonly randomBytes: (count: number) => Uint8Array }

const secretsPath = `/api/v1/namespaces/${tokenNamespace}/secrets`

/** `argv`: what follows `token`. The exit code. Never rejects for what was typed or what the API answers. */
export async function tokenCommand(argv: readonly string[], needs: TokenCommandNeeds): Promise<number> {
  return runCommand(tokenRow, argv, needs, ({ form, args: [subject = ''], values }) => {
    const kubeconfig = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    const access = () => readKubeconfig(kubeconfig.path, kubeconfig.context)
    switch (form) {
      case 'create': {
        const ttlMs = lifetimeOf(values.ttl, values['control-plane'])
        if (typeof ttlMs === 'string') return ttlMs
        const { description, 'print-join-command': printJoinCommand } = values
        const controllerOf = values['control-plane'] ? values['data-dir'] : undefined
        const wanted = { ttlMs, description, printJoinCommand, controllerOf }
        return async () => `${await create(wanted, await access(), needs)}\n`
      }
      case 'list':
        return async () => tokensTable(apiClient(await access()), needs.signal)
      case 'delete ID': {
        const id = parseToken(subject)?.id ?? subject
        if (!/^[a-z0-9]{6}$/.test(id)) return invalidValue('ID', subject, 'use the six characters before the dot')
        return async () => {
          await removeToken(id, apiClient(await access()), needs.signal)
          return `Token ${id} deleted\n`
        }
      }
    }
  })
}

/** In milliseconds, or why it is refused. */
function lifetimeOf(given: string, isForController: boolean): number | string {
  const ttlMs = parseDuration(given)
  if (ttlMs === undefined) return invalidValue('--ttl', given, 'use a duration like 24h or 1h30m, or 0')
  const tooLong = 'the keys of the fleet must not stay readable: use a duration like 1h'
  return isForController && ttlMs === 0 ? invalidValue('--ttl', given, tooLong) : ttlMs
}

type Create = {
  /** 0: it never expires. */
  readonly ttlMs: number
  readonly description: string | undefined
  readonly printJoinCommand: boolean
  /** Data directory of the controller that another one is to join; undefined: the token is for nodes. */
  readonly controllerOf: string | undefined
}

/** Creates a token for nodes, with what else a machine must have to join. */
export async function createNodeToken(
  wanted: Pick<Create, 'ttlMs' | 'description'>,
  access: ApiAccess,
  needs: Pick<TokenCommandNeeds, 'randomBytes' | 'signal'>,
): Promise<JoinFacts & { readonly token: BootstrapToken }> {
  const { token, server } = await createToken({ ...wanted, isServerShown: true }, nodeBootstrapGroup, access, needs)
  return { server, token, caHash: caHash(access.ca) }
}

/** The line to print: the token, or the command that joins with it. */
async function create(wanted: Create, access: ApiAccess, needs: TokenCommandNeeds): Promise<string> {
  const { controllerOf } = wanted
  const group = controllerOf === undefined ? nodeBootstrapGroup : controlPlaneGroup
  const isServerShown = wanted.printJoinCommand || controllerOf !== undefined
  const { token, server, created } = await createToken({ ...wanted, isServerShown }, group, access, needs)
  if (controllerOf !== undefined) {
    const { signal } = needs
    const client = apiClient(access)
    const place = { client, token, dataDir: controllerOf, ca: access.ca, server, expectSuccess, signal }
    return controlPlaneCommand(place, created).catch(async (error: unknown) => {
      await removeToken(token.id, client, signal).catch(() => undefined)
      throw error
    })
  }
  if (!wanted.printJoinCommand) return formatToken(token)
  const facts = { server, token, caHash: caHash(access.ca) }
  // Beside the line: standard output is read by scripts.
  needs.stderr(joinHint(facts))
  return agentJoin(facts)
}

async function createToken(
  { ttlMs, description, isServerShown }: Pick<Create, 'ttlMs' | 'description'> & { readonly isServerShown: boolean },
  group: string,
  access: ApiAccess,
  { randomBytes, signal }: Pick<TokenCommandNeeds, 'randomBytes' | 'signal'>,
) {
  const client = apiClient(access)
  const info = await client.get('/api/v1/namespaces/kube-public/configmaps/cluster-info', signal)
  const nowMs = Date.parse(info.dateHeader ?? '') // of the clock that decides about expiry
  if (Number.isNaN(nowMs)) throw new Error(`The server at ${access.url} sends no Date header`)
  const server = isServerShown ? publicServer(info) : ''
  const token: BootstrapToken = {
    ...tokenFrom(randomBytes(64)),
    ...(ttlMs === 0 ? {} : { expiration: rfc3339(nowMs + ttlMs) }),
    ...(description === undefined ? {} : { description }),
    usages: group === nodeBootstrapGroup ? ['authentication', 'signing'] : ['authentication'],
    groups: [group],
  }
  const created = await client.post(secretsPath, encodeToken(token), signal)
  expectSuccess('Cannot create the token', created)
  return { token, server, created }
}

function joinHint(facts: JoinFacts): string {
  return `# On a machine with the package bramble-agent, run the line with sudo. In a clone of the repository, which needs neither packages nor
# Node.js before, run instead:
#   ${cloneJoin(facts)}
`
}

/** The address of the API for other machines, which may differ from that of this command. */
function publicServer(info: ApiAnswer): string {
  expectSuccess('Cannot read ConfigMap kube-public/cluster-info', info)
  const decoded = decode(ConfigMapSchema, info.body)
  const kubeconfig = decoded.ok ? decoded.value.data?.['kubeconfig'] : undefined
  if (kubeconfig === undefined) throw new Error('ConfigMap kube-public/cluster-info holds no kubeconfig')
  return currentCluster(parseKubeconfig(kubeconfig)).server
}

async function tokensTable(client: ApiClient, signal: AbortSignal): Promise<string> {
  const answer = await client.get(secretsPath, signal)
  expectSuccess('Cannot list the tokens', answer)
  const decoded = decode(object({ items: list(SecretSchema) }), withKinds(answer.body))
  if (!decoded.ok) throw new Error('Cannot list the tokens: the answer is not a list of Secrets')
  const nowMs = Date.parse(answer.dateHeader ?? '')
  const rows = decoded.value.items
    .map(decodeToken)
    .filter((token) => token !== undefined)
    .map((token) => rowOf(token, nowMs))
  return textTable([['TOKEN', 'TTL', 'EXPIRES', 'USAGES', 'DESCRIPTION'], ...rows])
}

/** Items of a list may lack apiVersion and kind. */
function withKinds(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('items' in body) || !Array.isArray(body.items)) return body
  return { items: body.items.map((item: object) => ({ apiVersion: 'v1', kind: 'Secret', ...item })) }
}

function rowOf(token: BootstrapToken, nowMs: number): readonly string[] {
  const { expiration, usages, description = '<none>' } = token
  const leftMs = expiration === undefined ? undefined : Date.parse(expiration) - nowMs
  const ttl = leftMs === undefined ? '<forever>' : leftMs > 0 ? formatDuration(leftMs) : '<expired>'
  return [formatToken(token), ttl, expiration ?? '<never>', usages.join(',') || '<none>', description]
}

/** Throws if there is none. */
export async function removeToken(id: string, client: ApiClient, signal: AbortSignal): Promise<void> {
  const answer = await client.delete(`${secretsPath}/${tokenSecretName(id)}`, signal)
  if (answer.status === 404) throw new Error(`There is no token ${id}`)
  expectSuccess(`Cannot delete the token ${id}`, answer)
}
