import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { podPort, proxyTarget, serviceTarget } from './proxy-target.ts'

test('a name may have a port, and a scheme', async (t) => {
  t.same(proxyTarget('web', 'pod'), { name: 'web', scheme: 'http', port: undefined })
  t.same(proxyTarget('web:8080', 'pod'), { name: 'web', scheme: 'http', port: 8080 })
  t.same(proxyTarget('web:1', 'pod').port, 1)
  t.same(proxyTarget('web:65535', 'pod').port, 65_535)
  t.same(proxyTarget('https:web:8443', 'pod'), { name: 'web', scheme: 'https', port: 8443 })
  t.same(proxyTarget('http:web:', 'pod'), { name: 'web', scheme: 'http', port: undefined })
})

test('anything else is refused', async (t) => {
  for (const id of ['', ':80', 'ftp:web:80', 'http:web:80:1', 'https::443']) {
    t.throws(
      () => proxyTarget(id, 'pod'),
      { reason: 'BadRequest', message: `invalid pod request ${JSON.stringify(id)}` },
      id,
    )
  }
  for (const id of ['web:name', 'web:0', 'web:65536', 'web:-1', 'web:1e3']) {
    t.throws(
      () => proxyTarget(id, 'node'),
      { reason: 'BadRequest', message: /invalid node request .*the port must be/ },
      id,
    )
  }
})

test('without a port it is the first that the pod declares, or that of the scheme', async (t) => {
  const pod = aPod({ name: 'web' })
  const [container] = pod.spec.containers
  if (container === undefined) throw new Error('The pod has no container')
  const { ports: _, ...none } = container
  const withPorts = (...ports: number[]) => ({ ...none, ports: ports.map((containerPort) => ({ containerPort })) })
  const of = (containers: (typeof none)[]) => ({ ...pod, spec: { ...pod.spec, containers } })
  t.equal(podPort(of([none, withPorts(8080, 9090)]), { scheme: 'http', port: undefined }), 8080)
  t.equal(podPort(of([withPorts(8080)]), { scheme: 'http', port: 9 }), 9)
  t.equal(podPort(of([none]), { scheme: 'http', port: undefined }), 80)
  t.equal(podPort(of([none]), { scheme: 'https', port: undefined }), 443)
})

test('a port of a Service may have a name', async (t) => {
  t.same(serviceTarget('web'), { name: 'web', scheme: 'http', port: '' })
  t.same(serviceTarget('web:http'), { name: 'web', scheme: 'http', port: 'http' })
  t.same(serviceTarget('https:web:443'), { name: 'web', scheme: 'https', port: '443' })
  for (const id of ['ftp:web:80', ':80', 'a:b:c:d']) {
    t.throws(() => serviceTarget(id), { message: `invalid service request "${id}"` })
  }
})
