/**
 * Which network the pods of this fleet have, where the configuration does not choose: that of its pods so far, or, in a new fleet, one between
 * nodes. Every controller of a fleet comes to the same answer, as it is in the store.
 */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConfigMap } from '../../api/config-map.ts'
import { ConfigurationError } from '../../daemon/process/configuration-file.ts'
import {
  type ControllerConfiguration,
  type ControllerConfigurationFile,
  controllerConfiguration,
} from '../configuration/configuration.ts'
import { type PodNetworkKind, podNetworkOfNewFleet } from '../configuration/pod-network-configuration.ts'
import { apiServiceName } from '../configuration/server-names.ts'
import { serverCertificateName } from '../own-certificates/server-certificate.ts'
import { clusterInfoKey } from '../replicas/foreign-authority.ts'
import type { OpenedStore, Store } from '../store/store.ts'
import type { BrokerControllerNeeds } from './parts.ts'

export type FleetRecord = {
  /** Data of kube-public/cluster-info; undefined: no controller has led this store, or an early version has. */
  readonly clusterInfo: NonNullable<ConfigMap['data']> | undefined
  readonly hasNodes: boolean
  /**
   * For a store that began beside the authority of an earlier one: the kind that this controller served last;
   * undefined: not known.
   */
  readonly before: PodNetworkKind | undefined
}

export type ChosenPodNetwork = { readonly podNetwork: PodNetworkKind; readonly because: string }

type Fields = Pick<ControllerConfigurationFile, 'podNetwork' | 'allocateNodeCIDRs'>

/** Pure. */
export function choosePodNetwork(file: Fields, { clusterInfo, hasNodes, before }: FleetRecord): ChosenPodNetwork {
  const { podNetwork } = file
  if (podNetwork !== undefined) return { podNetwork, because: 'the configuration has it' }
  if (clusterInfo !== undefined) {
    const known = clusterInfo['clusterCIDR'] === undefined ? 'node' : 'routed'
    return { podNetwork: known, because: 'the fleet has it, as kube-public/cluster-info shows' }
  }
  if (before !== undefined) {
    return {
      podNetwork: before,
      because: 'the fleet had it before its store was lost, as the certificate of the server shows',
    }
  }
  if (hasNodes) return { podNetwork: 'node', because: 'the fleet is of an earlier version, whose default this is' }
  const because = file.allocateNodeCIDRs === false ? 'allocateNodeCIDRs is false' : 'the fleet is new'
  return { podNetwork: podNetworkOfNewFleet(file), because }
}

/**
 * The configuration with the network that the fleet has. Throws ConfigurationError where the rest of the configuration needs the other
 * one.
 */
export async function withFleetPodNetwork(
  { configuration, file, flags, log }: BrokerControllerNeeds,
  { store, origin }: Pick<OpenedStore, 'store' | 'origin'>,
): Promise<ControllerConfiguration> {
  const before = origin.acceptsCheckpoints ? await servedBefore(flags.dataDir) : undefined
  const chosen = choosePodNetwork(file, { ...(await recordIn(store)), before })
  log.info('Network of pods', chosen)
  const { podNetwork, because } = chosen
  try {
    const whole = controllerConfiguration({ flags, file: { ...file, podNetwork }, isTerminal: false })
    return { ...whole, log: configuration.log }
  } catch (cause) {
    if (!(cause instanceof ConfigurationError)) throw cause
    const given = `The configuration conflicts with podNetwork: ${podNetwork} (${because}):`
    throw new ConfigurationError(given, cause.problems)
  }
}

/**
 * Before this controller leads: another one may have led a fleet that was new when both started, with another configuration. Rejects if the
 * fleet has another network by now; the next start has that one.
 */
export async function verifyPodNetwork({ configuration, file }: BrokerControllerNeeds, store: Store): Promise<void> {
  const own: PodNetworkKind = configuration.podNetwork === undefined ? 'node' : 'routed'
  const { podNetwork } = choosePodNetwork(file, { ...(await recordIn(store)), before: own })
  if (podNetwork === own) return
  throw new Error(`The fleet has podNetwork: ${podNetwork} since this controller started with ${own}: start it again`)
}

async function recordIn(store: Store): Promise<Omit<FleetRecord, 'before'>> {
  const clusterInfo = await store.get('configmaps', clusterInfoKey)
  if (clusterInfo !== undefined) return { clusterInfo: clusterInfo.data ?? {}, hasNodes: true }
  return { clusterInfo: undefined, hasNodes: (await store.list('nodes')).items.length > 0 }
}

/** By the names in the certificate that the server had last: that of the Service of the API is among them where Services have a data path. */
async function servedBefore(dataDir: string): Promise<PodNetworkKind | undefined> {
  const pem = await readFile(join(dataDir, serverCertificateName), 'utf8').catch(() => undefined)
  if (pem === undefined) return undefined
  try {
    return new X509Certificate(pem).checkHost(apiServiceName) === undefined ? 'node' : 'routed'
  } catch {
    return undefined
  }
}
