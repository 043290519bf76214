/** The manifests that the user of the world applies. */
import type { AnyObject } from '../../api/meta.ts'

export type Manifest = AnyObject & { readonly spec: { readonly [field: string]: unknown } }

/** The path of the list of its kind, below /apis or /api. */
export type Workload = {
  readonly path: string
  readonly resource: string
  readonly name: string
  readonly manifest: Manifest
}

export const image = 'app:1'

function template(name: string, command: readonly string[], more: { readonly [field: string]: unknown } = {}) {
  return {
    metadata: { labels: { app: name } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command }],
      ...more,
    },
  }
}

/** It ends when it is asked to. */
const serving = ['sh', '-c', 'trap "exit 0" TERM; sleep 1000000']

export function deployment(name: string, replicas: number): Workload {
  const manifest = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default' } },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name, serving) },
  }
  return { path: '/apis/apps/v1/namespaces/default/deployments', resource: 'deployments', name, manifest }
}

export function statefulSet(name: string, replicas: number): Workload {
  const manifest = {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace: 'default' } },
    spec: { replicas, serviceName: name, selector: { matchLabels: { app: name } }, template: template(name, serving) },
  }
  return { path: '/apis/apps/v1/namespaces/default/statefulsets', resource: 'statefulsets', name, manifest }
}

/** Whether a pod of this name is one of the StatefulSets `db` and `vault` that people of the world have. */
export function isInstance(pod: string): boolean {
  return /^(db|vault)-\d+$/.test(pod)
}

const claimsPath = '/api/v1/namespaces/default/persistentvolumeclaims'

/** It gets the default class, `local-path`. */
export function claim(name: string) {
  const manifest = {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace: 'default' } },
    spec: claimSpec,
  }
  return { path: claimsPath, resource: 'persistentvolumeclaims', name, manifest }
}

const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
const volumeMounts = [{ name: 'data', mountPath: '/data' }]

/** One pod, which is stopped before another one takes its place. */
export function withClaim(name: string, claimName: string): Workload {
  const { manifest, ...workload } = deployment(name, 1)
  const { spec, ...pod } = template(name, serving)
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName } }]
  const containers = spec.containers.map((container) => ({ ...container, volumeMounts }))
  const withVolume = { ...pod, spec: { ...spec, containers, volumes } }
  return {
    ...workload,
    manifest: { ...manifest, spec: { ...manifest.spec, strategy: { type: 'Recreate' }, template: withVolume } },
  }
}

/** Each pod has a claim `data-NAME-NUMBER`. */
export function statefulSetWithClaims(name: string, replicas: number): Workload {
  const { manifest, ...workload } = statefulSet(name, replicas)
  const { spec, ...pod } = template(name, serving)
  const containers = spec.containers.map((container) => ({ ...container, volumeMounts }))
  const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: claimSpec }]
  const withVolume = { ...pod, spec: { ...spec, containers } }
  return {
    ...workload,
    manifest: { ...manifest, spec: { ...manifest.spec, template: withVolume, volumeClaimTemplates } },
  }
}

/** A Deployment whose containers get a value of the Secret, and its files. */
export function withSecret(name: string, replicas: number, secret: string): Workload {
  const env = [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: secret, key: 'token' } } }]
  const { manifest, ...workload } = deployment(name, replicas)
  const { spec, ...pod } = template(name, serving)
  const volumeMounts = [{ name: 'keys', mountPath: '/keys' }]
  const volumes = [{ name: 'keys', secret: { secretName: secret } }]
  const containers = spec.containers.map((container) => ({ ...container, env, volumeMounts }))
  return {
    ...workload,
    manifest: { ...manifest, spec: { ...manifest.spec, template: { ...pod, spec: { ...spec, containers, volumes } } } },
  }
}

/** Each pod works for so many seconds. */
export function job(name: string, completions: number, seconds: number): Workload {
  const manifest = {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: 'default' } },
    spec: {
      ...{ completions, parallelism: 2, backoffLimit: 1_000 },
      template: template(name, ['work', String(seconds), '0'], { restartPolicy: 'OnFailure' }),
    },
  }
  return { path: '/apis/batch/v1/namespaces/default/jobs', resource: 'jobs', name, manifest }
}

/** Each pod has a container that is done in seconds, beside one that works for so many. */
export function pairJob(name: string, completions: number, seconds: number): Workload {
  const { manifest, ...workload } = job(name, completions, seconds)
  const { spec, ...pod } = template(name, ['work', String(seconds), '0'], { restartPolicy: 'OnFailure' })
  const containers = spec.containers.flatMap((main) => [{ ...main, name: 'quick', command: ['work', '5', '0'] }, main])
  const both = { ...pod, spec: { ...spec, containers } }
  return { ...workload, manifest: { ...manifest, spec: { ...manifest.spec, template: both } } }
}
