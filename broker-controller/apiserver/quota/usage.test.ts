import { test } from 'tap'
import { formatAmounts } from '../../../api/limits/resource-amounts.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Service } from '../../../api/network/service.ts'
import type { Pod } from '../../../api/pod.ts'
import { resources } from '../../../api/resources.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { countedUntilMs, missingInPod, resourcesOfKind, usageOf } from './usage.ts'

const usage = (pod: Pod, nowMs = 0) => formatAmounts(usageOf(resources.pods, pod, nowMs))
const service = (spec: Service['spec']): Service => ({ apiVersion: 'v1', kind: 'Service', metadata: {}, spec })
const camera = 'example.com/camera'
const anObject = { apiVersion: 'v1', kind: 'Secret', metadata: {} }

test('a pod counts as an object, and with what it computes with', async (t) => {
  t.equal(usage(aPod()), 'count/pods=1,pods=1')
  t.equal(
    usage(aPod({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2' } })),
    'count/pods=1,cpu=1,limits.cpu=2,memory=1Gi,pods=1,requests.cpu=1,requests.memory=1Gi',
  )
  t.equal(
    usage(aPod({ requests: { [camera]: '1', 'ephemeral-storage': '1Gi' }, limits: { [camera]: '1' } })),
    `count/pods=1,ephemeral-storage=1Gi,pods=1,requests.ephemeral-storage=1Gi,requests.${camera}=1`,
  )
  t.equal(
    usage(aPod({ requests: { 'hugepages-2Mi': '4Mi', unknown: '1' } })),
    'count/pods=1,hugepages-2Mi=4Mi,pods=1,requests.hugepages-2Mi=4Mi',
  )
  const overhead = { cpu: '250m', memory: '1Mi' }
  t.equal(
    usage(aPod({ requests: { cpu: '1' }, limits: { cpu: '2' }, spec: { overhead } })),
    'count/pods=1,cpu=1250m,limits.cpu=2250m,memory=1Mi,pods=1,requests.cpu=1250m,requests.memory=1Mi',
  )
})

test('a pod that has ended counts as an object only', async (t) => {
  for (const phase of ['Succeeded', 'Failed'] as const)
    t.equal(usage(aPod({ phase, requests: { cpu: '1' } })), 'count/pods=1')
  t.equal(usage(aPod({ phase: 'Running' })), 'count/pods=1,pods=1')
})

test('a pod that is not confirmed to be gone ceases to count after its grace period', async (t) => {
  const metadata = { deletionTimestamp: '1970-01-01T00:01:00Z', deletionGracePeriodSeconds: 30 }
  const pod = aPod({ metadata })
  t.equal(countedUntilMs(pod), 90_000)
  t.equal(countedUntilMs(aPod({ metadata: { deletionGracePeriodSeconds: 30 } })), undefined, 'it is not deleted')
  t.equal(usage(pod, 90_000), 'count/pods=1,pods=1')
  t.equal(usage(pod, 90_001), 'count/pods=1')
  t.equal(countedUntilMs(aPod({ metadata: { deletionTimestamp: metadata.deletionTimestamp } })), undefined)
  t.equal(countedUntilMs(aPod()), undefined)
})

test('a Service counts its node ports and its load balancer', async (t) => {
  const count = (spec: Service['spec']) => formatAmounts(usageOf(resources.services, service(spec), 0))
  const ports = [{ port: 80 }, { port: 443, nodePort: 30443 }]
  const of = (nodePorts: number, balancers: number) =>
    `count/services=1,services=1,services.loadbalancers=${balancers},services.nodeports=${nodePorts}`
  t.equal(count({ type: 'ClusterIP', ports }), of(0, 0))
  t.equal(count({ type: 'NodePort', ports }), of(2, 0))
  t.equal(count({ type: 'LoadBalancer', ports }), of(2, 1))
  t.equal(count({ type: 'LoadBalancer', ports, allocateLoadBalancerNodePorts: false }), of(1, 1))
  const more = [...ports, { port: 8443 }]
  t.equal(count({ type: 'LoadBalancer', ports: more, allocateLoadBalancerNodePorts: false }), of(1, 1))
})

test('other objects are counted by the name of their kind', async (t) => {
  const object = anObject
  t.same(usageOf(resources.configmaps, object, 0), { 'count/configmaps': 1, configmaps: 1 })
  t.same(usageOf(resources.replicationcontrollers, object, 0), {
    'count/replicationcontrollers': 1,
    replicationcontrollers: 1,
  })
  t.same(usageOf(resources.replicasets, object, 0), { 'count/replicasets.apps': 1 })
  t.same(usageOf(resources.leases, object, 0), { 'count/leases.coordination.k8s.io': 1 })
  t.same(usageOf(resources.serviceaccounts, object, 0), { 'count/serviceaccounts': 1 })
})

test('a resource of a quota belongs to the kind that counts for it', async (t) => {
  const names = ['pods', 'count/pods', 'cpu', 'limits.memory', `requests.${camera}`, camera, 'requests.hugepages-2Mi']
  const others = [
    'services',
    'services.nodeports',
    'configmaps',
    'count/configmaps',
    'count/leases.coordination.k8s.io',
  ]
  const all = [...names, ...others, 'leases', 'count/events', 'persistentvolumeclaims']
  t.same(
    resourcesOfKind(resources.pods, all),
    names.filter((name) => name !== camera),
  )
  t.same(resourcesOfKind(resources.services, all), ['services', 'services.nodeports'])
  t.same(resourcesOfKind(resources.configmaps, all), ['configmaps', 'count/configmaps'])
  t.same(resourcesOfKind(resources.replicationcontrollers, ['replicationcontrollers', 'replicasets']), [
    'replicationcontrollers',
  ])
  t.same(resourcesOfKind(resources.leases, all), ['count/leases.coordination.k8s.io'])
  t.same(resourcesOfKind(resources.events, all), [])
  t.same(resourcesOfKind(resources.nodes, ['count/nodes']), [])
  const ofClaims = ['persistentvolumeclaims', 'count/persistentvolumeclaims', 'requests.storage']
  const ofClass = ['gold.storageclass.storage.k8s.io/requests.storage']
  const none = ['gold.storageclass.storage.k8s.io/pods', '.storageclass.storage.k8s.io/requests.storage', 'pods']
  const claims = resources.persistentvolumeclaims
  t.same(resourcesOfKind(claims, [...ofClaims, ...ofClass, ...none]), [...ofClaims, ...ofClass])
})

test('a quota of cpu or memory makes each container state them', async (t) => {
  const pod = aPod({
    spec: {
      containers: [
        { name: 'b', resources: { requests: { cpu: '1' }, limits: { cpu: '1' } } },
        { name: 'a', resources: { requests: { cpu: '1' } } },
      ],
      initContainers: [{ name: 'setup' }],
    },
  })
  t.equal(missingInPod(pod, ['pods', 'limits.cpu', 'cpu']), 'must specify cpu for: setup; limits.cpu for: a,setup')
  t.equal(
    missingInPod(pod, ['requests.memory', 'memory', 'limits.cpu']),
    'must specify limits.cpu for: a,setup; memory for: a,b,setup; requests.memory for: a,b,setup',
  )
  t.equal(missingInPod({ ...pod, spec: { containers: [] } }, ['cpu']), undefined)
  t.equal(missingInPod(pod, ['requests.memory']), 'must specify requests.memory for: a,b,setup')
  t.equal(missingInPod(pod, ['pods', 'ephemeral-storage', `requests.${camera}`]), undefined)
})

test('a claim counts with its size, or the larger one to which it grows, also for its storage class', async (t) => {
  const count = (spec: object, more: object = {}) =>
    formatAmounts(usageOf(resources.persistentvolumeclaims, { ...anObject, spec, ...more } as AnyObject, 0))
  const all = 'count/persistentvolumeclaims=1,persistentvolumeclaims=1'
  const asked = { resources: { requests: { storage: '5Gi' } } }
  const allocated = (storage: string) => ({ status: { allocatedResources: { storage } } })
  t.equal(count(asked), `${all},requests.storage=5Gi`)
  t.equal(count(asked, allocated('8Gi')), `${all},requests.storage=8Gi`)
  t.equal(count(asked, allocated('3Gi')), `${all},requests.storage=5Gi`)
  t.equal(count({}), all)
  t.equal(count({ resources: {} }, allocated('8Gi')), all)
  const gold = 'gold.storageclass.storage.k8s.io'
  t.equal(
    count({ ...asked, storageClassName: 'gold' }),
    `count/persistentvolumeclaims=1,${gold}/persistentvolumeclaims=1,${gold}/requests.storage=5Gi,` +
      'persistentvolumeclaims=1,requests.storage=5Gi',
  )
  const annotations = { 'volume.beta.kubernetes.io/storage-class': 'gold' }
  t.equal(
    count({ storageClassName: 'silver' }, { metadata: { annotations } }),
    `count/persistentvolumeclaims=1,${gold}/persistentvolumeclaims=1,persistentvolumeclaims=1`,
  )
  t.equal(count(asked, { metadata: { annotations: {} } }), `${all},requests.storage=5Gi`)
})
