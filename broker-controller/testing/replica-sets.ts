/** Deployments and their ReplicaSets for tests of decisions; pass only the fields the test is about. */
import type { DeploymentSpec, DeploymentStatus } from '../../api/workloads/deployment.ts'
import type { ReplicaSetStatus } from '../../api/workloads/replica-set.ts'
import type { StoredObject } from '../store/store.ts'

const born = '2026-01-01T00:00:00Z'
const labels = { app: 'web' }

export type ReplicaSetOverrides = {
  readonly image?: string
  readonly replicas?: number
  readonly minReadySeconds?: number
  readonly annotations?: { readonly [key: string]: string }
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly generation?: number
  readonly status?: Partial<ReplicaSetStatus>
}

/** A ReplicaSet of the image `web:1`, without replicas. */
export function aReplicaSet(name: string, over: ReplicaSetOverrides = {}): StoredObject<'replicasets'> {
  const { image = 'web:1', replicas = 0, status, minReadySeconds, ...metadata } = over
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      ...{ name, namespace: 'default', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: born },
      ...metadata,
    },
    spec: {
      replicas,
      ...(minReadySeconds !== undefined && { minReadySeconds }),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image }] } },
    },
    ...(status && { status: { replicas: 0, ...status } }),
  }
}

export type DeploymentOverrides = Partial<DeploymentSpec> & {
  readonly status?: DeploymentStatus
  readonly image?: string
  readonly annotations?: { readonly [key: string]: string }
  readonly generation?: number
  readonly deletionTimestamp?: string
}

/** The Deployment `web` of ten pods of the image `web:1`, with a rolling update of at most 3 pods more and 2 less. */
export function aDeployment(over: DeploymentOverrides = {}): StoredObject<'deployments'> {
  const { status, image = 'web:1', annotations, generation = 1, deletionTimestamp, ...spec } = over
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      ...{ name: 'web', namespace: 'default', uid: 'uid-of-web', resourceVersion: '1', creationTimestamp: born },
      generation,
      ...(annotations && { annotations }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    spec: {
      replicas: 10,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image }] } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } },
      ...spec,
    },
    ...(status && { status }),
  }
}
