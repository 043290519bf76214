import { type Test, test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { aCertificate, anAuthority, anIngress, aRule, aService } from '../../testing/ingress-objects.ts'
import { workloadWorld } from '../../testing/workload-world.ts'
import { ingressController } from './ingress-controller.ts'
import { defaultIngressSettings, type IngressSettings } from './ingress-settings.ts'
import { ingressNamespace, madeLabels } from './proxy-objects.ts'

const proxyKey = { namespace: ingressNamespace, name: 'haproxy' }

async function ingressWorld(t: Test) {
  const world = await workloadWorld(t)
  const { store } = world
  const start = (settings?: Partial<IngressSettings>, ipv6 = false) =>
    world.start([ingressController(world.needs, settings && { ...defaultIngressSettings, ...settings }, ipv6)])
  const ready = async (name: string, isReady: boolean) => {
    const pod = await store.get('pods', { namespace: ingressNamespace, name: `haproxy-${name}` })
    if (pod === undefined) throw new Error(`no proxy on ${name}`)
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }] as const
    await store.updateStatus('pods', { ...pod, status: { phase: 'Running', conditions: [...conditions] } })
  }
  return {
    ...world,
    start,
    /** A file of the proxy. */
    async file(name: string) {
      const data = (await store.get('secrets', proxyKey))?.data ?? {}
      return Buffer.from(data[name] ?? '', 'base64').toString()
    },
    async certificates() {
      const all = (await store.list('secrets', ingressNamespace)).items
      return all.flatMap(({ data = {} }) => Object.keys(data).filter((file) => file.endsWith('.pem')))
    },
    /** A node with a proxy. */
    async proxy(name: string, address: string, isReady = true) {
      const node = aNode({ name })
      const { metadata: _, ...rest } = node
      const addresses = [{ type: 'InternalIP', address }] as const
      await store.create('nodes', { ...rest, metadata: { name }, status: { ...node.status, addresses } })
      await store.create('pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: `haproxy-${name}`,
          namespace: ingressNamespace,
          labels: { 'app.kubernetes.io/name': 'ingress' },
        },
        spec: { nodeName: name, containers: [{ name: 'haproxy', image: 'haproxy' }] },
      })
      await ready(name, isReady)
    },
    ready,
    async addresses(name: string) {
      const ingress = await store.get('ingresses', { namespace: 'default', name })
      return (ingress?.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join(' ')
    },
    async messages() {
      return (await store.list('events')).items.map(({ reason, message }) => `${reason}: ${message}`).sort()
    },
  }
}

const one = anIngress('one', { rules: [aRule('a.example', 'Prefix / web')] })

test('the proxy has its namespace, its class and a DaemonSet, as they are configured', async (t) => {
  const { store, start, settle } = await ingressWorld(t)
  const end = start({ defaultClass: true, httpPort: 8080, nodeSelector: { front: 'yes' } })
  await settle(1000)
  t.match(await store.get('ingressclasses', { namespace: '', name: 'bramble' }), {
    metadata: { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
    spec: { controller: 'bramble.dev/haproxy' },
  })
  const key = { namespace: '', name: ingressNamespace }
  const namespace = await store.get('namespaces', key)
  t.equal(namespace?.status?.phase, 'Active')
  const enforce = 'pod-security.kubernetes.io/enforce'
  t.equal(namespace?.metadata.labels?.[enforce], 'privileged', 'no default of the configuration refuses its host ports')
  const made = await store.get('daemonsets', proxyKey)
  t.match(made?.spec.template.spec, {
    nodeSelector: { front: 'yes' },
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true },
    containers: [{ ports: [{ hostPort: 8080 }, { hostPort: 443 }], securityContext: { readOnlyRootFilesystem: true } }],
  })
  const version = await store.version('daemonsets')
  await settle(120_000)
  t.equal(await store.version('daemonsets'), version, 'nothing is written while it is right')
  if (made === undefined) return
  await store.update('daemonsets', { ...made, spec: { ...made.spec, minReadySeconds: 5 } })
  await store.delete('secrets', proxyKey)
  await settle(31_000)
  t.same((await store.get('daemonsets', proxyKey))?.spec, made.spec, 'a change by somebody is put right')
  t.ok(await store.get('secrets', proxyKey))
  await end()
  start({ image: 'haproxy:3.2' })
  await settle(1000)
  const updated = await store.get('daemonsets', proxyKey)
  t.match(updated, {
    metadata: { generation: 4 },
    spec: { template: { spec: { containers: [{ image: 'haproxy:3.2' }] } } },
  })
  t.equal(updated?.spec.template.spec.nodeSelector, undefined)
})

