/** What Go writes of an empty status: `json` tags in staging/src/k8s.io/api. */
import { test } from 'tap'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'

const metadata = { name: 'z' }
const template = { metadata: { labels: { app: 'z' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
const selector = { matchLabels: { app: 'z' } }
const jobSpec = { template: { spec: { ...template.spec, restartPolicy: 'Never' } } }

const empty: readonly (readonly [path: string, spec: unknown, status: unknown])[] = [
  ['batch/v1/namespaces/default/jobs', jobSpec, {}],
  ['batch/v1/namespaces/default/cronjobs', { schedule: '@daily', jobTemplate: { spec: jobSpec } }, {}],
  [
    'networking.k8s.io/v1/namespaces/default/ingresses',
    { defaultBackend: { service: { name: 's', port: { number: 1 } } } },
    { loadBalancer: {} },
  ],
  [
    'policy/v1/namespaces/default/poddisruptionbudgets',
    { minAvailable: 1, selector },
    { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 },
  ],
  [
    'autoscaling/v2/namespaces/default/horizontalpodautoscalers',
    { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'z' } },
    { desiredReplicas: 0 },
  ],
  ['apps/v1/namespaces/default/deployments', { selector, template }, {}],
  ['apps/v1/namespaces/default/replicasets', { selector, template }, { replicas: 0 }],
  [
    'apps/v1/namespaces/default/statefulsets',
    { selector, template, serviceName: 'z' },
    { availableReplicas: 0, replicas: 0 },
  ],
  [
    'apps/v1/namespaces/default/daemonsets',
    { selector, template },
    { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 },
  ],
  [
    'flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations',
    { type: 'Limited', limited: { limitResponse: { type: 'Reject' } } },
    {},
  ],
  ['flowcontrol.apiserver.k8s.io/v1/flowschemas', { priorityLevelConfiguration: { name: 'z' } }, {}],
]

test('a node that a person creates has the fields of the status that Kubernetes always writes', async (t) => {
  const { ask } = await anApi(t)
  const created = await ask('POST', '/api/v1/nodes', { body: { metadata, spec: {} } })
  t.match(created, { code: 201 })
  const info = [
    ...['machineID', 'systemUUID', 'bootID', 'kernelVersion', 'osImage', 'containerRuntimeVersion'],
    ...['kubeletVersion', 'kubeProxyVersion', 'operatingSystem', 'architecture'],
  ]
  const status = {
    daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
    nodeInfo: Object.fromEntries(info.map((name) => [name, ''])),
  }
  t.same(created.body.status, status)
  const port = { daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } }
  const patched = await ask('PATCH', '/api/v1/nodes/z/status', { body: { status: port }, type: patchTypes.merge })
  t.same(patched.body.status, { ...status, ...port })
})

test('a status is never absent, and has the fields that Kubernetes always writes', async (t) => {
  const { ask } = await anApi(t)
  for (const [path, spec, status] of empty) {
    const collection = `/apis/${path}`
    const claimed = await ask('POST', collection, {
      body: { metadata, spec, status: { ...Object(status), observedGeneration: 7 } },
    })
    t.match(claimed, { code: 201 }, path)
    t.same(claimed.body.status, status, `${path}: of a new object`)
    t.same((await ask('GET', `${collection}/z`)).body.status, status, path)
    const removed = { body: { status: null }, type: patchTypes.merge }
    const patched = await ask('PATCH', `${collection}/z/status`, removed)
    t.same([patched.code, patched.body.status], [200, status], `${path}: removed by a patch`)
  }
})
