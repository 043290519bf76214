/** `bramble-controller login-link` and `dashboard`: how people come to the dashboard, and how they are logged out. */
import { createHash } from 'node:crypto'
import {
  decodeKioskLink,
  encodeKioskLink,
  type KioskLink,
  kioskNamespace,
  kioskSecretName,
  kioskSecretType,
} from '../../api/access/kiosk-link.ts'
import { ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import { integer, list, object, optional, text } from '../../api/schema.ts'
import { SecretSchema } from '../../api/secret.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { parseDuration } from '../../daemon/duration.ts'
import { invalidValue } from '../../daemon/process/command-line.ts'
import { dashboardRow, loginLinkRow } from './command-table.ts'
import { expectSuccess } from './connection/expect-success.ts'
import { currentCluster, kubeconfigPlace, parseKubeconfig, readKubeconfig } from './connection/kubeconfig.ts'
import { printable } from './printable.ts'
import { type CommandOutput, runCommand } from './run-command.ts'
import { textTable } from './text-table.ts'

export type DashboardCommandNeeds = CommandOutput & {
  readonly nowMs: number
  readonly randomBytes: (count: number) => Uint8Array
}

const secretsPath = `/api/v1/namespaces/${kioskNamespace}/secrets`
const LinkSchema = object({ link: text, expires: integer })
const SessionsSchema = object({
  items: list(object({ id: text, user: text, address: text, userAgent: optional(text), opened: integer })),
})

/** `argv`: what follows `login-link`. The exit code. Never rejects for what was typed or what the API answers. */
export async function loginLinkCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(loginLinkRow, argv, output, ({ values }) => {
    const { user, group: groups = [] } = values
    if (user === undefined && groups.length > 0) return 'Name the user of these groups with --user'
    const { path, context } = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    return async () => {
      const access = await readKubeconfig(path, context)
      const client = apiClient({ ...access, ...(user !== undefined && { impersonate: { user, groups } }) })
      const answer = await client.post('/ui/api/links', {}, output.signal)
      expectSuccess('Cannot create a login link', answer)
      const decoded = decode(LinkSchema, answer.body)
      if (!decoded.ok) throw new Error('Cannot create a login link: the answer has none')
      return `${await publicUrl(client, output.signal)}/ui/#login=${decoded.value.link}\n`
    }
  })
}

/** `argv`: what follows `dashboard`. The exit code. Never rejects for what was typed or what the API answers. */
export async function dashboardCommand(argv: readonly string[], needs: DashboardCommandNeeds): Promise<number> {
  return runCommand(dashboardRow, argv, needs, ({ form, args: [id = ''], values }) => {
    const { path, context } = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    const { signal } = needs
    const client = async () => apiClient(await readKubeconfig(path, context))
    if (id !== '' && !/^[0-9a-f]{12}$/.test(id)) return invalidValue('ID', id, 'use the twelve characters of the list')
    switch (form) {
      case 'sessions':
        return async () => sessionsTable(await client(), signal)
      case 'revoke ID':
        return async () => {
          expectSuccess(
            `Cannot revoke the session ${id}`,
            await (await client()).delete(`/ui/api/sessions/${id}`, signal),
          )
          return `Session ${id} revoked\n`
        }
      case 'kiosk create': {
        const ttlMs = parseDuration(values.ttl)
        if (ttlMs === undefined) return invalidValue('--ttl', values.ttl, 'use a duration like 720h, or 0')
        return async () => createKioskLink({ ttlMs, description: values.description }, await client(), needs)
      }
      case 'kiosk list':
        return async () => kioskTable(await client(), signal)
      case 'kiosk revoke ID':
        return async () => {
          const answer = await (await client()).delete(`${secretsPath}/${kioskSecretName(id)}`, signal)
          if (answer.status === 404) throw new Error(`There is no kiosk link ${id}`)
          expectSuccess(`Cannot revoke the kiosk link ${id}`, answer)
          return `Kiosk link ${id} revoked\n`
        }
    }
  })
}

async function sessionsTable(client: ApiClient, signal: AbortSignal): Promise<string> {
  const answer = await client.get('/ui/api/sessions', signal)
  expectSuccess('Cannot list the sessions', answer)
  const decoded = decode(SessionsSchema, answer.body)
  if (!decoded.ok) throw new Error('Cannot list the sessions: the answer is not a list of sessions')
  const rows = decoded.value.items.map(({ id, user, address, opened, userAgent = '' }) => [
    id,
    printable(user),
    address,
    rfc3339(opened * 1000),
    printable(userAgent),
  ])
  return textTable([['ID', 'USER', 'ADDRESS', 'OPENED', 'BROWSER'], ...rows])
}

type CreateKiosk = { readonly ttlMs: number; readonly description: string | undefined }

async function createKioskLink(
  { ttlMs, description }: CreateKiosk,
  client: ApiClient,
  { randomBytes, nowMs, signal }: DashboardCommandNeeds,
): Promise<string> {
  const id = Buffer.from(randomBytes(6)).toString('hex')
  const secret = Buffer.from(randomBytes(24)).toString('base64url')
  const link: KioskLink = {
    id,
    digest: createHash('sha256').update(secret).digest('base64'),
    ...(ttlMs !== 0 && { expiration: rfc3339(nowMs + ttlMs) }),
    ...(description && { description }),
  }
  const url = await publicUrl(client, signal)
  expectSuccess('Cannot create the kiosk link', await client.post(secretsPath, encodeKioskLink(link), signal))
  return `${url}/ui/#kiosk=${id}.${secret}\n`
}

async function kioskTable(client: ApiClient, signal: AbortSignal): Promise<string> {
  const answer = await client.get(`${secretsPath}?fieldSelector=type%3D${encodeURIComponent(kioskSecretType)}`, signal)
  expectSuccess('Cannot list the kiosk links', answer)
  const decoded = decode(object({ items: list(SecretSchema) }), withKind(answer.body))
  if (!decoded.ok) throw new Error('Cannot list the kiosk links: the answer is not a list of Secrets')
  const links = decoded.value.items.map(decodeKioskLink).filter((link) => link !== undefined)
  const rows = links.map(({ id, expiration = '<never>', description = '<none>' }) => [
    id,
    printable(expiration),
    printable(description),
  ])
  return textTable([['ID', 'EXPIRES', 'DESCRIPTION'], ...rows])
}

/** Items of a list may lack apiVersion and kind. */
function withKind(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('items' in body) || !Array.isArray(body.items)) return body
  return { items: body.items.map((item: object) => ({ apiVersion: 'v1', kind: 'Secret', ...item })) }
}

/** The address of the API for other machines, which may differ from that of this command. */
async function publicUrl(client: ApiClient, signal: AbortSignal): Promise<string> {
  const info = await client.get('/api/v1/namespaces/kube-public/configmaps/cluster-info', signal)
  expectSuccess('Cannot read ConfigMap kube-public/cluster-info', info)
  const decoded = decode(ConfigMapSchema, info.body)
  const kubeconfig = decoded.ok ? decoded.value.data?.['kubeconfig'] : undefined
  if (kubeconfig === undefined) throw new Error('ConfigMap kube-public/cluster-info holds no kubeconfig')
  return currentCluster(parseKubeconfig(kubeconfig)).server
}