test('changes of Ingresses, Services and certificates are one new configuration, and others do not count', async (t) => {
  const { store, start, settle, edit, file, certificates } = await ingressWorld(t)
  start({})
  await settle(1000)
  const authority = anAuthority()
  const versions = new Set([await file('version')])
  const changed = async () => {
    await settle(499)
    const before = await file('version')
    await settle(2)
    const after = await file('version')
    const isNew = after !== before && !versions.has(after)
    versions.add(after)
    return isNew
  }
  await store.create('ingresses', one)
  await store.create('services', aService('web'))
  t.ok(await changed())
  t.equal(await file('prefix.map'), 'a.example/ default_web_80|\n')

  const tls = [{ hosts: ['a.example'], secretName: 'cert' }]
  const ingress = await store.get('ingresses', { namespace: 'default', name: 'one' })
  if (ingress === undefined) return t.fail('no Ingress')
  await store.update('ingresses', { ...ingress, spec: { ...ingress.spec, tls } })
  t.notOk(await changed(), 'there is no certificate yet')
  const first = await store.create('secrets', aCertificate(authority, 'cert', 'a.example'))
  t.ok(await changed())
  const [before] = await certificates()
  await store.update('secrets', { ...first, data: aCertificate(authority, 'cert', 'a.example').data ?? {} })
  t.ok(await changed())
  const after = await certificates()
  t.equal(after.length, 1, 'the old one is gone')
  t.not(after[0], before)
  t.match(await file('certificates.list'), after[0])

  await edit('services', 'web', (web) => ({ ...web, metadata: { ...web.metadata, labels: { a: 'b' } } }))
  await store.create('services', aService('other'))
  await store.create('secrets', aCertificate(authority, 'other', 'b.example'))
  const version = await store.version('secrets')
  t.notOk(await changed())
  t.equal(await store.version('secrets'), version)
  await edit('services', 'web', (web) => ({ ...web, spec: { ...web.spec, clusterIP: '10.96.1.1' } }))
  t.ok(await changed())
  await store.delete('services', { namespace: 'default', name: 'web' })
  t.ok(await changed())
  t.equal(await file('prefix.map'), 'a.example/ unavailable|\n')
})

test('only Ingresses of a class of this controller are served, and shown with the addresses of ready proxies', async (t) => {
  const world = await ingressWorld(t)
  const { store, start, settle, file, addresses, proxy, ready, edit } = world
  start({})
  await settle(1000)
  await store.create('services', aService('web'))
  await proxy('pi-1', '192.168.1.5')
  await proxy('pi-2', '192.168.1.6', false)
  const spec = (ingressClassName: string, host: string) => ({ ingressClassName, rules: [aRule(host, 'Prefix / web')] })
  await store.create('ingresses', one)
  await store.create('ingressclasses', {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    metadata: { name: 'nginx' },
    spec: { controller: 'example.com/nginx' },
  })
  await store.create('ingresses', anIngress('foreign', spec('nginx', 'b.example')))
  await store.create('ingresses', anIngress('more', spec('ours-too', 'c.example')))
  const { spec: { rules = [] } = {} } = anIngress('old', spec('', 'd.example'))
  const annotations = { 'kubernetes.io/ingress.class': 'bramble' }
  const { spec: _, ...old } = anIngress('old', {}, { annotations })
  await store.create('ingresses', { ...old, spec: { rules } })
  await settle(600)
  t.same((await file('prefix.map')).split(' ').length, 3)
  t.same(
    [await addresses('one'), await addresses('old'), await addresses('foreign')],
    ['192.168.1.5', '192.168.1.5', ''],
  )

  await ready('pi-2', true)
  await settle(600)
  t.equal(await addresses('one'), '192.168.1.5 192.168.1.6')
  await ready('pi-1', false)
  await settle(600)
  t.equal(await addresses('one'), '192.168.1.6')

  await store.create('ingressclasses', {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    metadata: { name: 'ours-too' },
    spec: { controller: 'bramble.dev/haproxy' },
  })
  await settle(600)
  t.match(await file('prefix.map'), 'c.example/')
  t.equal(await addresses('more'), '192.168.1.6')

  const version = await store.version('ingresses')
  await settle(120_000)
  t.equal(await store.version('ingresses'), version, 'nothing is written while it is right')

  await edit('ingresses', 'one', (ingress) => ({ ...ingress, spec: { ...ingress.spec, ingressClassName: 'nginx' } }))
  await store.delete('ingressclasses', { namespace: '', name: 'ours-too' })
  await settle(600)
  t.same([await addresses('one'), await addresses('more'), await addresses('old')], ['', '', '192.168.1.6'])
  t.notMatch(await file('prefix.map'), /^[ac]\.example/m)
})

