import { test } from 'tap'
import type { Service, ServiceSpec } from '../../../api/network/service.ts'
import { aPod } from '../../../api/testing/builders.ts'
import {
  familiesOf,
  hostnameIn,
  isEndpoint,
  isHeadless,
  podAddresses,
  podTargetRef,
  selectorOf,
  targetPortOf,
} from './pod-endpoints.ts'

const service = (spec: ServiceSpec): Service => ({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec })

test('a Service selects by labels, unless it has none or stands for another name', async (t) => {
  t.same(selectorOf(service({ selector: { app: 'web' } })), { app: 'web' })
  t.equal(selectorOf(service({ selector: {} })), undefined)
  t.equal(selectorOf(service({})), undefined)
  t.equal(selectorOf(service({ selector: { app: 'web' }, type: 'ExternalName' })), undefined)
})

test('a Service without an address is headless', async (t) => {
  t.ok(isHeadless(service({ clusterIP: 'None' })))
  t.ok(isHeadless(service({ clusterIP: '' })))
  t.ok(isHeadless(service({})))
  t.notOk(isHeadless(service({ clusterIP: '10.96.0.9' })))
})

test('families are those that the Service states, else that of its address', async (t) => {
  t.same(familiesOf(service({ ipFamilies: ['IPv6', 'IPv4'], clusterIP: '10.96.0.9' })), ['IPv6', 'IPv4'])
  t.same(familiesOf(service({ clusterIP: 'fd00::9' })), ['IPv6'])
  t.same(familiesOf(service({ clusterIP: '10.96.0.9' })), ['IPv4'])
  t.same(familiesOf(service({ clusterIP: 'None' })), ['IPv4'])
})

test('a pod is an endpoint from when it has an address to its end', async (t) => {
  const status = { podIP: '10.0.0.1' }
  t.notOk(isEndpoint(aPod()))
  t.notOk(isEndpoint(aPod({ status: { podIP: '', podIPs: [] } })))
  t.ok(isEndpoint(aPod({ phase: 'Running', status })))
  t.notOk(isEndpoint(aPod({ phase: 'Succeeded', status })))
  t.notOk(isEndpoint(aPod({ phase: 'Failed', status })))
  t.same(podAddresses(aPod({ status })), ['10.0.0.1'])
  const podIPs = [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }]
  t.same(podAddresses(aPod({ status: { ...status, podIPs } })), ['10.0.0.1', 'fd00::1'])
})

test('a target port is a number, the number of the Service, or a name in one of the containers', async (t) => {
  const ports = [
    { name: 'dns', containerPort: 5353, protocol: 'UDP' },
    { name: 'http', containerPort: 8080 },
  ]
  const initContainers = [
    { name: 'setup', ports: [{ name: 'setup', containerPort: 1 }] },
    { name: 'proxy', restartPolicy: 'Always', ports: [{ name: 'proxy', containerPort: 15001 }] },
  ]
  const containers = [{ name: 'a' }, { name: 'b', ports }]
  const pod = aPod({ containers, spec: { initContainers: initContainers.map((one) => ({ image: 'web:1', ...one })) } })
  t.equal(targetPortOf(pod, { port: 80 }), 80)
  t.equal(targetPortOf(pod, { port: 80, targetPort: 81 }), 81)
  t.equal(targetPortOf(pod, { port: 80, targetPort: 'http' }), 8080)
  t.equal(targetPortOf(pod, { port: 53, targetPort: 'dns', protocol: 'UDP' }), 5353)
  t.equal(targetPortOf(pod, { port: 53, targetPort: 'dns' }), undefined, 'of another protocol')
  t.equal(targetPortOf(pod, { port: 80, targetPort: 'none' }), undefined)
  t.equal(targetPortOf(pod, { port: 80, targetPort: 'proxy' }), 15001, 'of a sidecar')
  t.equal(targetPortOf(pod, { port: 80, targetPort: 'setup' }), undefined, 'of a container that ends')
})

test('a host name is of the Service that the pod names as its subdomain', async (t) => {
  const named = (spec: object) => hostnameIn(service({}), aPod({ spec }))
  t.equal(named({ hostname: 'a', subdomain: 'web' }), 'a')
  t.equal(named({ hostname: 'a', subdomain: 'other' }), undefined)
  t.equal(named({ hostname: 'a' }), undefined)
  t.equal(named({ subdomain: 'web' }), undefined)
})

test('a reference names the pod', async (t) => {
  t.same(podTargetRef(aPod({ name: 'a', uid: 'u' })), { kind: 'Pod', namespace: 'default', name: 'a', uid: 'u' })
})

test('a loopback, link-local or multicast address is not an endpoint, also of a pod that was stored before', async (t) => {
  for (const ip of ['127.0.0.1', '169.254.169.254', '224.0.0.1', '::1', 'fe80::1', '::ffff:127.0.0.1']) {
    t.notOk(isEndpoint(aPod({ status: { podIP: ip, podIPs: [{ ip }] } })), ip)
  }
  t.same(podAddresses(aPod({ status: { podIPs: [{ ip: '10.0.0.1' }, { ip: '::1' }] } })), ['10.0.0.1'])
})
