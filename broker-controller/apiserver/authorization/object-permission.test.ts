import { test } from 'tap'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Identity } from '../../../api/identity.ts'
import {
  contestedByAnnotation,
  learntDigestAnnotation,
  learntFromAnnotation,
} from '../../../api/node/node-checkpoint.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { contentDigest } from '../../store/checkpoints/checkpoint-data.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Store } from '../../store/store.ts'
import type { Attributes } from '../handlers/authorizer.ts'
import { boundPodsFor, isObjectAllowed } from './object-permission.ts'

test('a request of a node reads the pods that decide about it, not all of the fleet', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  for (const [namespace, name, nodeName] of [
    ['shop', 'a', 'pi-1'],
    ['shop', 'b', 'pi-1'],
    ['shop', 'c', 'pi-2'],
    ['bank', 'd', 'pi-1'],
  ] as const) {
    await store.create('pods', aPod({ namespace, name, nodeName }))
  }
  const lists: (string | undefined)[] = []
  const recording: Pick<Store, 'get' | 'list'> = {
    get: (resource, key) => store.get(resource, key),
    list: (resource, namespace) => {
      lists.push(namespace)
      return store.list(resource, namespace)
    },
  }
  const namesFor = async (resource: string, namespace: string, name: string) => {
    return (await boundPodsFor('pi-1', asked('get', resource, name, namespace), recording)).map(
      ({ metadata }) => metadata.name,
    )
  }
  t.same(await namesFor('pods', 'shop', 'a'), ['a'])
  t.same(await namesFor('pods', 'shop', 'c'), [], 'it is bound to another node')
  t.same(await namesFor('pods', 'shop', 'absent'), [])
  t.same(lists, [])
  t.same(await namesFor('secrets', 'shop', 'hidden'), ['a', 'b'])
  t.same(lists, ['shop'])
  t.same(await namesFor('secrets', '', 'hidden'), [])
  t.same(await namesFor('pods', 'shop', ''), [])
  t.same(lists, ['shop'], 'what names no object is decided without pods')
})

const pi1: Identity = { user: 'system:node:pi-1', groups: ['system:nodes'] }
const administrator: Identity = { user: 'kubernetes-admin', groups: ['system:masters'] }

function asked(verb: string, resource: string, name: string, namespace = 'shop'): Attributes {
  return { kind: 'resource', verb, group: '', resource, subresource: '', namespace, name, fields: new Map() }
}

const naming = (annotations: { readonly [key: string]: string } = {}, namespace = 'shop') =>
  aPod({
    namespace,
    nodeName: 'pi-1',
    annotations,
    spec: { volumes: [{ name: 'settings', configMap: { name: 'settings' } }] },
  })
const assigned = naming()
/** The node itself brought it with its checkpoint. */
const claimed = naming({ [learntFromAnnotation]: 'pi-1' })

function settings(deliverer?: string, { changed = false, contested = false } = {}): ConfigMap {
  const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, data: { colour: 'red' } }
  const annotations = {
    ...(deliverer !== undefined && {
      [learntFromAnnotation]: deliverer,
      [learntDigestAnnotation]: changed ? 'of something else' : contentDigest(object),
    }),
    ...(contested && { [contestedByAnnotation]: 'pi-2' }),
  }
  return { ...object, metadata: { name: 'settings', namespace: 'shop', annotations } }
}

