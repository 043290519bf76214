/** The objects every fleet has from its first moment. */
import { isApiError } from '../../api/api-error.ts'
import type { ConfigMap } from '../../api/config-map.ts'
import { standardFlowSchemas, standardPriorityLevels } from '../../api/flow-control/standard-objects.ts'
import { systemPriorityClasses } from '../../api/priority-class.ts'
import { localProvisioner } from '../../api/storage/pools.ts'
import { defaultStorageClass, type StorageClass } from '../../api/storage/storage-class.ts'
import { kubeconfigText } from '../../certs/kubeconfig.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { PodNetworkSettings } from '../configuration/pod-network-configuration.ts'
import { ensureDefaultRoles } from '../default-roles/reconcile-roles.ts'
import { rewrite } from '../store/rewrite.ts'
import { isWithoutRoom, type Store } from '../store/store.ts'

const namespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** All of them, and the roles of Kubernetes. */
export async function ensureFleetObjects(store: Store, clock: Clock): Promise<void> {
  await ensureNamespaces(store)
  await ensurePriorityClasses(store)
  await ensureFlowControl(store)
  await ensureDefaultRoles({ store, clock })
  await ensureLocalClass(store, clock)
}

export interface BootstrapObjects extends Loop {
  /** Creates them. In a fleet that has its namespaces, what a full store refuses is created by the loop: without the API no space could be freed. */
  ensure(): Promise<void>
  /** Some were refused, and the loop tries again. */
  lacksRoom(): boolean
}

const retryMs = 60_000

export function bootstrapObjects({ store, clock, log }: { store: Store; clock: Clock; log: Log }): BootstrapObjects {
  let isIncomplete = false
  const ensure = async () => {
    try {
      await ensureFleetObjects(store, clock)
      if (isIncomplete) log.info('The new objects of the fleet are created')
      isIncomplete = false
    } catch (error) {
      const present = await Promise.all(namespaces.map((name) => store.get('namespaces', { namespace: '', name })))
      if (!isWithoutRoom(error) || present.includes(undefined)) throw error
      if (!isIncomplete)
        log.warn('The store has no room for new objects of the fleet yet', { error, retryInMs: retryMs })
      isIncomplete = true
    }
  }
  return {
    name: 'fleet-objects',
    ensure,
    lacksRoom: () => isIncomplete,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(retryMs, signal)
        if (signal.aborted || !isIncomplete) continue
        await ensure().catch((error: unknown) => log.debug('New objects of the fleet not created', { error }))
      }
    },
  }
}

export async function ensureNamespaces(store: Store): Promise<void> {
  await Promise.all(
    namespaces.map(async (name) => {
      if ((await store.get('namespaces', { namespace: '', name })) !== undefined) return
      const labels = { 'kubernetes.io/metadata.name': name }
      await store.create('namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, labels },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      })
    }),
  )
}

/** The two classes the system's own pods name. */
export async function ensurePriorityClasses(store: Store): Promise<void> {
  await Promise.all(
    systemPriorityClasses.map(async (priorityClass) => {
      const name = priorityClass.metadata.name ?? ''
      if ((await store.get('priorityclasses', { namespace: '', name })) !== undefined) return
      await store.create('priorityclasses', priorityClass)
    }),
  )
}

/** The class of a new fleet. */
const localClass: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'local-path', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: localProvisioner,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
  allowVolumeExpansion: true,
}

/** On the namespace kube-system: the class was made once. */
const classMadeAnnotation = 'bramble.dev/made-storage-class'

