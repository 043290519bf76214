import { test } from 'tap'
import { nodeIdentity } from '../../api/identity.ts'
import { anApi, patchTypes } from '../testing/api-in-memory.ts'
import { podsPath, sentNode, sentPod } from '../testing/sent-objects.ts'

test('a node writes only its own objects', async (t) => {
  const { ask } = await anApi(t)
  const as = nodeIdentity('pi-01')
  t.match(await ask('POST', '/api/v1/nodes', { as, body: sentNode('pi-02') }), { code: 403 })
  t.match(await ask('POST', '/api/v1/nodes', { as, body: sentNode('pi-01') }), { code: 201 })
  const path = '/api/v1/nodes/pi-01'
  const status = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
  t.match(await ask('PATCH', `${path}/status`, { as, type: patchTypes.strategic, body: status }), { code: 200 })
  const taints = { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }
  t.match(await ask('PATCH', path, { as, type: patchTypes.strategic, body: taints }), {
    code: 403,
    body: { message: 'nodes "pi-01" is forbidden: node "pi-01" is not allowed to modify taints' },
  })
  t.match(await ask('GET', `${podsPath}?fieldSelector=spec.nodeName%3Dpi-01`, { as }), { code: 200 })
  t.match(await ask('GET', podsPath, { as }), { code: 403 })
})

test('a node creates and deletes the mirror pods of its static pods', async (t) => {
  const { ask } = await anApi(t)
  const as = nodeIdentity('pi-01')
  const { body: node } = await ask('POST', '/api/v1/nodes', { as, body: sentNode('pi-01') })
  const { uid } = node['metadata'] as { uid: string }
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'pi-01', uid, controller: true }
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  const body = sentPod('static-pi-01', { nodeName: 'pi-01' }, { annotations, ownerReferences: [owner] })
  t.match(await ask('POST', podsPath, { as: nodeIdentity('pi-02'), body }), { code: 403 })
  t.match(await ask('POST', podsPath, { as, body }), { code: 201 })
  const changed = { metadata: { annotations: { 'kubernetes.io/config.mirror': null } } }
  const patch = { type: patchTypes.merge, body: changed }
  t.match(await ask('PATCH', `${podsPath}/static-pi-01`, patch), { code: 422 }, 'a mirror stays one')
  t.match(await ask('DELETE', `${podsPath}/static-pi-01`, { as: nodeIdentity('pi-02') }), { code: 403 })
  t.match(await ask('DELETE', `${podsPath}/static-pi-01?gracePeriodSeconds=0`, { as }), { code: 200 })
  t.match(await ask('GET', `${podsPath}/static-pi-01`), { code: 404 })
})

test('a secret is readable for the node whose pod needs it, and for its metadata only elsewhere', async (t) => {
  const { ask, store } = await anApi(t)
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls' }, stringData: { key: 'hunter2' } }
  await ask('POST', '/api/v1/namespaces/default/secrets', { body: secret })
  const path = '/api/v1/namespaces/default/secrets/tls'
  const as = nodeIdentity('pi-01')
  t.match(await ask('GET', path, { as }), { code: 403 })
  const spec = { nodeName: 'pi-01', imagePullSecrets: [{ name: 'tls' }], containers: [] }
  await store.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default' }, spec })
  t.match(await ask('GET', path, { as }), { code: 200 })
  for (const form of ['Table', 'PartialObjectMetadata']) {
    const { body } = await ask('GET', path, { accept: `application/json;as=${form};v=v1;g=meta.k8s.io` })
    t.match(body, { kind: form })
    t.notMatch(JSON.stringify(body), /hunter2|aHVudGVyMg==/)
  }
})

