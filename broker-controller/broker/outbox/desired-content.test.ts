import { test } from 'tap'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { type DesiredInputs, desiredContent, isOtherNode, isPublished } from './desired-content.ts'

const pod = aPod({ name: 'web', uid: 'u1', nodeName: 'pi-1' })

function inputs(over: Partial<DesiredInputs> = {}): DesiredInputs {
  return {
    node: aNode({ name: 'pi-1' }),
    pods: [pod],
    configMap: () => undefined,
    secret: () => undefined,
    runtimeClass: () => undefined,
    servicesIn: () => [],
    claim: () => undefined,
    volume: () => undefined,
    podsUsing: () => [],
    acceptingStoreID: undefined,
    earlier: undefined,
    ...over,
  }
}

function accepted(store: string) {
  const node = aNode({ name: 'pi-1' })
  return { ...node, metadata: { ...node.metadata, annotations: { 'bramble.dev/learnt-by': store } } }
}

test('while checkpoints are accepted, a node gets its pods after the store has its checkpoint', async (t) => {
  const acceptingStoreID = 'store-2'
  t.same(desiredContent('pi-1', inputs({ acceptingStoreID, node: undefined })), undefined, 'not registered')
  t.same(desiredContent('pi-1', inputs({ acceptingStoreID }))?.data, { awaitsCheckpoint: true })
  t.same(desiredContent('pi-1', inputs({ acceptingStoreID, node: accepted('store-1') }))?.pods.size, 0)
  t.same(desiredContent('pi-1', inputs({ acceptingStoreID, node: accepted('store-2') }))?.pods.size, 1)
  t.same(desiredContent('pi-1', inputs({ node: undefined }))?.pods.size, 1, 'none are accepted: at once')
})

test('a content is published once for each Node', async (t) => {
  const content = desiredContent('pi-1', inputs())
  if (content === undefined) return t.fail('no content')
  const earlier = { ...content, nodeUID: 'n1', pausedUntilMs: 0 }
  const again = desiredContent('pi-1', inputs({ earlier })) ?? content
  t.equal(isPublished(again, 'n1', undefined), false)
  t.equal(isPublished(again, 'n1', earlier), true)
  t.equal(isPublished(again, undefined, earlier), true, 'the Node is deleted, the agent has the message')
  t.equal(isPublished(again, 'n2', earlier), false, 'another Node of the name')
  t.equal(isPublished({ ...again, data: { podCIDR: '10.42.1.0/24' } }, 'n1', earlier), false)
  const less = desiredContent('pi-1', inputs({ earlier, pods: [] })) ?? content
  t.equal(isPublished(less, 'n1', earlier), false)
})

test('a node receives where its containers reach the API, again when that changes', async (t) => {
  const apiServer = { host: '192.168.1.10', port: 6443 }
  const content = desiredContent('pi-1', inputs({ apiServer }))
  const moved = desiredContent('pi-1', inputs({ apiServer: { ...apiServer, host: '192.168.1.11' } }))
  if (content === undefined || moved === undefined) return t.fail('no content')
  t.same(content.data.apiServer, apiServer)
  const earlier = { ...content, nodeUID: 'n1', pausedUntilMs: 0 }
  t.equal(isPublished(content, 'n1', earlier), true)
  t.equal(isPublished(moved, 'n1', earlier), false)
})

test('a node receives the Services in the namespaces of its pods, again when one changes', async (t) => {
  const service = { namespace: 'default', name: 'web', clusterIP: '10.96.0.7', ports: [{ port: 80 }] }
  const with80 = desiredContent(
    'pi-1',
    inputs({ servicesIn: (namespace) => (namespace === 'default' ? [service] : []) }),
  )
  const moved = desiredContent('pi-1', inputs({ servicesIn: () => [{ ...service, clusterIP: '10.96.0.8' }] }))
  if (with80 === undefined || moved === undefined) return t.fail('no content')
  t.same(with80.data.services, [service])
  const earlier = { ...with80, nodeUID: 'n1', pausedUntilMs: 0 }
  t.equal(isPublished(with80, 'n1', earlier), true)
  t.equal(isPublished(moved, 'n1', earlier), false)
  t.equal(desiredContent('pi-1', inputs())?.data.services, undefined)
})

