import { test } from 'tap'
import type { PodSpec } from '../pod.ts'
import { withPodDefaults, withTemplateDefaults } from './pod-defaults.ts'

const fieldRef = { fieldPath: 'metadata.name' }
const spec: PodSpec = {
  hostNetwork: true,
  containers: [
    {
      name: 'main',
      image: 'web:1',
      env: [
        { name: 'A', value: 'b' },
        { name: 'NAME', valueFrom: { fieldRef } },
      ],
      ports: [{ containerPort: 80 }],
      resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } },
      livenessProbe: { grpc: { port: 80 } },
    },
  ],
  initContainers: [{ name: 'first', image: 'web:1', resources: { limits: { cpu: '1' } } }],
  volumes: [
    { name: 'a', downwardAPI: { items: [{ path: 'name', fieldRef }] } },
    { name: 'b', projected: { sources: [{ downwardAPI: { items: [{ path: 'name', fieldRef }] } }] } },
  ],
}
const versioned = { apiVersion: 'v1', fieldPath: 'metadata.name' }

test('a pod shows what Kubernetes fills in: links of Services, versions of fields, and the service of a gRPC probe', async (t) => {
  const whole = withPodDefaults(spec)
  t.match(whole, {
    enableServiceLinks: true,
    containers: [
      { env: [{ value: 'b' }, { valueFrom: { fieldRef: versioned } }], livenessProbe: { grpc: { service: '' } } },
    ],
    volumes: [
      { downwardAPI: { items: [{ path: 'name', fieldRef: versioned }] } },
      { projected: { sources: [{ downwardAPI: { items: [{ path: 'name', fieldRef: versioned }] } }] } },
    ],
  })
  t.equal(withPodDefaults({ ...spec, enableServiceLinks: false }).enableServiceLinks, false)
  t.same(withPodDefaults(whole), whole, 'a second time changes nothing')
})

test('what limits and the network of the host imply is shown in a pod, and not in a template', async (t) => {
  t.match(withPodDefaults(spec), {
    containers: [{ ports: [{ hostPort: 80 }], resources: { requests: { cpu: '500m', memory: '1Gi' } } }],
    initContainers: [{ resources: { requests: { cpu: '1' } } }],
  })
  const template = withTemplateDefaults({ spec }).spec
  t.equal(template.enableServiceLinks, undefined)
  t.same(template.containers[0]?.ports, [{ containerPort: 80, protocol: 'TCP' }])
  t.same(template.containers[0]?.resources?.requests, { cpu: '500m' })
  t.equal(template.initContainers?.[0]?.resources?.requests, undefined)
})
