/** The key `.store/owner`, which names the process that may write. It ends with the etcd lease of that process. */
import { decode } from '../../../api/decode.ts'
import { integer, object, oneOf, optional, text } from '../../../api/schema.ts'
import { callDeadlineMs, type EtcdClient } from './etcd-client.ts'
import { EtcdError, grpcCode } from './etcd-error.ts'
import type { EtcdKeys } from './etcd-keys.ts'
import { compareTarget, type KeyValue, methods } from './etcd-messages.ts'

/** A process, in a form that shows another one on the same machine whether it is still there. */
export type OwnerProcess = {
  readonly host: string
  readonly pid: number
  /** The boot of the machine and the namespace that `pid` belongs to. */
  readonly place: string
  /** When the process began, in the kernel's units: a number of another process is no proof. */
  readonly began: string
  /** `https://HOST:PORT` of its API. */
  readonly server?: string | undefined
}

export type PresentOwner = {
  readonly createRevision: number
  /** undefined: the value cannot be read. */
  readonly process: OwnerProcess | undefined
}

/** The key as this process holds it. */
export type HeldKey = {
  readonly lease: string
  readonly createRevision: number
  /** How many processes held the key before this one. */
  readonly transitions: number
}

const ownerSchema = object({
  kind: oneOf('StoreOwner'),
  host: text,
  pid: integer,
  place: text,
  began: text,
  server: optional(text),
})

/** undefined: no process holds the key. */
export async function presentOwner(client: EtcdClient, { owner }: EtcdKeys): Promise<PresentOwner | undefined> {
  const { kvs } = await client.call(methods.range, { key: owner, limit: 1 })
  const [present] = kvs
  return present && { createRevision: present.createRevision, process: processIn(present) }
}

/** Makes the key with a lease of so many seconds. undefined: another process was faster. */
export async function claimOwnerKey(
  client: EtcdClient,
  { owner: key, terms }: EtcdKeys,
  self: OwnerProcess,
  leaseSeconds: number,
): Promise<HeldKey | undefined> {
  const { id: lease } = await client.call(methods.leaseGrant, { ttl: leaseSeconds })
  const { succeeded, header, responses } = await client.call(methods.txn, {
    compare: [{ target: compareTarget.create, key, createRevision: 0 }],
    success: [
      { put: { key, lease, value: Buffer.from(JSON.stringify({ kind: 'StoreOwner', ...self })) } },
      // etcd counts how often a key was written.
      { put: { key: terms, value: Buffer.alloc(0) } },
      { range: { key: terms, limit: 1 } },
    ],
  })
  if (!succeeded) return undefined
  const written = responses[2]?.range?.kvs[0]?.version ?? 1
  return { lease, createRevision: header?.revision ?? 0, transitions: Math.max(0, written - 1) }
}

/** Of a process that has ended: deletes its key, unless another one has made it since. */
export async function deleteOwnerKey(client: EtcdClient, { owner: key }: EtcdKeys, createRevision: number) {
  await client.call(methods.txn, {
    compare: [{ target: compareTarget.create, key, createRevision }],
    success: [{ deleteRange: { key } }],
  })
}

/** False: the lease has ended. */
export function keptAlive(client: EtcdClient, id: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const fail = (error: EtcdError) => {
      clearTimeout(timer)
      reject(error)
    }
    const stream = client.stream(
      methods.leaseKeepAlive,
      { id },
      {
        message: ({ ttl }) => {
          clearTimeout(timer)
          stream.close()
          resolve(ttl > 0)
        },
        end: fail,
      },
    )
    const timer = setTimeout(() => {
      stream.close()
      fail(new EtcdError(grpcCode.deadlineExceeded, 'No answer from etcd'))
    }, callDeadlineMs)
  })
}

function processIn({ value }: KeyValue): OwnerProcess | undefined {
  try {
    const decoded = decode(ownerSchema, JSON.parse(value.toString('utf8')))
    return decoded.ok ? decoded.value : undefined
  } catch {
    return undefined
  }
}
