/** The Secrets in etcd, for `protectSecrets`: which keys they need, and their encryption with another one. */
import type { SealedSecrets } from '../encryption/protected-secrets.ts'
import type { ObjectKey } from '../store.ts'
import type { EtcdClient } from './etcd-client.ts'
import type { EtcdKeys, StoredKey } from './etcd-keys.ts'
import { compareTarget, type KeyValue, methods } from './etcd-messages.ts'
import { readRange } from './etcd-range.ts'
import { type EtcdValues, sealedKind, sealingKeyOf } from './etcd-values.ts'
import type { Fence } from './fence.ts'
import { ownedBy, storeLost } from './store-owner.ts'

export type EtcdSecretsNeeds = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly values: EtcdValues
  readonly fence: Fence
}

const secretsAtOnce = 20

/** A Secret that is encrypted again is a change with a version of its own, as in Kubernetes. */
export function etcdSecrets({ client, keys, values, fence }: EtcdSecretsNeeds): SealedSecrets {
  const range = keys.kind(sealedKind)
  let current: string | undefined
  /** So that another controller does not encrypt with a key of its own. */
  const recordKey = async () => {
    if (current === undefined) return
    const { kvs } = await client.call(methods.range, { key: keys.secretsKey, limit: 1 })
    if (kvs[0]?.value.toString() === current) return
    const { succeeded } = await client.call(methods.txn, {
      compare: [ownedBy(fence, keys.prefix)],
      success: [{ put: { key: keys.secretsKey, value: Buffer.from(current) } }],
    })
    if (!succeeded) throw storeLost(keys.prefix)
  }
  /** What is there instead; undefined: nothing, or it is replaced. */
  const replaced = async (parsed: StoredKey, { key, value, modRevision }: KeyValue): Promise<KeyValue | undefined> => {
    const { succeeded, responses } = await client.call(methods.txn, {
      compare: [{ target: compareTarget.mod, key, modRevision }, ownedBy(fence, keys.prefix)],
      success: [{ put: { key, value: values.encodeBody(parsed, values.bodyOf(parsed, value)) } }],
      failure: [{ range: { key, limit: 1 } }],
    })
    return succeeded ? undefined : responses[0]?.range?.kvs[0]
  }
  /** Rejects where it cannot be written: its key must then stay. */
  const reseal = async (stored: KeyValue) => {
    const parsed = keys.parse(stored.key)
    let present: KeyValue | undefined = stored
    while (parsed !== undefined && present !== undefined && !values.isCurrent(present.value)) {
      const next = await replaced(parsed, present)
      if (next?.modRevision === present.modRevision) {
        fence.failed()
        throw storeLost(keys.prefix)
      }
      present = next
    }
  }
  return {
    async keyIDs() {
      const { kvs } = await client.call(methods.range, { key: keys.secretsKey, limit: 1 })
      const ids = new Set(kvs.map(({ value }) => value.toString()))
      await readRange(client, range, (page) => {
        for (const { value } of page) {
          const id = sealingKeyOf(value)
          if (id !== undefined) ids.add(id)
        }
      })
      return [...ids]
    },
    use(given) {
      current = given[0].id
      values.use(given)
    },
    async resealSome(after: ObjectKey) {
      const key =
        after.name === '' ? range.key : Buffer.concat([keys.of({ resource: sealedKind, ...after }), Buffer.of(0)])
      const { kvs } = await client.call(methods.range, { key, rangeEnd: range.rangeEnd, limit: secretsAtOnce })
      for (const kv of kvs) await reseal(kv)
      const last = kvs.at(-1)
      if (last === undefined) await recordKey()
      return last && keys.parse(last.key)
    },
    mayHoldPlain: () => false,
    removePlain: () => undefined,
  }
}
