import { test } from 'tap'
import { administrator } from '../../api/identity.ts'
import type { Container, Pod, PodSpec, Toleration } from '../../api/pod.ts'
import { resources } from '../../api/resources.ts'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { metadataChangeProblems } from '../../api/validation/metadata-validation.ts'
import { podProblems } from '../../api/validation/pod-validation.ts'
import { growth, linearAtMost } from '../../daemon/testing/growth.ts'
import { kinds } from '../assembly/control-plane.ts'
import { anApi, patchTypes } from '../testing/api-in-memory.ts'
import { largeObjects } from '../testing/largest-objects.ts'
import { ephemeralChangeProblems, gateChangeProblems, podChangeProblems } from './kinds/pod-change.ts'

const facts = { nowMs: 0, requester: administrator }
const many = <T>(count: number, item: (name: string, index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => item(`n${index}`, index))
const one: Container = { name: 'main', image: 'a' }
const podWith = (spec: Partial<PodSpec>): Pod => ({ ...aPod({ name: 'web' }), spec: { containers: [one], ...spec } })
const spread = (topologyKey: string) => ({ maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule' }) as const
const gates = (count: number) => many(count, (name) => ({ name }))
const tolerations = (count: number): readonly Toleration[] => many(count, (key) => ({ key, operator: 'Exists' }))

/** Lists whose items are compared with each other, or with those of another list. */
const checks: { readonly [what: string]: (size: number) => () => unknown } = {
  taints: (size) => {
    const node = { ...aNode(), spec: { taints: many(size, (key) => ({ key, effect: 'NoSchedule' }) as const) } }
    return () => kinds.nodes.validateCreate?.(node, facts)
  },
  usages: (size) => {
    const spec = { request: '', signerName: 'a/b', usages: many(size, (name) => name) }
    const request = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: {},
      spec,
    } as const
    return () => kinds.certificatesigningrequests.validateCreate?.(request, facts)
  },
  finalizers: (size) => {
    const old = { finalizers: many(size, (name) => name), deletionTimestamp: '2026-01-01T00:00:00Z' }
    const now = { finalizers: old.finalizers.toReversed() }
    return () => metadataChangeProblems(old, now)
  },
  ports: (size) => {
    const ports = many(
      size,
      (name, index) => ({ name, containerPort: 80, hostPort: index + 1, protocol: 'TCP' }) as const,
    )
    return ofPod({ containers: [{ ...one, ports }] })
  },
  containers: (size) => ofPod({ containers: many(size, (name) => ({ name, image: 'a' })) }),
  'init containers': (size) => ofPod({ initContainers: many(size, (name) => ({ name, image: 'a' })) }),
  volumes: (size) => ofPod({ volumes: many(size, (name) => ({ name, emptyDir: {} })) }),
  mounts: (size) =>
    ofPod({ containers: [{ ...one, volumeMounts: many(size, (name) => ({ name, mountPath: `/${name}` })) }] }),
  spreading: (size) => ofPod({ topologySpreadConstraints: many(size, spread) }),
  'scheduling gates': (size) => ofPod({ schedulingGates: gates(size) }),
  'changed gates': (size) => {
    const [old, now] = [
      podWith({ schedulingGates: gates(size) }),
      podWith({ schedulingGates: gates(size).toReversed() }),
    ]
    return () => gateChangeProblems(old.spec, now.spec)
  },
  'changed tolerations': (size) => {
    const old = podWith({ tolerations: tolerations(size) })
    const now = podWith({ tolerations: tolerations(size).toReversed() })
    return () => podChangeProblems(old, now)
  },
  'ephemeral containers': (size) => {
    const ephemeralContainers = many(size, (name) => ({ name, image: 'a' }))
    const [old, now] = [
      podWith({ ephemeralContainers }),
      podWith({ ephemeralContainers: ephemeralContainers.toReversed() }),
    ]
    return () => ephemeralChangeProblems(old, now)
  },
}

function ofPod(spec: Partial<PodSpec>): () => unknown {
  const pod = podWith(spec)
  return () => podProblems(pod)
}

for (const [what, prepare] of Object.entries(checks)) {
  test(`the cost of checking ${what} grows with their number, not with its square`, async (t) => {
    const cost = growth(2_000, prepare)
    t.ok(cost < linearAtMost, `${cost} times for 8 times the number`)
  })
}

test('many mounts in many containers do not look through all volumes each', async (t) => {
  const cost = growth(250, (size) =>
    ofPod({
      containers: many(size, (name) => ({ name, image: 'a', volumeMounts: [{ name, mountPath: '/a' }] })),
      volumes: many(size * 4, (name) => ({ name, emptyDir: {} })),
    }),
  )
  t.ok(cost < linearAtMost, `${cost} times for 8 times the number`)
})

for (const resource of Object.values(resources)) {
  test(`whatever list of ${resource.name} is long, a request is answered`, async (t) => {
    const { ask } = await anApi(t)
    const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
    const path = resource.namespaced ? `${root}/namespaces/default/${resource.name}` : `${root}/${resource.name}`
    for (const { field, object } of largeObjects(resource)) {
      const made = await ask('POST', path, { body: object(200, 'a') })
      t.ok(made.code < 500, `POST ${field}: ${made.code}`)
      const patched = await ask('PATCH', `${path}/large`, { body: object(200, 'b'), type: patchTypes.strategic })
      t.ok(patched.code < 500, `PATCH ${field}: ${patched.code}`)
    }
  })
}
