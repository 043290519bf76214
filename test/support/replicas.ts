/** Several controllers on one etcd: each with a loopback address and a data directory of its own. */
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../agent/testing/free-port.ts'
import { ownAddresses } from './addresses.ts'
import { type EtcdCluster, etcdCluster } from './etcd.ts'
import { type Controller, startController, temporaryFolder } from './fleet.ts'

export type Replicas = {
  readonly folder: string
  readonly etcd: EtcdCluster
  /** The first one leads. */
  readonly controllers: readonly Controller[]
  /** Where each of them is, whether it was started or not. */
  readonly places: readonly ReplicaPlace[]
  /** The controller of this number, again; with a configuration file where one is given. `standsBy` false: none leads. */
  start(number: number, standsBy?: boolean, config?: string): Promise<Controller>
}

export type ReplicaPlace = { readonly dataDir: string; readonly address: string; readonly mqttPort: number }

/** The configuration of a controller whose store is in this etcd. */
export function etcdFields({ urls, tls }: EtcdCluster) {
  const files = tls?.files
  return { etcdServers: urls, etcdCAFile: files?.ca, etcdCertFile: files?.certificate, etcdKeyFile: files?.key }
}

/** Starts etcd and then so many controllers, one after the other. The authority of the first is copied to the others. */
export async function startReplicas(
  t: Test,
  {
    count = 2,
    members = 1,
    settings = {},
    ownPids = false,
    joined = count,
  }: {
    readonly count?: number
    /** How many of them are started with a copy of the first one's authority. */
    readonly joined?: number
    /** Of etcd. */
    readonly members?: number
    readonly settings?: Readonly<Record<string, unknown>>
    /** Of the first controller: as if it were on another machine. */
    readonly ownPids?: boolean
  } = {},
): Promise<Replicas> {
  const folder = await temporaryFolder(t)
  const etcd = await etcdCluster({ size: members, tls: true })
  t.teardown(() => etcd.remove())
  const prefix = await ownAddresses()
  const places = await Promise.all(
    Array.from({ length: count }, async (_, i) => ({
      dataDir: join(folder, `controller-${i}`),
      address: prefix.replace(/^10\.(.*)/, `127.$1.${i + 1}`),
      apiPort: await freePort(),
      mqttPort: await freePort(),
    })),
  )
  const start = async (number: number, standsBy = true, config?: string) => {
    const place = places[number]
    if (place === undefined) throw new Error(`There is no controller ${number}`)
    return startController(t, {
      ...place,
      settings: { clusterCIDR: `${prefix}.0/20`, ...etcdFields(etcd), ...settings },
      ...(standsBy && { standsBy }),
      ...(config !== undefined && { config }),
      ...(ownPids && number === 0 && !standsBy && { ownPids }),
    })
  }
  const controllers: Controller[] = [await start(0, false)]
  for (const [number, { dataDir }] of places.entries()) {
    if (number === 0 || number >= joined) continue
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    for (const name of ['authority', 'secrets.key']) {
      await cp(join(folder, 'controller-0', name), join(dataDir, name), { recursive: true })
    }
    controllers.push(await start(number))
  }
  return { folder, etcd, controllers, places, start }
}
