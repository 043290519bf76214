/** What a client of the API sees of a controller: whether it works, and which nodes have a current lease. */
import { randomUUID } from 'node:crypto'
import { decode } from '../../api/decode.ts'
import { nodeLeaseNamespace, usualLeaseDurationSeconds } from '../../api/lease.ts'
import { type Described, integer, list, object, optional, text } from '../../api/schema.ts'
import type { ApiClient } from '../../daemon/api-client.ts'

const groupPath = '/apis/coordination.k8s.io/v1/namespaces'
const namespace = 'kube-system'
const name = 'bramble-controller-trial'
const pageLength = 500
/** For pages: more leases than a fleet has nodes. */
const mostPages = 200

const HeldLeaseSchema = object({ spec: optional(object({ holderIdentity: optional(text) })) })
const LeaseListSchema = object({
  metadata: optional(object({ continue: optional(text) })),
  items: list(
    object({
      metadata: optional(object({ name: optional(text) })),
      spec: optional(object({ renewTime: optional(text), leaseDurationSeconds: optional(integer) })),
    }),
  ),
})

/** `connectedNodes`: their names. */
export type FleetView = { readonly works: boolean; readonly connectedNodes: readonly string[] | undefined }

/** Never rejects: an API that does not answer does not work. */
export async function viewOfFleet(client: Pick<ApiClient, 'get' | 'post' | 'delete'>): Promise<FleetView> {
  const works = (await isReady(client).catch(() => false)) && (await keepsLease(client).catch(() => false))
  return { works, connectedNodes: await connectedNodes(client).catch(() => undefined) }
}

async function isReady(client: Pick<ApiClient, 'get'>): Promise<boolean> {
  return (await client.get('/readyz')).status === 200
}

/** Writes a Lease, reads it, and deletes it. */
async function keepsLease(client: Pick<ApiClient, 'get' | 'post' | 'delete'>): Promise<boolean> {
  const path = `${groupPath}/${namespace}/leases`
  const holderIdentity = randomUUID()
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { namespace, name } }
  // An interrupted look may have left one.
  await client.delete(`${path}/${name}`)
  const created = await client.post(path, { ...lease, spec: { holderIdentity } })
  if (created.status !== 201) return false
  const read = decode(HeldLeaseSchema, (await client.get(`${path}/${name}`)).body)
  const deleted = await client.delete(`${path}/${name}`)
  return read.ok && read.value.spec?.holderIdentity === holderIdentity && deleted.status === 200
}

/** Undefined: the list cannot be read. By the clock of the controller, which writes the leases. */
async function connectedNodes(client: Pick<ApiClient, 'get'>): Promise<readonly string[] | undefined> {
  const connected: string[] = []
  let next = ''
  for (let pages = 0; pages < mostPages; pages++) {
    const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
    const { status, body, dateHeader } = await client.get(
      `${groupPath}/${nodeLeaseNamespace}/leases?limit=${pageLength}${more}`,
    )
    const decoded = decode(LeaseListSchema, body)
    if (status !== 200 || !decoded.ok) return undefined
    const nowMs = Date.parse(dateHeader ?? '')
    connected.push(...decoded.value.items.flatMap((lease) => holderOf(lease, nowMs)))
    next = decoded.value.metadata?.continue ?? ''
    if (next === '') return connected
  }
  return undefined
}

/** The name of its node, if the lease is current. */
function holderOf({ metadata, spec }: NodeLease, nowMs: number): readonly string[] {
  return metadata?.name !== undefined && isCurrent(spec, nowMs) ? [metadata.name] : []
}

type NodeLease = Described<typeof LeaseListSchema>['items'][number]
type LeaseSpec = { readonly renewTime?: string | undefined; readonly leaseDurationSeconds?: number | undefined }

function isCurrent(
  { renewTime = '', leaseDurationSeconds = usualLeaseDurationSeconds }: LeaseSpec = {},
  nowMs: number,
): boolean {
  // The date of an answer has whole seconds.
  return nowMs - Date.parse(renewTime) <= leaseDurationSeconds * 1000 + 1000
}
