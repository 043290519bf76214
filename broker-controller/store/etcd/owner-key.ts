/** The key `.store/owner`, which names the process that may write. It ends with the etcd lease of that process. */
import { decode } from '../../../api/decode.ts'
import { integer, object, oneOf, optional, text } from '../../../api/schema.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { startDeadline } from '../../../daemon/deadline.ts'
import { callDeadlineMs, type EtcdClient } from './etcd-client.ts'
import { EtcdError, grpcCode, maySucceedElsewhere } from './etcd-error.ts'
import type { EtcdKeys } from './etcd-keys.ts'
import { compareTarget, type KeyValue, methods } from './etcd-messages.ts'

/** A process, in a form that shows another one on the same machine whether it is still there. */
export type OwnerProcess = {
  readonly host: string
  readonly pid: number
  /** The boot of the machine and the namespace that `pid` belongs to. */
  readonly place: string
  /** When the process began, in the kernel's units: a number of another process is not proof. */
  readonly began: string
  /** `https://HOST:PORT` of its API. */
  readonly server?: string | undefined
}

export type PresentOwner = {
  readonly createRevision: number
  /** Lease of etcd with which the key ends. */
  readonly lease: string
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
  return present && { createRevision: present.createRevision, lease: present.lease, process: processIn(present) }
}

/** What a process does to hold the key. */
export interface OwnerClaims {
  /**
   * Makes the key. undefined: another process was faster. Rejects with EtcdError; the key may have been made then, and `madeBefore`
   * finds it.
   */
  claim(self: OwnerProcess): Promise<HeldKey | undefined>
  /** The key, where a claim made it that was not answered. undefined: it is of another process, or its lease has ended. */
  madeBefore(present: PresentOwner): Promise<HeldKey | undefined>
  /** Ends the lease of the last claim, and the key with it. Repeated for 3 s while etcd does not answer; rejects with EtcdError. */
  release(): Promise<void>
}

const releaseMs = 3_000
const pauseMs = 250

/**
 * All claims use one lease while it lasts, so that a key that a claim made without an answer is recognized by it. Only
 * one of two claims in flight creates the key: both have the condition that it does not exist.
 */
export function ownerClaims(client: EtcdClient, keys: EtcdKeys, leaseSeconds: number, clock: Clock): OwnerClaims {
  let lease: string | undefined
  return {
    async claim(self) {
      if (lease === undefined || !(await keptAlive(client, lease, clock))) {
        lease = (await client.call(methods.leaseGrant, { ttl: leaseSeconds })).id
      }
      return claimOwnerKey(client, keys, self, lease)
    },
    async madeBefore(present) {
      if (present.lease !== lease || !(await keptAlive(client, lease, clock))) return undefined
      const { kvs } = await client.call(methods.range, { key: keys.terms, limit: 1 })
      return { lease, createRevision: present.createRevision, transitions: transitionsIn(kvs[0]) }
    },
    async release() {
      const id = lease
      lease = undefined
      if (id !== undefined) await revoked(client, id, clock)
    },
  }
}

async function revoked(client: EtcdClient, id: string, clock: Clock): Promise<void> {
  const untilMs = clock.monotonicMs() + releaseMs
  for (;;) {
    try {
      await client.call(methods.leaseRevoke, { id })
      return
    } catch (error) {
      if (error instanceof EtcdError && error.code === grpcCode.notFound) return
      if (!maySucceedElsewhere(error) || clock.monotonicMs() + pauseMs > untilMs) throw error
      await clock.sleep(pauseMs)
    }
  }
}

/** etcd counts how often a key was written. */
function transitionsIn(terms: KeyValue | undefined): number {
  return Math.max(0, (terms?.version ?? 1) - 1)
}

async function claimOwnerKey(
  client: EtcdClient,
  { owner: key, terms }: EtcdKeys,
  self: OwnerProcess,
  lease: string,
): Promise<HeldKey | undefined> {
  const { succeeded, header, responses } = await client.call(methods.txn, {
    compare: [{ target: compareTarget.create, key, createRevision: 0 }],
    success: [
      { put: { key, lease, value: Buffer.from(JSON.stringify({ kind: 'StoreOwner', ...self })) } },
      { put: { key: terms, value: Buffer.alloc(0) } },
      { range: { key: terms, limit: 1 } },
    ],
  })
  if (!succeeded) return undefined
  return { lease, createRevision: header?.revision ?? 0, transitions: transitionsIn(responses[2]?.range?.kvs[0]) }
}

/** Deletes the key of a process that has ended, unless another one has created it since. */
export async function deleteOwnerKey(client: EtcdClient, { owner: key }: EtcdKeys, createRevision: number) {
  await client.call(methods.txn, {
    compare: [{ target: compareTarget.create, key, createRevision }],
    success: [{ deleteRange: { key } }],
  })
}

/** False: the lease has ended. */
export function keptAlive(client: Pick<EtcdClient, 'stream'>, id: string, clock: Clock): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const fail = (error: EtcdError) => {
      stop()
      reject(error)
    }
    const stream = client.stream(
      methods.leaseKeepAlive,
      { id },
      {
        message: ({ ttl }) => {
          stop()
          stream.close()
          resolve(ttl > 0)
        },
        end: fail,
      },
    )
    const giveUp = () => {
      stream.close()
      fail(new EtcdError(grpcCode.deadlineExceeded, 'No answer from etcd'))
    }
    const stop = startDeadline(callDeadlineMs, giveUp, clock)
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