test('a change of a Node matters if it is created, deleted, or gets addresses or its checkpoint', async (t) => {
  const node = aNode({ name: 'pi-1' })
  t.equal(isOtherNode(node, undefined), true)
  t.equal(isOtherNode(undefined, node), true)
  t.equal(isOtherNode({ ...node, status: { phase: 'Running' } }, node), false)
  t.equal(isOtherNode({ ...node, spec: { podCIDR: '10.42.1.0/24' } }, node), true)
  t.equal(isOtherNode(accepted('store-2'), node), true)
})

test('a machine receives a request to restart while it is pending, and the request is withdrawn afterwards', async (t) => {
  const requestedAt = '2026-01-02T03:04:05Z'
  const asked = (state: string) =>
    aNode({
      name: 'pi-1',
      annotations: {
        'bramble.dev/reboot-requested-at': requestedAt,
        'bramble.dev/reboot-status': JSON.stringify({ requestedAt, state, bootID: 'boot-1' }),
      },
    })
  const content = desiredContent('pi-1', inputs({ node: asked('Pending') }))
  if (content === undefined) return t.fail('no content')
  t.same(content.data.reboot, { requestedAt, bootID: 'boot-1' })
  const after = desiredContent('pi-1', inputs({ node: asked('Completed') })) ?? content
  t.equal(after.data.reboot, undefined)
  t.equal(isPublished(after, 'n1', { ...content, nodeUID: 'n1', pausedUntilMs: 0 }), false)
  t.equal(isOtherNode(asked('Completed'), asked('Pending')), true)
  t.equal(isOtherNode(asked('Completed'), asked('Expired')), false)
})

test('a node receives the release that its agent may run until it is withdrawn', async (t) => {
  const release = { version: '1.5.0', sequence: 15, digest: 'a'.repeat(64) }
  const wanting = (written: string, note = '') =>
    aNode({ name: 'pi-1', annotations: { 'bramble.dev/agent-release': written, note } })
  const node = wanting(JSON.stringify(release))
  const content = desiredContent('pi-1', inputs({ node }))
  if (content === undefined) return t.fail('no content')
  t.same(content.data.agent, release)
  const after = desiredContent('pi-1', inputs({ node: wanting('') })) ?? content
  t.equal(after.data.agent, undefined)
  t.equal(isPublished(after, 'n1', { ...content, nodeUID: 'n1', pausedUntilMs: 0 }), false)
  t.equal(isOtherNode(node, wanting('')), true)
  t.equal(isOtherNode(node, wanting(JSON.stringify(release), 'of a person')), false)
})

test('a node receives its upgrade only while its maintenance is in that phase', async (t) => {
  const maintained = (phase: string) => {
    const record = JSON.stringify({ id: 'a1', phase, since: '2026-01-02T03:00:00Z' })
    return aNode({ name: 'pi-1', annotations: { 'bramble.dev/maintenance': record } })
  }
  const [draining, upgrading, checking] = ['Draining', 'Upgrading', 'Checking'].map(maintained)
  t.same(desiredContent('pi-1', inputs({ node: upgrading }))?.data.osUpgrade, { id: 'a1' })
  for (const node of [draining, checking, aNode({ name: 'pi-1' })])
    t.equal(desiredContent('pi-1', inputs({ node }))?.data.osUpgrade, undefined)
  t.equal(isOtherNode(upgrading, draining), true)
  t.equal(isOtherNode(checking, upgrading), true)
  t.equal(isOtherNode(maintained('Done'), checking), false)
})

test('a node gets the classes of its pods, each once, without those that are gone', async (t) => {
  const of = (runtimeClassName: string) =>
    aPod({ name: runtimeClassName, nodeName: 'pi-1', spec: { runtimeClassName } })
  const stored = (name: string) => ({
    apiVersion: 'node.k8s.io/v1' as const,
    kind: 'RuntimeClass' as const,
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    handler: `of-${name}`,
  })
  const runtimeClass = (name: string) => (name === 'gone' ? undefined : stored(name))
  const pods = [
    of('b'),
    of('gone'),
    of('a'),
    { ...of('a'), metadata: { ...of('a').metadata, uid: 'u2', name: 'c' } },
    pod,
  ]
  t.same(desiredContent('pi-1', inputs({ pods, runtimeClass }))?.data.runtimeClasses, [
    { name: 'a', handler: 'of-a' },
    { name: 'b', handler: 'of-b' },
  ])
  t.equal(desiredContent('pi-1', inputs({ runtimeClass }))?.data.runtimeClasses, undefined)
})

