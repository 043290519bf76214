import { test } from 'tap'
import { automanagedLabel, localAvailability, withAvailability } from '../../api/registration/api-service.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { aCustomApi, aDefinition, definitionsPath } from '../testing/custom-api.ts'
import type { StoredApiService } from './aggregator/api-services.ts'
import { localApiServices, localStep } from './local-api-services.ts'

const now = '2026-01-01T00:00:00Z'
const served = { group: 'example.com', version: 'v1' }
const stored = (more: Partial<StoredApiService> = {}): StoredApiService => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: {
    name: 'v1.example.com',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: now,
    labels: { [automanagedLabel]: 'true' },
  },
  spec: { ...served, groupPriorityMinimum: 1000, versionPriority: 100 },
  status: withAvailability(undefined, localAvailability, now),
  ...more,
})

test('what is served gets an APIService, and one of our own that is served no longer is deleted', (t) => {
  const made = localStep(served, undefined, now)
  t.match(made, {
    kind: 'create',
    apiService: {
      metadata: { name: 'v1.example.com', labels: { [automanagedLabel]: 'true' } },
      spec: { groupPriorityMinimum: 1000, versionPriority: 100 },
      status: { conditions: [{ type: 'Available', status: 'True', reason: 'Local' }] },
    },
  })
  t.match(localStep({ group: '', version: 'v1' }, undefined, now), {
    apiService: { metadata: { name: 'v1.', labels: { [automanagedLabel]: 'onstart' } } },
  })
  t.same(localStep(undefined, undefined, now), { kind: 'none' })
  t.same(localStep(served, stored(), now), { kind: 'none' })
  t.same(localStep(undefined, stored(), now), { kind: 'delete' })
  t.end()
})

test('a changed one of our own is changed back, and one of a user is left alone', (t) => {
  const other = { ...stored().spec, service: { namespace: 'a', name: 'b', port: 443 } }
  t.match(localStep(served, stored({ spec: other }), now), {
    kind: 'update',
    apiService: { spec: { service: undefined, versionPriority: 100 } },
  })
  const { labels: _, ...metadata } = stored().metadata
  t.same(localStep(served, stored({ metadata, spec: other }), now), { kind: 'none' })
  t.same(localStep(undefined, stored({ metadata }), now), { kind: 'none' })
  const { status: __, ...unchecked } = stored({ metadata })
  t.match(localStep(undefined, unchecked, now), { kind: 'status', apiService: { status: { conditions: [{}] } } })
  const deleted = stored({ metadata: { ...stored().metadata, deletionTimestamp: now } })
  t.same(localStep(undefined, deleted, now), { kind: 'none' })
  t.end()
})

test('APIServices follow what is served: built-in groups, and definitions that come and go', async (t) => {
  const { ask, define, until, store, clock, kinds } = await aCustomApi(t)
  const stopping = new AbortController()
  const running = localApiServices({ store, kinds, clock, log: quietLog(t) }).run(stopping.signal)
  const all = '/apis/apiregistration.k8s.io/v1/apiservices'
  const codeOf = async (name: string) => (await ask('GET', `${all}/${name}`)).code
  for (const name of ['v1.', 'v1.apps', 'v2.autoscaling', 'v1beta1.metrics.k8s.io', 'v1.authorization.k8s.io']) {
    await until(async () => (await codeOf(name)) === 200)
  }
  t.equal(await codeOf('v1.apiregistration.k8s.io'), 404)
  await define(aDefinition({ type: 'object' }))
  await until(async () => (await codeOf('v1.example.com')) === 200)
  t.match(await ask('GET', `${all}/v1.example.com`), {
    body: {
      metadata: { labels: { [automanagedLabel]: 'true' } },
      status: { conditions: [{ type: 'Available', status: 'True', reason: 'Local' }] },
    },
  })
  await ask('DELETE', `${all}/v1.example.com`)
  await until(async () => (await codeOf('v1.example.com')) === 200)
  t.pass('one that is deleted comes back')
  await ask('DELETE', `${definitionsPath}/shops.example.com`)
  await until(async () => (await codeOf('v1.example.com')) === 404)
  stopping.abort()
  await running
})