test('a node reads what an assigned pod names; for a pod that it claims only what it delivered itself', async (t) => {
  const cases = [
    { title: 'assigned', pods: [assigned], object: settings(), get: true, watch: true },
    { title: 'assigned, not there yet', pods: [assigned], object: undefined, get: true, watch: true },
    { title: 'claimed, not there', pods: [claimed], object: undefined, get: true, watch: false },
    { title: 'claimed, of the operator', pods: [claimed], object: settings(), get: false, watch: false },
    { title: 'claimed, delivered by it', pods: [claimed], object: settings('pi-1'), get: true, watch: false },
    { title: 'claimed, delivered by another', pods: [claimed], object: settings('pi-2'), get: false, watch: false },
    {
      title: 'claimed, changed since it was delivered',
      pods: [claimed],
      object: settings('pi-1', { changed: true }),
      get: false,
      watch: false,
    },
    { title: 'one of two assigned', pods: [claimed, assigned], object: settings(), get: true, watch: true },
    {
      title: 'assigned, two nodes delivered different content',
      pods: [assigned],
      object: settings('pi-3', { contested: true }),
      get: false,
      watch: false,
    },
    {
      title: 'assigned, contested, delivered by it',
      pods: [assigned],
      object: settings('pi-1', { contested: true }),
      get: true,
      watch: false,
    },
    {
      title: 'assigned, contested, decided by the operator',
      pods: [assigned],
      object: settings('pi-3', { contested: true, changed: true }),
      get: true,
      watch: true,
    },
  ]
  for (const { title, pods, object, get, watch } of cases) {
    const store = memoryStore({ clock: fakeClock() })
    if (object !== undefined) await store.create('configmaps', object)
    const allowed = (verb: string) => isObjectAllowed(pi1, asked(verb, 'configmaps', 'settings'), pods, store)
    t.same([await allowed('get'), await allowed('watch')], [get, watch], title)
  }
})

test('the authorities of the API are for every pod, also for one that its node claims', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  const name = 'kube-root-ca.crt'
  const metadata = { namespace: 'shop', name }
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata })
  await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata })
  const volumes = [
    { name: 'a', configMap: { name } },
    { name: 'b', secret: { secretName: name } },
  ]
  const pod = aPod({
    namespace: 'shop',
    nodeName: 'pi-1',
    annotations: { [learntFromAnnotation]: 'pi-1' },
    spec: { volumes },
  })
  t.equal(await isObjectAllowed(pi1, asked('get', 'configmaps', name), [pod], store), true)
  t.equal(await isObjectAllowed(pi1, asked('get', 'secrets', name), [pod], store), false, 'a Secret of that name')
})

test('pods of another namespace, or that name another object, decide nothing', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  await store.create('configmaps', settings('pi-2'))
  const allowed = (identity: Identity, resource: string, name: string, pods = [claimed]) =>
    isObjectAllowed(identity, asked('get', resource, name), pods, store)
  t.equal(await allowed(pi1, 'configmaps', 'settings'), false)
  t.equal(await allowed(pi1, 'configmaps', 'settings', [naming({ [learntFromAnnotation]: 'pi-1' }, 'bank')]), true)
  t.equal(await allowed(pi1, 'configmaps', 'cluster-info'), true, 'authorization alone decides')
  t.equal(await allowed(pi1, 'secrets', 'settings'), true, 'no pod names a Secret')
  t.equal(await allowed(pi1, 'pods', 'settings'), true)
  t.equal(await allowed(pi1, 'configmaps', ''), true)
  t.equal(await allowed(administrator, 'configmaps', 'settings'), true)
})

test('tokens and nodes read their own certificate requests only', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  const request: CertificateSigningRequest = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1' },
    spec: { request: '', signerName: 'kubernetes.io/kube-apiserver-client-kubelet', username: pi1.user },
  }
  await store.create('certificatesigningrequests', request)
  const allowed = (identity: Identity, name: string) =>
    isObjectAllowed(identity, asked('get', 'certificatesigningrequests', name, ''), [], store)
  const other: Identity = { user: 'system:node:pi-2', groups: ['system:nodes'] }
  t.equal(await allowed(pi1, 'csr-1'), true)
  t.equal(await allowed(other, 'csr-1'), false)
  t.equal(await allowed({ user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] }, 'csr-1'), false)
  t.equal(await allowed(other, 'absent'), true, 'it is not found')
  t.equal(await allowed(administrator, 'csr-1'), true)
})
