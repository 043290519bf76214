/** One member of etcd for the tests of a file, and a prefix of its own for each store. */
import { t as tap } from 'tap'
import { openLog } from '../../daemon/log.ts'
import { int64, messageCodec } from '../../daemon/protobuf/protobuf-codec.ts'
import { unstalledClock } from '../../daemon/testing/unstalled-clock.ts'
import { etcdCluster, noEtcd } from '../../test/support/etcd.ts'
import { openEtcdClient } from '../store/etcd/etcd-client.ts'
import type { Method } from '../store/etcd/etcd-messages.ts'
import type { EtcdStoreNeeds } from '../store/etcd/etcd-store.ts'

/** Neither a process that gets no turn for some seconds nor a busy member of etcd is an error. */
const patience = { clock: unstalledClock(), deadlineMs: 30_000 }

export type EtcdUnderTest = {
  readonly url: string
  /** What opens a store on a prefix that no other has. */
  place(prefix?: string): EtcdStoreNeeds & { readonly prefix: string }
}

/** `flags`: more of etcd's. It is removed at the end of the file's tests. With `noEtcd` nothing is started. */
export async function etcdUnderTest(...flags: readonly string[]): Promise<EtcdUnderTest> {
  const cluster = noEtcd ? undefined : await etcdCluster({ flags })
  tap.teardown(() => cluster?.remove())
  const [url = ''] = cluster?.urls ?? []
  const log = openLog({ level: 'error', format: 'json', write: () => undefined })
  let prefixes = 0
  return {
    url,
    place: (prefix = `/bramble/test-${++prefixes}`) => ({ servers: [url], tls: {}, prefix, ...patience, log }),
  }
}

/** A client of the test's own, without TLS. The caller closes it. */
export async function rawClient(url: string) {
  const log = openLog({ level: 'error', format: 'json', write: () => undefined })
  return openEtcdClient({ servers: [url], tls: {}, ...patience, log })
}

const compaction = messageCodec({ revision: [1, int64] })

/** Drops all revisions before this one. */
export const compactMethod: Method<object, { readonly revision?: number }> = {
  path: '/etcdserverpb.KV/Compact',
  request: compaction,
  answer: messageCodec({}),
}
