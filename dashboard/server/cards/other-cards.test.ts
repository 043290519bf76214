import { test } from 'tap'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { Event } from '../../../api/event.ts'
import type { Deployment } from '../../../api/workloads/deployment.ts'
import { eventCard, replicatedCard, requestCard } from './other-cards.ts'

const created = '2026-01-01T00:00:00Z'

test('an event has the time at which it last happened, and its texts are bounded', async (t) => {
  const event: Event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { namespace: 'default', name: 'web.1', creationTimestamp: created },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web' },
    reason: 'BackOff',
    message: 'x'.repeat(5_000),
    type: 'Warning',
    count: 3,
    lastTimestamp: '2026-01-01T00:01:00Z',
  }
  t.match(eventCard(event), {
    id: 'default/web.1',
    namespace: 'shop',
    warning: true,
    object: 'Pod/web',
    count: 3,
    at: 1767225660,
  })
  t.equal(eventCard(event).message.length, 1_024)
  const series = { count: 9, lastObservedTime: '2026-01-01T00:02:00.000000Z' }
  t.match(eventCard({ ...event, series }), { count: 9, at: 1767225720 })
})

test('a workload states why it does not progress', async (t) => {
  const template = { metadata: {}, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
  const deployment: Deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: 'shop', name: 'web', creationTimestamp: created },
    spec: { replicas: 3, selector: {}, template },
    status: { readyReplicas: 1, updatedReplicas: 2 },
  }
  t.match(replicatedCard('Deployment', deployment), { kind: 'Deployment', wanted: 3, ready: 1, updated: 2 })
  t.notOk('why' in replicatedCard('Deployment', deployment))
  const conditions = [{ type: 'Progressing', status: 'False', message: 'the rollout is stuck' }] as const
  const stuck = { ...deployment, status: { ...deployment.status, conditions } }
  t.equal(replicatedCard('Deployment', stuck).why, 'The rollout is stuck.')
})

test('only machines that wait are shown, with the name that they ask for', async (t) => {
  const request: CertificateSigningRequest = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1', creationTimestamp: created },
    spec: {
      request: btoa('PEM'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      username: 'system:bootstrap:abcdef',
    },
  }
  const nameOf = (pem: string) => (pem === 'PEM' ? 'system:node:pi-9' : undefined)
  t.match(requestCard(request, nameOf), { name: 'csr-1', node: 'pi-9', requester: 'system:bootstrap:abcdef' })
  t.equal(requestCard(request, () => undefined)?.node, 'unreadable name')
  const person = { ...request, spec: { ...request.spec, signerName: 'kubernetes.io/kube-apiserver-client' } }
  t.equal(requestCard(person, nameOf), undefined)
  const waiting = { ...request, status: { conditions: [{ type: 'Waiting', status: 'True', reason: 'NodeExists' }] } }
  t.match(requestCard(waiting, nameOf), { name: 'csr-1', node: 'pi-9' }, 'the controller noted why it waits')
  const decided = { ...request, status: { conditions: [{ type: 'Approved', status: 'True' }] } }
  t.equal(requestCard(decided, nameOf), undefined)
})
