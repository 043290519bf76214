import { test } from 'tap'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import type { StoredObject } from '../../store/store.ts'
import { servicePods } from './service-pods.ts'

const service = (name: string, selector?: { readonly [name: string]: string }): StoredObject<'services'> => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { ...(selector && { selector }) },
})
const pod = (over: PodOverrides = {}) =>
  aPod({ name: 'a', labels: { app: 'web', tier: 'front' }, status: { podIP: '10.0.0.1' }, ...over })
const names = (pods: readonly { readonly metadata: { readonly name?: string } }[]) =>
  pods.map((one) => one.metadata.name)

test('a pod concerns the Services of its namespace whose whole selector it has', async (t) => {
  const index = servicePods()
  index.putService(service('web', { app: 'web' }))
  index.putService(service('front', { tier: 'front', app: 'web' }))
  index.putService(service('back', { tier: 'back', app: 'web' }))
  index.putService(service('none'))
  t.same([...index.putPod(pod(), undefined)].sort(), ['default/front', 'default/web'])
  t.same(index.putPod(pod({ namespace: 'other' }), undefined), [])
  t.same(names(index.podsOf('default/web')), ['a'])
  t.same(index.podsOf('default/back'), [])
})

test('a Service that comes later has the pods that are there', async (t) => {
  const index = servicePods()
  index.putPod(pod(), undefined)
  index.putService(service('web', { app: 'web' }))
  t.same(names(index.podsOf('default/web')), ['a'])
  index.putService(service('web', { app: 'other' }))
  t.same(index.podsOf('default/web'), [])
  t.same(index.putPod(undefined, pod()), [], 'the earlier selector is forgotten')
  index.removeService(service('web'))
  t.same(index.putPod(pod({ labels: { app: 'other' } }), undefined), [])
})

test('Services with the same selector share its pods until the last of them is gone', async (t) => {
  const index = servicePods()
  index.putService(service('web', { app: 'web', tier: 'front' }))
  index.putPod(pod(), undefined)
  index.putService(service('twin', { tier: 'front', app: 'web' }))
  index.putService(service('other', { app: 'web' }))
  t.same(names(index.podsOf('default/twin')), ['a'])
  const changed = () => [...index.putPod(pod({ status: { podIP: '10.0.0.2' } }), pod())].sort()
  t.same(changed(), ['default/other', 'default/twin', 'default/web'])
  index.putService(service('web', { app: 'other' }))
  t.same(changed(), ['default/other', 'default/twin'])
  index.removeService(service('twin'))
  t.same(changed(), ['default/other'])
  t.same(index.podsOf('default/twin'), [])
  index.putService(service('twin', { app: 'web', tier: 'front' }))
  t.same(names(index.podsOf('default/twin')), ['a'])
})

test('only a change that other endpoints can follow from concerns a Service', async (t) => {
  const index = servicePods()
  index.putService(service('web', { app: 'web' }))
  const before = pod()
  index.putPod(before, undefined)
  const concerns = (over: PodOverrides) => {
    const now = pod(over)
    const keys = index.putPod(now, before)
    index.putPod(before, now)
    return keys.length === 1
  }
  t.notOk(concerns({ annotations: { note: 'new' } }))
  t.notOk(concerns({ labels: { app: 'web', tier: 'back' } }))
  const { status } = before
  t.ok(concerns({ status: { ...status, podIP: '10.0.0.2' } }))
  t.ok(concerns({ status: { ...status, conditions: [{ type: 'Ready', status: 'True' }] } }))
  t.ok(concerns({ phase: 'Succeeded' }))
  t.ok(concerns({ nodeName: 'pi-02' }))
  t.ok(concerns({ spec: { hostname: 'a' } }))
  t.ok(concerns({ spec: { subdomain: 'web' } }))
  t.ok(concerns({ labels: { app: 'other' } }))
})

test('a pod that leaves concerns the Services that it belonged to', async (t) => {
  const index = servicePods()
  index.putService(service('web', { app: 'web' }))
  index.putPod(pod(), undefined)
  t.same(index.putPod(undefined, pod()), ['default/web'])
  t.same(index.podsOf('default/web'), [])
})
