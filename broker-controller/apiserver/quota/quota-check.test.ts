import { test } from 'tap'
import { formatAmounts } from '../../../api/limits/resource-amounts.ts'
import type { ResourceQuota, ResourceQuotaSpec } from '../../../api/limits/resource-quota.ts'
import type { Service } from '../../../api/network/service.ts'
import { resources } from '../../../api/resources.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { appliesTo, chargeOf, isCharged, refusalOf } from './quota-check.ts'

const quota = (spec: ResourceQuotaSpec): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'mine', namespace: 'default' },
  spec,
})
const service = (type: string, count = 1): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { type, ports: Array.from({ length: count }, (_, port) => ({ port: port + 1 })) },
})
const { pods, services, secrets } = resources
const newPod = (requests: { [name: string]: string } = {}) => chargeOf(pods, aPod({ requests }), undefined, 0)
const anObject = { apiVersion: 'v1', kind: 'Secret', metadata: {} }

test('a new object is charged whole, a changed one with what it uses more', async (t) => {
  t.equal(formatAmounts(newPod({ cpu: '1', memory: '0' }).usage), 'count/pods=1,cpu=1,pods=1,requests.cpu=1')
  const change = (old: Service, now: Service) => formatAmounts(chargeOf(services, now, old, 0).usage)
  t.equal(change(service('ClusterIP'), service('NodePort', 2)), 'services.nodeports=2')
  t.equal(change(service('NodePort', 3), service('NodePort', 2)), '')
  t.equal(change(service('NodePort'), service('LoadBalancer', 2)), 'services.loadbalancers=1,services.nodeports=1')
})

test('after an update only Services are charged', async (t) => {
  t.ok(isCharged(newPod()))
  t.notOk(isCharged(chargeOf(pods, aPod(), aPod(), 0)))
  t.ok(isCharged(chargeOf(services, service('ClusterIP'), service('ClusterIP'), 0)))
  t.notOk(isCharged(chargeOf(secrets, anObject, anObject, 0)))
})

test('a quota applies to objects that count for one of its resources, in its scopes', async (t) => {
  t.ok(appliesTo(quota({ hard: { pods: '1', secrets: '1' } }), newPod()))
  t.notOk(appliesTo(quota({ hard: { secrets: '1' } }), newPod()))
  t.notOk(appliesTo(quota({}), newPod()))
  t.ok(appliesTo(quota({ hard: { pods: '1' }, scopes: ['BestEffort'] }), newPod()))
  t.notOk(appliesTo(quota({ hard: { pods: '1' }, scopes: ['Terminating'] }), newPod()))
})

test('what does not fit is refused with the amounts of the exceeded resources', async (t) => {
  const bounds = quota({ hard: { 'requests.memory': '1Gi', cpu: '2', pods: '5' } })
  const memory = { cpu: '500m', memory: '1Gi' }
  t.equal(
    refusalOf(bounds, newPod(memory), { cpu: '1600m', 'requests.memory': '512Mi', pods: '1' }),
    'exceeded quota: mine, requested: cpu=500m,requests.memory=1Gi, used: cpu=1600m,requests.memory=512Mi, ' +
      'limited: cpu=2,requests.memory=1Gi',
  )
  t.equal(refusalOf(bounds, newPod(memory), { cpu: '1500m', pods: '4' }), undefined, 'it fits exactly')
  t.equal(
    refusalOf(quota({ hard: { pods: '0' } }), newPod(), {}),
    'exceeded quota: mine, requested: pods=1, used: pods=0, limited: pods=0',
  )
})

test('a resource of which nothing more is asked may be exceeded already', async (t) => {
  const charge = chargeOf(services, service('ClusterIP'), service('ClusterIP'), 0)
  t.equal(refusalOf(quota({ hard: { services: '1' } }), charge, { services: '2' }), undefined)
})

test('a container that does not state what the quota counts is refused first', async (t) => {
  const bounds = quota({ hard: { 'limits.cpu': '1', pods: '0' } })
  t.equal(refusalOf(bounds, newPod(), {}), 'failed quota: mine: must specify limits.cpu for: main')
})