const settings = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'settings',
    namespace: 'default',
    uid: 'c1',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  data: { a: '1' },
} as const
const tls = { ...settings, kind: 'Secret', metadata: { ...settings.metadata, name: 'tls' }, type: 'Opaque' } as const
const using = (name: string, more: Partial<Parameters<typeof aPod>[0]> = {}) =>
  aPod({
    name,
    nodeName: 'pi-1',
    spec: {
      volumes: [
        { name: 'a', configMap: { name: 'settings' } },
        { name: 'b', secret: { secretName: 'tls' } },
      ],
    },
    ...more,
  })
const stored = {
  configMap: (key: string) => (key === 'default/settings' ? settings : undefined),
  secret: (key: string) => (key === 'default/tls' ? tls : undefined),
}

test('a node receives the ConfigMaps and Secrets of its pods, as far as they exist', async (t) => {
  const data = (over: Partial<DesiredInputs>) => desiredContent('pi-1', inputs({ ...stored, ...over }))?.data
  const metadata = (name: string) => ({ name, namespace: 'default' })
  t.same(data({ pods: [using('web')] }), {
    configMaps: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('settings'), data: { a: '1' } }],
    secrets: [{ apiVersion: 'v1', kind: 'Secret', metadata: metadata('tls'), type: 'Opaque', data: { a: '1' } }],
  })
  t.same(data({ pods: [pod] }), {}, 'no pod names them')
  t.same(data({ pods: [using('web')], configMap: () => undefined, secret: () => undefined }), {}, 'they do not exist')
})

test('a node receives the Secret and the CSIDriver of an inline volume', async (t) => {
  const csi = { driver: 'disk.example.com', nodePublishSecretRef: { name: 'tls' } }
  const web = using('web', { spec: { volumes: [{ name: 'v', csi }] } })
  const spec = { volumeLifecycleModes: ['Ephemeral'] }
  const kind = { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver' } as const
  const csiDriver = (name: string) => ({ ...kind, metadata: { name }, spec })
  const data = desiredContent('pi-1', inputs({ ...stored, pods: [web], csiDriver }))?.data
  t.match(data, { secrets: [{ metadata: { name: 'tls' } }], csiDrivers: [{ name: csi.driver, modes: ['Ephemeral'] }] })
})

test('a pod that a node claimed gives it no data of others, whatever else runs there', async (t) => {
  const claimed = using('claimed', { annotations: { 'bramble.dev/learnt-from': 'pi-1' } })
  const data = (...pods: readonly ReturnType<typeof using>[]) =>
    desiredContent('pi-1', inputs({ ...stored, pods }))?.data ?? {}
  t.same(data(claimed), {})
  t.same(data(pod, claimed), {}, 'beside an assigned pod that names nothing')
  t.same(Object.keys(data(using('web'), claimed)), ['configMaps', 'secrets'], 'an assigned pod names them too')
})

test('a node receives the range of its pods, in either field', async (t) => {
  const range = (spec: object | undefined) => {
    const { spec: _, ...bare } = aNode({ name: 'pi-1' })
    const node = spec === undefined ? bare : { ...bare, spec }
    return desiredContent('pi-1', inputs({ node }))?.data
  }
  t.same(range({ podCIDR: '10.42.1.0/24' }), { podCIDR: '10.42.1.0/24' })
  t.same(range({ podCIDRs: ['10.42.2.0/24'] }), { podCIDR: '10.42.2.0/24' })
  t.same(range({ podCIDR: 'fd00::/64', podCIDRs: ['fd00::/64', '10.42.3.0/24'] }), { podCIDR: '10.42.3.0/24' })
  t.same(range({ podCIDR: 'fd00::/64' }), {}, 'pods have no IPv6 addresses')
  t.same(range({}), {})
  t.same(range(undefined), {})
})

test('without a Node before and after nothing has changed', async (t) => {
  t.equal(isOtherNode(undefined, undefined), false)
})

test('a node is sent the domain of the names with its range for pods, or not at all', async (t) => {
  const clusterDomain = 'fleet.example'
  const node = aNode({ spec: { podCIDR: '10.244.1.0/24' } })
  const dataOf = (over: Partial<DesiredInputs>) => desiredContent('pi-1', inputs(over))?.data ?? {}
  t.match(dataOf({ node, clusterDomain }), { podCIDR: '10.244.1.0/24', clusterDomain })
  t.notOk('clusterDomain' in dataOf({ clusterDomain }))
  t.notOk('clusterDomain' in dataOf({ node }))
})