test('in a fleet with IPv6 ranges an Ingress has the addresses of both families, and its Service may have IPv6 only', async (t) => {
  const { store, start, settle, file, addresses, proxy } = await ingressWorld(t)
  await proxy('pi-1', '192.168.1.5')
  await store.create('services', aService('web', 'fd00:10:96::7', { clusterIPs: ['fd00:10:96::7'] }))
  await store.create('ingresses', one)
  const end = start({})
  await settle(1000)
  t.equal(await file('prefix.map'), 'a.example/ unavailable|\n')
  await end()
  start({}, true)
  await settle(1000)
  t.equal(await file('prefix.map'), 'a.example/ default_web_80|\n')
  t.match(await file('haproxy.cfg'), '  server service [fd00:10:96::7]:80\n')
  t.equal(await addresses('one'), '192.168.1.5')
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  const pod = await store.get('pods', { namespace: ingressNamespace, name: 'haproxy-pi-1' })
  if (node === undefined || pod === undefined) return t.fail('no node or no pod')
  const ranged = await store.update('nodes', { ...node, spec: { podCIDRs: ['10.244.1.0/24', 'fd00:10:244::/64'] } })
  const internal = ['192.168.1.5', 'fd00:7::5'].map((address) => ({ type: 'InternalIP', address }) as const)
  await store.updateStatus('nodes', { ...ranged, status: { ...ranged.status, addresses: internal } })
  await settle(600)
  t.equal(await addresses('one'), '192.168.1.5', 'the proxy has no IPv6 address yet')
  const podIPs = ['10.244.1.7', 'fd00:10:244::7'].map((ip) => ({ ip }))
  await store.updateStatus('pods', { ...pod, status: { ...pod.status, podIP: '10.244.1.7', podIPs } })
  await settle(600)
  t.equal(await addresses('one'), '192.168.1.5 fd00:7::5')
  const shown = await store.get('ingresses', { namespace: 'default', name: 'one' })
  if (shown === undefined) return t.fail('no Ingress')
  await store.update('ingresses', { ...shown, spec: { ...shown.spec, ingressClassName: 'nginx' } })
  await settle(600)
  t.equal(await addresses('one'), '', 'both are removed from one of another class')
})

test('what is wrong with an Ingress is an Event on it, once', async (t) => {
  const { store, start, settle, messages } = await ingressWorld(t)
  start({})
  await settle(1000)
  await store.create('ingresses', one)
  await settle(600)
  const missing =
    'BackendUnavailable: spec.rules[0].http.paths[0].backend: Service default/web not found: create it, or name another one. Requests are answered 503'
  t.same(await messages(), [missing])
  await store.create('ingresses', anIngress('two', one.spec ?? {}, { second: 1 }))
  await settle(600)
  t.equal((await messages()).filter((text) => text === missing).length, 2, 'of both Ingresses')
  t.equal((await messages()).length, 3)
  await store.create('services', aService('web'))
  await settle(600)
  t.equal((await messages()).length, 3)
  const paths = Array.from({ length: 8 }, (_, index) => `Prefix /${index} none`)
  await store.create('ingresses', anIngress('many', { rules: [aRule('b.example', ...paths)] }, { second: 2 }))
  await settle(600)
  const ofMany = (await messages()).filter((text) => text.includes('default/none'))
  t.equal(ofMany.length, 5)
  t.ok(ofMany.some((text) => text.endsWith('(and 3 more)')))
})

test('turned off, it removes what it made, and the addresses of Ingresses', async (t) => {
  const { store, start, settle, proxy, addresses } = await ingressWorld(t)
  const end = start({})
  await settle(1000)
  await proxy('pi-1', '192.168.1.5')
  await store.create('ingresses', one)
  await settle(600)
  t.equal(await addresses('one'), '192.168.1.5')
  const annotations = { 'kubernetes.io/ingress.class': 'bramble' }
  const { ingressClassName: _, ...spec } = one.spec ?? {}
  await store.create('ingresses', { ...one, metadata: { ...one.metadata, name: 'old', annotations }, spec })
  await settle(600)
  t.equal(await addresses('old'), '192.168.1.5')
  const own = { namespace: ingressNamespace, name: 'own' }
  await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata: own, type: 'Opaque' })
  await end()
  start()
  await settle(1000)
  t.equal(await addresses('one'), '')
  t.equal(await addresses('old'), '')
  t.equal(await store.get('daemonsets', proxyKey), undefined)
  t.equal(await store.get('ingressclasses', { namespace: '', name: 'bramble' }), undefined)
  t.same(
    (await store.list('secrets', ingressNamespace)).items.map(({ metadata }) => metadata.name),
    ['own'],
  )
  const namespace = await store.get('namespaces', { namespace: '', name: ingressNamespace })
  t.ok(namespace?.metadata.deletionTimestamp, 'the namespace is deleted with all that is in it')
})

test('the namespace of an earlier version gets the label for its host ports, and another level of an operator stays', async (t) => {
  const enforce = 'pod-security.kubernetes.io/enforce'
  for (const [given, wanted] of [
    [undefined, 'privileged'],
    ['restricted', 'restricted'],
  ]) {
    const { store, start, settle } = await ingressWorld(t)
    const labels = { ...madeLabels, ...(given && { [enforce]: given }) }
    const metadata = { name: ingressNamespace, labels }
    await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata, status: { phase: 'Active' } })
    start({})
    await settle(1000)
    const namespace = await store.get('namespaces', { namespace: '', name: ingressNamespace })
    t.equal(namespace?.metadata.labels?.[enforce], wanted)
  }
})

test('what was never turned on is not touched', async (t) => {
  const { store, start, settle } = await ingressWorld(t)
  const foreign = { apiVersion: 'networking.k8s.io/v1', kind: 'IngressClass', metadata: { name: 'bramble' } } as const
  await store.create('ingressclasses', { ...foreign, spec: { controller: 'example.com/other' } })
  const version = await store.version()
  start()
  await settle(1000)
  t.equal(await store.version(), version)
})
