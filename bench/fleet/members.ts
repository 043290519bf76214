/** Three members of etcd on this machine, and what they use. */
import { defaultEtcdPrefix } from '../../broker-controller/configuration/etcd-configuration.ts'
import type { EtcdPlace } from '../../broker-controller/store/etcd/etcd-place.ts'
import { etcdCluster } from '../../test/support/etcd.ts'
import { etcdFields } from '../../test/support/replicas.ts'
import { processFigures } from './process-figures.ts'

export interface Members {
  /** For the configuration file of the controller whose objects are in the place of this name. */
  fields(name: string): Readonly<Record<string, unknown>>
  place(name: string): EtcdPlace
  /** CPU time of all members, in milliseconds. */
  cpuMs(): number
  residentBytes(): readonly number[]
  end(): Promise<void>
}

/** More than 10,000 nodes with their first reports take. */
const quotaBytes = 4 * 2 ** 30

export async function startMembers(): Promise<Members> {
  const cluster = await etcdCluster({ size: 3, tls: true, flags: ['--quota-backend-bytes', String(quotaBytes)] })
  const figures = cluster.members.map(({ pid }) => processFigures(pid ?? 0))
  const prefix = (name: string) => `${defaultEtcdPrefix}-${name}`
  return {
    fields: (name) => ({ ...etcdFields(cluster), etcdPrefix: prefix(name) }),
    place: (name) => ({ servers: cluster.urls, prefix: prefix(name), tls: cluster.tls ?? {} }),
    cpuMs: () => figures.reduce((sum, one) => sum + one.cpuMs(), 0),
    residentBytes: () => figures.map((one) => one.residentBytes()),
    end: cluster.remove,
  }
}