/** Once in the life of a store: a class that its owner deleted, or that is not the default any more, stays so. */
export async function ensureLocalClass(store: Store, clock: Clock): Promise<void> {
  const key = { namespace: '', name: 'kube-system' }
  const system = await store.get('namespaces', key)
  if (system === undefined || system.metadata.annotations?.[classMadeAnnotation] !== undefined) return
  const { items } = await store.list('storageclasses')
  const { name = '', annotations, ...metadata } = localClass.metadata
  // The newest of several defaults would be taken.
  const isDefault = defaultStorageClass(items) === undefined
  if (!items.some((one) => one.metadata.name === name)) {
    await store.create('storageclasses', {
      ...localClass,
      metadata: { ...metadata, name, ...(isDefault && annotations && { annotations }) },
    })
  }
  await rewrite({ store, clock }, 'namespaces', {
    key,
    change: (found) => ({
      ...found,
      metadata: {
        ...found.metadata,
        annotations: { ...found.metadata.annotations, [classMadeAnnotation]: localClass.metadata.name ?? '' },
      },
    }),
  })
}

/** The priority levels and flow schemas that every cluster has. The limits of this API do not follow them. */
export async function ensureFlowControl(store: Store): Promise<void> {
  await Promise.all([
    ...standardPriorityLevels.map(async (level) => {
      const key = { namespace: '', name: level.metadata.name ?? '' }
      if ((await store.get('prioritylevelconfigurations', key)) !== undefined) return
      await store.create('prioritylevelconfigurations', level)
    }),
    ...standardFlowSchemas.map(async (schema) => {
      const key = { namespace: '', name: schema.metadata.name ?? '' }
      if ((await store.get('flowschemas', key)) === undefined) await store.create('flowschemas', schema)
    }),
  ])
}

export type ClusterInfo = {
  /** `https://HOST:PORT` as other machines reach it. */
  readonly server: string
  readonly mqttPort: number
  /** The authorities' certificates, PEM, and the hash of the one that signs, which comes first. */
  readonly trusted: string
  readonly caHash: string
  /** Addresses of all controllers, those of this one first; undefined: it is the only one. */
  readonly servers?: ServerLists | undefined
  /** Ranges of pod and Service addresses; undefined: the fleet has no network of its own. */
  readonly ranges?: Pick<PodNetworkSettings, 'clusterCIDR' | 'serviceCIDR' | 'ipv6'> | undefined
}

/** `https://HOST:PORT` and `mqtts://HOST:PORT` of each controller. */
export type ServerLists = { readonly apiServers: readonly string[]; readonly mqttServers: readonly string[] }

/**
 * ConfigMap kube-public/cluster-info: the addresses and authorities for machines that join, readable without authentication.
 * Resolves with the authority's hash that it had before, if any.
 */
export async function ensureClusterInfo(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { server, mqttPort, trusted, caHash, servers, ranges }: ClusterInfo,
): Promise<string | undefined> {
  const key = { namespace: 'kube-public', name: 'cluster-info' }
  const data = {
    kubeconfig: kubeconfigText({ server, ca: trusted }),
    mqttPort: String(mqttPort),
    caHash,
    authorities: trusted,
    ...(servers && { apiServers: servers.apiServers.join('\n'), mqttServers: servers.mqttServers.join('\n') }),
    ...(ranges && { clusterCIDR: ranges.clusterCIDR, serviceCIDR: ranges.serviceCIDR }),
    // Agents of earlier versions read IPv4 ranges in the fields above.
    ...(ranges?.ipv6 && { ipv6ClusterCIDR: ranges.ipv6.clusterCIDR, ipv6ServiceCIDR: ranges.ipv6.serviceCIDR }),
  }
  const map: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data }
  const before = await store.get('configmaps', key)
  try {
    await store.create('configmaps', map)
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error
    await rewrite({ store, clock }, 'configmaps', {
      key,
      change: (present) => ({ ...present, data: { ...withoutOptional(present.data), ...data } }),
    })
  }
  return before?.data?.['caHash']
}

const rangeFields = ['clusterCIDR', 'serviceCIDR', 'ipv6ClusterCIDR', 'ipv6ServiceCIDR']
const optionalFields = ['apiServers', 'mqttServers', ...rangeFields]

/**
 * Removes the optional fields of a fleet that had several controllers and has one: its machines must not look for the
 * others.
 */
function withoutOptional(data: ConfigMap['data'] = {}): NonNullable<ConfigMap['data']> {
  return Object.fromEntries(Object.entries(data).filter(([name]) => !optionalFields.includes(name)))
}
