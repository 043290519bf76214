/** `bramble-controller token`: tokens that let machines join, made and looked after through the API. */

import { ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import {
  type BootstrapToken,
  decodeToken,
  encodeToken,
  formatToken,
  nodeBootstrapGroup,
  parseToken,
  tokenFrom,
  tokenNamespace,
  tokenSecretName,
} from '../../api/node/bootstrap-token.ts'
import { list, object } from '../../api/schema.ts'
import { SecretSchema } from '../../api/secret.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { type ApiAnswer, type ApiClient, apiClient, statusMessage } from '../../daemon/api-client.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { formatDuration, parseDuration } from '../../daemon/duration.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { readOptions } from '../../daemon/process/options.ts'
import {
  type ApiAccess,
  currentCluster,
  type KubeconfigPlace,
  kubeconfigPlace,
  parseKubeconfig,
  readKubeconfig,
} from '../kubeconfig.ts'
import { failureText } from './command-failure.ts'
import { textTable } from './text-table.ts'

export type TokenCommandNeeds = {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly signal: AbortSignal
  readonly randomBytes: (count: number) => Uint8Array
  readonly defaults: { readonly dataDir: string }
}

const secretsPath = `/api/v1/namespaces/${tokenNamespace}/secrets`

/** `argv`: what follows `token`. The exit code. Never rejects for what was typed or what the API answers. */
export async function tokenCommand(argv: readonly string[], needs: TokenCommandNeeds): Promise<number> {
  const { stdout, stderr } = needs
  const read = readArguments(argv, needs.defaults.dataDir)
  if (read.want === 'help') {
    stdout(help)
    return 0
  }
  if (read.want === 'refuse') {
    stderr(`${read.why}\nTry 'bramble-controller token --help'.\n`)
    return exitCode.usage
  }
  try {
    const access = await readKubeconfig(read.kubeconfig.path, read.kubeconfig.context)
    const client = apiClient(access)
    switch (read.want) {
      case 'create':
        stdout(`${await create(read, client, access, needs)}\n`)
        break
      case 'list':
        stdout(await table(client, needs.signal))
        break
      case 'delete':
        await remove(read.id, client, needs.signal)
        stdout(`Token ${read.id} deleted\n`)
    }
    return 0
  } catch (error) {
    stderr(failureText(error, needs.signal))
    return 1
  }
}

type Create = {
  readonly want: 'create'
  /** 0: it never expires. */
  readonly ttlMs: number
  readonly description: string | undefined
  readonly printJoinCommand: boolean
}
type Arguments =
  | { readonly want: 'help' }
  | { readonly want: 'refuse'; readonly why: string }
  | ((Create | { readonly want: 'list' } | { readonly want: 'delete'; readonly id: string }) & {
      readonly kubeconfig: KubeconfigPlace
    })

function readArguments(argv: readonly string[], defaultDataDir: string): Arguments {
  const read = readOptions(argv, optionsConfig)
  if (!read.ok) return refuse(read.why)
  const { values, positionals } = read.value
  if (values.help) return { want: 'help' }
  const [verb, subject, ...more] = positionals
  const kubeconfig = kubeconfigPlace(values.kubeconfig, values['data-dir'] ?? defaultDataDir)
  if (verb === 'create' && subject === undefined) {
    const ttlMs = parseDuration(values.ttl)
    if (ttlMs === undefined)
      return refuse(`--ttl must be a length of time like 24h or 1h30m, or 0 for ever, not ${values.ttl}`)
    const { description, 'print-join-command': printJoinCommand } = values
    return { want: 'create', ttlMs, description, printJoinCommand, kubeconfig }
  }
  if (verb === 'list' && subject === undefined) return { want: 'list', kubeconfig }
  if (verb === 'delete' && more.length === 0) {
    const id = parseToken(subject ?? '')?.id ?? subject ?? ''
    if (/^[a-z0-9]{6}$/.test(id)) return { want: 'delete', id, kubeconfig }
    return refuse('Say which token to delete: its id, the six characters before the dot')
  }
  return refuse(
    verb === undefined ? 'Say what to do: create, list or delete' : `Not understood: ${positionals.join(' ')}`,
  )
}

const optionsConfig = {
  allowPositionals: true,
  options: {
    ttl: { type: 'string', default: '24h' },
    description: { type: 'string' },
    'print-join-command': { type: 'boolean', default: false },
    kubeconfig: { type: 'string' },
    'data-dir': { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
} as const

function refuse(why: string): Arguments {
  return { want: 'refuse', why }
}

/** The line to print: the token, or the command that joins with it. */
async function create(wanted: Create, client: ApiClient, access: ApiAccess, needs: TokenCommandNeeds): Promise<string> {
  const info = await client.get('/api/v1/namespaces/kube-public/configmaps/cluster-info', needs.signal)
  const nowMs = Date.parse(info.dateHeader ?? '') // by the clock that will judge it
  if (Number.isNaN(nowMs)) throw new Error(`The server at ${access.url} does not tell its time`)
  const server = wanted.printJoinCommand ? publicServer(info) : ''
  const token: BootstrapToken = {
    ...tokenFrom(needs.randomBytes(64)),
    ...(wanted.ttlMs === 0 ? {} : { expiration: rfc3339(nowMs + wanted.ttlMs) }),
    ...(wanted.description === undefined ? {} : { description: wanted.description }),
    usages: ['authentication', 'signing'],
    groups: [nodeBootstrapGroup],
  }
  expectSuccess('Cannot create the token', await client.post(secretsPath, encodeToken(token), needs.signal))
  if (!wanted.printJoinCommand) return formatToken(token)
  return `bramble-agent join ${server} --token ${formatToken(token)} --ca-hash ${caHash(access.ca)}`
}

/** Where machines find the API: not where this command happens to find it. */
function publicServer(info: ApiAnswer): string {
  expectSuccess('Cannot read ConfigMap kube-public/cluster-info', info)
  const decoded = decode(ConfigMapSchema, info.body)
  const kubeconfig = decoded.ok ? decoded.value.data?.['kubeconfig'] : undefined
  if (kubeconfig === undefined) throw new Error('ConfigMap kube-public/cluster-info holds no kubeconfig')
  return currentCluster(parseKubeconfig(kubeconfig)).server
}

async function table(client: ApiClient, signal: AbortSignal): Promise<string> {
  const answer = await client.get(secretsPath, signal)
  expectSuccess('Cannot list the tokens', answer)
  const decoded = decode(object({ items: list(SecretSchema) }), withKinds(answer.body))
  if (!decoded.ok) throw new Error('Cannot list the tokens: the answer is no list of secrets')
  const nowMs = Date.parse(answer.dateHeader ?? '')
  const rows = decoded.value.items
    .map(decodeToken)
    .filter((token) => token !== undefined)
    .map((token) => rowOf(token, nowMs))
  return textTable([['TOKEN', 'TTL', 'EXPIRES', 'USAGES', 'DESCRIPTION'], ...rows])
}

/** Items of a list need not say what they are. */
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

async function remove(id: string, client: ApiClient, signal: AbortSignal): Promise<void> {
  const answer = await client.delete(`${secretsPath}/${tokenSecretName(id)}`, signal)
  if (answer.status === 404) throw new Error(`There is no token ${id}`)
  expectSuccess(`Cannot delete the token ${id}`, answer)
}

function expectSuccess(what: string, { status, body }: ApiAnswer): void {
  if (status >= 200 && status < 300) return
  throw new Error(`${what}: ${statusMessage(body) ?? 'the server is not the API of a fleet'} (status ${status})`)
}

const help = `Usage: bramble-controller token create [--ttl 24h] [--description TEXT] [--print-join-command]
       bramble-controller token list
       bramble-controller token delete ID

Tokens let machines join the fleet.

  --ttl DURATION          how long the token is good for (24h): 90m, 168h; 0 never expires
  --description TEXT      what it is for
  --print-join-command    print the line to run on the machine that is to join
  --data-dir DIR          the controller's data directory, where the kubeconfig is (/var/lib/bramble/controller)
  --kubeconfig PATH       another kubeconfig of an administrator
  --help                  this text
`
