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
  /**
   * The controller of this number, again; with a configuration file where one is given. `standsBy` false: none leads; 'perhaps': it is started
   * beside others, and which one leads is open.
   */
  start(number: number, standsBy?: boolean | 'perhaps', config?: string): Promise<Controller>
}

export type ReplicaPlace = { readonly dataDir: string; readonly address: string; readonly mqttPort: number }

/** The configuration of a controller whose store is in this etcd. */
export function etcdFields({ urls, tls }: EtcdCluster) {
  const files = tls?.files
  return { etcdServers: urls, etcdCAFile: files?.ca, etcdCertFile: files?.certificate, etcdKeyFile: files?.key }
}

/** Starts etcd and then this many controllers, one after the other. The authority of the first is copied to the others. */
export async function startReplicas(
  t: Test,
  options: PlaceOptions & {
    /** How many of them are started with a copy of the first one's authority. */
    readonly joined?: number
  } = {},
): Promise<Replicas> {
  const { folder, etcd, places, start } = await replicaPlaces(t, options)
  const { joined = places.length } = options
  const controllers: Controller[] = [await start(0, false)]
  for (const number of places.keys()) {
    if (number === 0 || number >= joined) continue
    await copyFiles(places, number)
    controllers.push(await start(number))
  }
  return { folder, etcd, controllers, places, start }
}

/** The files of the fleet from the first place to this one, as a user copies them. */
export async function copyFiles(places: readonly ReplicaPlace[], number: number): Promise<void> {
  const [from, to] = [places[0], places[number]]
  if (from === undefined || to === undefined) throw new Error(`There is no controller ${number}`)
  await mkdir(to.dataDir, { recursive: true, mode: 0o700 })
  for (const name of ['authority', 'secrets.key']) {
    await cp(join(from.dataDir, name), join(to.dataDir, name), { recursive: true })
  }
}

export type PlaceOptions = {
  readonly count?: number
  /** Members of etcd. */
  readonly members?: number
  readonly settings?: Readonly<Record<string, unknown>>
  /** For the first controller: as if it were on another machine. */
  readonly ownPids?: boolean
}

/** Starts etcd, and no controller. */
export async function replicaPlaces(
  t: Test,
  { count = 2, members = 1, settings = {}, ownPids = false }: PlaceOptions = {},
): Promise<Omit<Replicas, 'controllers'>> {
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
  const start: Replicas['start'] = async (number, standsBy = true, config) => {
    const place = places[number]
    if (place === undefined) throw new Error(`There is no controller ${number}`)
    return startController(t, {
      ...place,
      settings: { clusterCIDR: `${prefix}.0/20`, ...etcdFields(etcd), ...settings },
      ...(standsBy !== false && { standsBy }),
      ...(config !== undefined && { config }),
      ...(ownPids && number === 0 && !standsBy && { ownPids }),
    })
  }
  return { folder, etcd, places, start }
}