test('a node does not take the WireGuard key of another one, by its Node or its status', async (t) => {
  const { ask } = await anApi(t)
  const key = { 'bramble.dev/wireguard-public-key': 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=' }
  const patch = (name: string, part = '') =>
    ask('PATCH', `/api/v1/nodes/${name}${part}`, {
      as: nodeIdentity(name),
      type: patchTypes.merge,
      body: { metadata: { annotations: key } },
    })
  await ask('POST', '/api/v1/nodes', { as: nodeIdentity('pi-01'), body: sentNode('pi-01') })
  t.match(await patch('pi-01'), { code: 200 })
  const copy = { ...sentNode('pi-02'), metadata: { name: 'pi-02', annotations: key } }
  const made = await ask('POST', '/api/v1/nodes', { as: nodeIdentity('pi-02'), body: copy })
  t.equal(made.code, 201)
  t.notMatch(JSON.stringify(made.body), /xTIBA5/)
  for (const part of ['', '/status'])
    t.match(await patch('pi-02', part), { code: 403, body: { message: /node "pi-01" has the same WireGuard key/ } })
  t.match(await patch('pi-01'), { code: 200 })
})

test('a node writes no address of others into the status of its pods', async (t) => {
  const addressRules = { isRouted: true, podRanges: ['10.244.0.0/16'], serviceRanges: ['10.96.0.0/12'] }
  const { ask, store } = await anApi(t, { addressRules })
  const as = nodeIdentity('pi-01')
  const status = { addresses: [{ type: 'InternalIP', address: '192.168.1.5' }] }
  t.match(await ask('POST', '/api/v1/nodes', { as, body: { ...sentNode('pi-01'), status } }), { code: 201 })
  const node = await store.get('nodes', { namespace: '', name: 'pi-01' })
  if (node === undefined) return t.fail('it is registered')
  await store.update('nodes', { ...node, spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24'] } })
  t.match(await ask('POST', podsPath, { body: sentPod('web', { nodeName: 'pi-01' }) }), { code: 201 })
  const patch = (fields: object) =>
    ask('PATCH', `${podsPath}/web/status`, { as, type: patchTypes.strategic, body: { status: fields } })
  for (const ip of ['192.168.1.9', '192.168.1.6', '10.244.2.7', '169.254.169.254', '127.0.0.1']) {
    t.match(await patch({ podIP: ip, podIPs: [{ ip }] }), {
      code: 403,
      body: { message: new RegExp(`^pods "web" is forbidden: node "pi-01" cannot report podIP ${ip} is`) },
    })
    t.match(await patch({ hostIP: ip }), { code: 403 }, ip)
  }
  t.match(await patch({ podIP: '10.244.1.7', podIPs: [{ ip: '10.244.1.7' }], hostIP: '192.168.1.5' }), { code: 200 })
  t.match(await patch({ phase: 'Running' }), { code: 200 })
})

test('a node has no InternalIP that no node can have, by its registration or its status', async (t) => {
  const addressRules = { isRouted: true, podRanges: ['10.244.0.0/16'], serviceRanges: ['10.96.0.0/12'] }
  const { ask } = await anApi(t, { addressRules })
  const as = nodeIdentity('pi-01')
  const own = { type: 'InternalIP', address: '192.168.1.5' }
  const withWrong = (address: string) => ({ addresses: [own, { type: 'InternalIP', address }] })
  const made = await ask('POST', '/api/v1/nodes', {
    as,
    body: { ...sentNode('pi-01'), status: withWrong('127.0.0.1') },
  })
  t.match(made, { code: 201, body: { status: { addresses: [own] } } })
  for (const ip of ['127.0.0.1', '169.254.169.254', '224.0.0.1', '10.244.9.1', '10.96.0.1']) {
    const body = { status: withWrong(ip) }
    t.match(await ask('PATCH', '/api/v1/nodes/pi-01/status', { as, type: patchTypes.merge, body }), {
      code: 403,
      body: { message: new RegExp(`cannot have InternalIP ${ip} is`) },
    })
  }
})

test('a node that proves its address does not stop to', async (t) => {
  const { ask } = await anApi(t)
  const as = nodeIdentity('pi-01')
  const annotations = { 'bramble.dev/probe-port': '8473' }
  const body = { ...sentNode('pi-01'), metadata: { name: 'pi-01', annotations } }
  t.match(await ask('POST', '/api/v1/nodes', { as, body }), { code: 201 })
  const patch = (value: string | null) =>
    ask('PATCH', '/api/v1/nodes/pi-01', {
      as,
      type: patchTypes.merge,
      body: { metadata: { annotations: { 'bramble.dev/probe-port': value } } },
    })
  for (const value of [null, 'x']) {
    t.match(await patch(value), {
      code: 403,
      body: { message: /not allowed to remove annotation bramble.dev\/probe-port/ },
    })
  }
  t.match(await patch('9000'), { code: 200 })
})
