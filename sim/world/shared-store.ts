/** The store that several controllers of a world share: an etcd, and what each change in it means. */
import { etcdKeys } from '../../broker-controller/store/etcd/etcd-keys.ts'
import type { Row } from '../../broker-controller/store/sqlite/sqlite-file.ts'
import { etcdKeyspace, type KeyChange } from '../etcd/etcd-keyspace.ts'
import { type EtcdServers, etcdMachine, serveEtcd } from '../etcd/simulated-etcd.ts'
import type { Fact } from '../story/facts.ts'
import { beginLife } from './life.ts'
import type { RandomSource } from './random-source.ts'
import { servers } from './servers.ts'
import type { SimulatedNetwork } from './simulated-network.ts'
import type { SimulatedTime } from './simulated-time.ts'

export interface SharedStore {
  readonly etcd: EtcdServers
  readonly prefix: string
  rows(): readonly (Row & { readonly body: string })[]
  /** Changes so far cannot be watched any more. */
  compact(): void
}

export type SharedStoreNeeds = {
  readonly time: SimulatedTime
  readonly network: SimulatedNetwork
  readonly random: RandomSource
  readonly record: (fact: Fact) => void
}

const prefix = '/bramble/world'

export function sharedStore({ time, network, random, record }: SharedStoreNeeds): SharedStore {
  const keys = etcdKeys(prefix)
  const owner = keys.owner.toString()
  let leader: string | undefined
  const changed = ({ key, value, revision: version, by }: KeyChange) => {
    if (key.toString() === owner) {
      leader = value === undefined ? undefined : machineIn(value)
      return
    }
    const name = keys.parse(key)
    if (name === undefined) return
    const object = { resource: name.resource, namespace: name.namespace, name: name.name }
    if (by !== undefined) record({ kind: 'wrote', ...object, controller: by, leader })
    record({ kind: 'stored', ...object, version, body: value?.toString() })
  }
  const keyspace = etcdKeyspace(time, changed)
  const origin = { id: 'store-of-the-world', acceptsCheckpoints: false }
  keyspace.txn({ success: [{ put: { key: keys.origin, value: Buffer.from(JSON.stringify(origin)) } }] }, etcdMachine)
  const etcd: EtcdServers = servers(network)
  const place = { life: beginLife({ time, random: random.next }), machine: etcdMachine }
  // Nodes have radio links; etcd and the controllers have cables.
  serveEtcd(keyspace, place, { ...network, delayMs: () => network.delayMs() / 10 }, etcd)
  return {
    etcd,
    prefix,
    rows: () =>
      keyspace.all.flatMap(({ key, value, modRevision }) => {
        const name = keys.parse(key)
        return name === undefined ? [] : [{ ...name, version: modRevision, body: value.toString() }]
      }),
    compact: keyspace.compact,
  }
}

/** The machine of the controller that this value of the owner's key names. */
function machineIn(value: Buffer): string | undefined {
  const { server } = JSON.parse(value.toString()) as { readonly server?: string }
  return server?.replace('https://', '')
}
